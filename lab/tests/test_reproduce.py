"""The similarity study with printed figures, a make-believe scheme and small real peers: tables, arithmetic and the
commands."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput
from ciphervec.cli import app
from ciphervec_lab.reproduce import images, phe_similarity, rysava_ricci, serengil_ozpinar, similarity_report
from ciphervec_lab.reproduce.tenseal import SETTINGS, TensealVectors

LOSS = {"standard": 1e-5, "high": 1e-13}


@dataclass
class Clear:
    """Vectors or scores in the clear, where a scheme has ciphertexts."""

    values: np.ndarray


@dataclass
class FakeScheme:
    """Encrypts nothing and errs by a known amount."""

    scheme: str
    bits: int
    precision: str = "standard"
    layouts = ("elements", "lanes")

    def at(self, precision: str) -> FakeScheme:
        return FakeScheme(self.scheme, self.bits, precision)

    def encrypt(self, rows: np.ndarray, layout: str, *, owner: bool = True) -> Clear:
        assert owner
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-12)
        return Clear(rows)

    def score(self, sealed: Clear, probe: np.ndarray) -> Clear:
        return Clear(sealed.values @ probe)

    def decrypt(self, answer: Clear) -> np.ndarray:
        return answer.values + LOSS[self.precision]

    def size(self, thing: Clear) -> int:
        return thing.values.nbytes

    def key_sizes(self) -> tuple[int, int]:
        return 2 * self.bits // 8, self.bits // 8

    def capacity(self, dim: int) -> int:
        return 5


def make(scheme: str, bits: int, insecure: bool) -> FakeScheme:
    assert insecure == (bits in (1024, 1536))
    return FakeScheme(scheme, bits)


@pytest.fixture(scope="module")
def outcome() -> phe_similarity.Outcome:
    return phe_similarity.run(phe_similarity.Settings(dims=(8, 128), repeats=1), make=make)


def test_table_5_has_the_papers_lines() -> None:
    rows = serengil_ozpinar.TABLE_5
    assert len(rows) == 24
    # Three schemes at two levels, two TenSEAL settings; three dimensions each, no line twice.
    assert len({(row.cryptosystem, row.security, row.ndim) for row in rows}) == 24
    assert {row.ndim for row in rows} == {128, 512, 4096}
    one = serengil_ozpinar.find("Okamoto-Uchiyama", 112, 512)
    assert one is not None
    assert (one.encrypt, one.homomorphic, one.decrypt) == (0.1233, 1.0555, 20.246)
    assert (one.loss, one.secret, one.public) == (9.68e-14, 0.0033, 0.0027)
    assert (one.embedding, one.similarity) == (0.7730, 0.0017)
    assert serengil_ozpinar.find("Paillier", 128, 512) is None
    # Sums of the page's columns, from its text: a digit that moves here moves them.
    sums = {
        "encrypt": 536.5408, "homomorphic": 147.5008, "decrypt": 2133.2673, "loss": 5.455823690001143,
        "secret": 13.371, "public": 1488.3708, "embedding": 54.0874, "similarity": 6.4764,
    }  # fmt: skip
    for column, total in sums.items():
        assert sum(getattr(row, column) for row in rows) == pytest.approx(total, rel=1e-12)


def test_tables_i_and_ii_add_up_as_printed() -> None:
    assert set(rysava_ricci.TABLE_I) == {(s, m) for s in ("Scheme 1", "Scheme 3") for m in rysava_ricci.MODES}
    for times in rysava_ricci.TABLE_I.values():
        assert times.encryption + times.decryption == pytest.approx(times.total, abs=2e-6)
    assert rysava_ricci.TABLE_II["μ pre-computation"] == (2.544364, 3.100727)
    assert len(rysava_ricci.TABLE_II) == 5


def test_angles_between_images_survive_the_map() -> None:
    pytest.importorskip("sklearn")
    small, large = images.digits(64, seed=1).rows[:50], images.digits(300, seed=2).rows[:50]
    np.testing.assert_allclose(small @ small.T, large @ large.T, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(large, axis=1), 1, atol=1e-12)
    assert np.count_nonzero(large) == large.size
    assert images.digits(8).rows.shape == (1797, 8)


def test_vectors_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "faces.npy"
    np.save(path, np.array([[3.0, 4.0], [0.0, -2.0]], dtype=np.float32))
    own = images.load(path)
    np.testing.assert_allclose(own.rows, [[0.6, 0.8], [0, -1]])
    assert (own.dim, own.origin) == (2, "faces.npy")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.ones(4), r"shape \(rows, dimensions\)"),
        (np.ones((3, 2), dtype=np.int64), "got int64"),
        (np.ones((1, 2)), "two rows or more"),
        (np.array([[1.0, 2.0], [0.0, 0.0]]), "leave it out"),
        (np.array([[1.0, np.nan], [1.0, 0.0]]), "not a number"),
    ],
)
def test_vectors_that_are_none(array: np.ndarray, says: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InvalidInput, match=says):
        images.load(tmp_path / "v.npy")
    (tmp_path / "text.npy").write_text("not numbers")
    with pytest.raises(InvalidInput, match=r"not a \.npy file"):
        images.load(tmp_path / "text.npy")


def test_a_record_for_every_way_of_every_cell(outcome: phe_similarity.Outcome) -> None:
    pytest.importorskip("sklearn")
    assert len(outcome.records) == 3 * 3 * 2 * len(phe_similarity.WAYS)
    assert len({tuple(one) for one in outcome.records}) == 1
    for one in outcome.records:
        assert one["loss"] == pytest.approx(LOSS[one["precision"]], rel=0.01)
        factor = 1.5 if one["cryptosystem"] == "Okamoto-Uchiyama" else 1
        assert one["bits"] == factor * {80: 1024, 112: 2048, 128: 3072}[one["security"]]
        assert one["insecure"] == (one["security"] == 80)
        assert one["embedding"] == 8 * one["ndim"] and one["similarity"] == 8
        assert min(one[name] for name in ("encrypt", "homomorphic", "decrypt")) > 0
        row = serengil_ozpinar.find(one["cryptosystem"], one["security"], one["ndim"])
        assert (row is None) == (one["ndim"] == 8 or one["security"] == 128)
        assert one["printed_encrypt"] == (None if row is None else row.encrypt)
    assert any("insecure" in note for note in outcome.notes)


def test_the_printed_figures_are_a_column_of_every_table(outcome: phe_similarity.Outcome) -> None:
    text = similarity_report.markdown(outcome)
    assert text.startswith("Serengil & Ozpinar 2025, Table 5, remade on")
    for quantity in phe_similarity.QUANTITIES:
        heads, rows = similarity_report.table(outcome, quantity)
        assert heads[:4] == ["cryptosystem", "security", "dim", "paper"]
        assert heads[4:] == ["elements, high", "elements, standard", "lanes, standard"]
        assert len(rows) == 18 and {len(row) for row in rows} == {len(heads)}
        assert "| " + " | ".join(rows[0]) + " |" in text
    lines = {tuple(row[:3]): row for row in similarity_report.table(outcome, "encrypt")[1]}
    assert lines["Paillier", "80 insecure", "128"][3] == "1.6569"
    assert lines["Damgård-Jurik", "112", "128"][3] == "0.2095"
    assert lines["Paillier", "128", "128"][3] == "–"
    assert lines["Paillier", "112", "8"][3] == "–"
    lines = {tuple(row[:3]): row for row in similarity_report.table(outcome, "embedding")[1]}
    assert lines["Okamoto-Uchiyama", "112", "128"][3:5] == ["0.1934 MB", "1.02 KB"]


def test_the_plot_is_a_picture(outcome: phe_similarity.Outcome, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    similarity_report.plot(outcome.records, tmp_path / "new" / "p.png")
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")
    curves = {
        (name, security): points
        for name, security, points in similarity_report.curves(outcome.records, "Paillier", "encrypt")
    }
    assert curves["paper", 112] == [(128, 0.3979)]
    assert ("paper", 128) not in curves
    assert [dim for dim, _ in curves["lanes, standard", 80]] == [8, 128]


def test_lightphe_is_scaled_beyond_its_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightphe")
    monkeypatch.setitem(phe_similarity.BITS, 80, 512)
    settings = phe_similarity.Settings(
        schemes=("paillier",), securities=(80,), dims=(8, 16), peers=("lightphe",), repeats=1, peer_dim=8
    )
    done = phe_similarity.run(settings, make=lambda scheme, bits, insecure: FakeScheme(scheme, bits))
    eight, sixteen = (one for one in done.records if one["library"] == "LightPHE")
    assert (eight["estimated_from"], sixteen["estimated_from"]) == (None, 8)
    assert eight["encrypt"] == pytest.approx(2 * sixteen["encrypt"])
    assert eight["homomorphic"] == pytest.approx(2 * sixteen["homomorphic"])
    assert eight["decrypt"] == sixteen["decrypt"]
    assert eight["loss"] < 1e-14
    heads, rows = similarity_report.table(done, "encrypt")
    assert [row[heads.index("LightPHE")].endswith(" est.") for row in rows] == [False, True]
    assert any("moves a similarity" in note for note in done.notes)


def test_tenseal_settings_are_the_printed_ones() -> None:
    assert [(one.degree, sum(one.primes)) for one in SETTINGS] == [(2**13, 200), (2**14, 422)]
    for one in SETTINGS:
        assert serengil_ozpinar.find(one.name, 128, 512) is not None
        # What TenSEAL assumes after a product: the prime it is rescaled by is the scale.
        assert one.primes[-2] == one.scale


def test_tenseal_agrees_with_float64() -> None:
    pytest.importorskip("tenseal")
    rows = images.digits(128).rows
    peer = TensealVectors(SETTINGS[0])
    sealed = peer.encrypt(rows[0])
    assert peer.decrypt(peer.dot(sealed, rows[1])) == pytest.approx(float(rows[0] @ rows[1]), abs=1e-4)
    secret, public = peer.key_sizes()
    assert 100_000 < secret < 1_000_000 < public


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--schemes", "rsa"], "--schemes knows paillier, damgard-jurik, okamoto-uchiyama, got 'rsa'"),
        (["--security", "256"], "--security knows 80, 112, 128, got '256'"),
        (["--dims", "many"], "--dims takes numbers with commas between them, e.g. 128,512, got 'many'"),
        (["--dims", ","], "--dims is empty"),
        (["--peer", "seal"], "--peer knows lightphe, tenseal, got 'seal'"),
        (["--peer-dim", "0"], "--peer-dim must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_refused_with_a_code(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["reproduce", "phe-similarity", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())


def test_a_missing_file_of_vectors_has_its_own_code(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "phe-similarity", "--vectors", str(tmp_path / "none.npy")])
    assert done.exit_code == 4


def test_the_command_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "markdown", "plot")}
    files["plot"] = tmp_path / "out.png"
    done = CliRunner().invoke(
        app,
        ["reproduce", "phe-similarity", "--dims", "8", "--peer", "none", "--repeats", "1", "--security", "80",
         *(part for name, path in files.items() for part in (f"--{name}", str(path)))],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    records = json.loads(files["json"].read_text())
    assert len(records) == 9 and {one["security"] for one in records} == {80}
    for one in records:
        assert one["loss"] < {"standard": 1e-4, "high": 1e-12}[one["precision"]]
        assert one["insecure"] and one["bits"] in (1024, 1536)
    assert len(list(csv.DictReader(files["csv"].open()))) == 9
    assert "### Encrypted embedding" in files["markdown"].read_text(encoding="utf-8")
    assert files["plot"].stat().st_size > 5000
    assert "Loss: absolute error of a similarity" in done.stdout


def test_a_plot_that_is_no_picture_is_refused(outcome: phe_similarity.Outcome, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidInput, match=r"--plot writes .*png.*; give p\.txt one of these endings"):
        similarity_report.plot(outcome.records, tmp_path / "p.txt")
