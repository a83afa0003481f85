"""Functions in files and arrays as words of a command line: analyses, pictures, results and errors."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from program import Program

SOURCE = """
import numpy as np
from helper import FACTOR

import ciphervec


@ciphervec.program
def hamming(x, y):
    return np.sum(x != y)


@ciphervec.program
def score(x, w, shift=1):
    return FACTOR * (x @ w) + shift


def double(x):
    return 2 * x


def careless(x):
    return x if x.sum() > 3 else -x


def forgetful(x):
    return x + TABEL


TABLE = np.arange(4)
"""

FOR_SERVERS = ("--failure", "128")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "own.py").write_text(SOURCE)
    (tmp_path / "helper.py").write_text("FACTOR = 3\n")
    random = np.random.default_rng(4)
    np.save(tmp_path / "x.npy", random.integers(0, 2, 16))
    np.save(tmp_path / "y.npy", random.integers(0, 2, 16))
    np.save(tmp_path / "w.npy", np.array([1.5, -2.0, 0.25]))
    return Program(tmp_path)


def test_analyse_prints_what_a_run_takes(program: Program, tmp_path: Path) -> None:
    words = ("program", "analyse", "own.py:hamming", "--sample", "x=x.npy", "-s", "y=secret(16, bits=1)")
    shown = program(*words, "--json", "it.json", "--graph", "it.svg").stdout
    assert "hamming: CKKS" in shown and "own.py:10" in shown and "integer 0 … 16" in shown
    whole = json.loads((tmp_path / "it.json").read_text())
    assert {one["operation"] for one in whole["operations"]} >= {"input x", "input y", "sum"}
    assert whole["key_bytes"] > 0 and whole["outputs"][0]["shape"] == []
    picture = ElementTree.fromstring((tmp_path / "it.svg").read_text())
    boxes = [one for one in picture.iter() if one.tag.endswith("}g")]
    assert len(boxes) == len(whole["operations"])
    assert any("own.py:10" in str(one[0].text) for one in boxes)
    printed = json.loads(program(*words, "--json", "-", "--graph", "it.dot").stdout)
    assert printed["levels"] == whole["levels"]
    drawn = (tmp_path / "it.dot").read_text()
    assert drawn.startswith('digraph "hamming" {')
    assert drawn.count("[label=") == len(boxes) and "n0 -> n2" in drawn and "n1 -> n2" in drawn


def test_run_compares_plain_and_encrypted(program: Program, tmp_path: Path) -> None:
    x, y = (np.load(tmp_path / f"{name}.npy") for name in "xy")
    words = ("program", "run", "own.py:hamming", "-i", "x=x.npy", "-i", "y=y.npy")
    shown = program(*words, "--out", "it.npz", "--json", "it.json").stdout
    assert "results as in the clear" in shown and "predicted, ms" in shown
    with np.load(tmp_path / "it.npz") as found:
        assert found["result"] == found["result_plain"] == np.sum(x != y)
    whole = json.loads((tmp_path / "it.json").read_text())
    assert whole["results"]["result"] == np.sum(x != y) and whole["largest_error"] == 0
    assert set(whole["sizes"]) == {"keys", "query", "answer"}
    assert all(one["ms"] > 0 and one["predicted_ms"] > 0 for one in whole["operations"])
    assert any(one["where"] == "own.py:10" for one in whole["operations"])


def test_weights_are_part_of_the_program_and_numbers_are_numbers(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "three.npy", np.array([0.5, 0.25, -1.0]))
    declared = ("-s", "x=secret(3, low=-1, high=1, step=1/4)", "-s", "w=public(w.npy)", "-s", "shift=2")
    program("program", "run", "own.py:score", "-i", "x=three.npy", *declared, "--out", "it.npz")
    with np.load(tmp_path / "it.npz") as found:
        assert found["result"] == pytest.approx(3 * (0.75 - 0.5 - 0.25) + 2, abs=1e-3)
    refused = program("program", "run", "own.py:score", "-i", "w=w.npy", *declared, code=2)
    assert "--input w" in refused.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["own.py"], 2, "own.py:nearest"),
        (["gone.py:double"], 4, "gone.py"),
        (["own.py:gone"], 2, "its programs are hamming, score"),
        (["own.py:TABLE"], 2, "not a program"),
        (["broken.py:f"], 2, "broken.py, line 2: ZeroDivisionError"),
        (["own.py:double"], 2, "needs x"),
        (["own.py:double", "-s", "z=3"], 2, "it has x"),
        (["own.py:double", "-s", "x"], 2, "NAME=WHAT"),
        (["own.py:double", "-s", "x=1", "-s", "x=2"], 2, "given twice"),
        (["own.py:double", "-s", "x=gone.npy"], 4, "gone.npy"),
        (["own.py:double", "-s", "x=own.py.npy"], 2, "no .npy file"),
        (["own.py:double", "-s", "x=open('own.py')"], 2, "only secret(…) and public(…)"),
        (["own.py:double", "-s", "x=secret(3, bit=8)"], 2, "unexpected keyword argument 'bit'"),
        (["own.py:double", "-s", "x=secret(3)"], 2, "secret(3): say which numbers"),
        (["own.py:double", "-s", "x=secret(3, low=0, high=1/0)"], 2, "of two numbers"),
        (["own.py:careless", "-s", "x=secret(3, bits=8)"], 2, "own.py:23"),
        (["own.py:forgetful", "-s", "x=secret(3, bits=8)"], 2, "own.py:27: NameError"),
        (["own.py:double", "-s", "x=secret(3, bits=8)", "--graph", "it.pdf"], 2, ".svg or .dot"),
        (["own.py:double", "-s", "x=secret(3, bits=8)", "--precision", "40"], 2, "1 to 30 bits"),
    ],
)
def test_errors_say_what_to_write(
    program: Program, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    (tmp_path / "broken.py").write_text("def f(x):\n    return 1 / x\n\n\nf(0)\n")
    (tmp_path / "own.py.npy").write_text("words")
    assert says in program("program", "analyse", *words, code=code).stderr


def test_help_teaches(program: Program) -> None:
    assert "--sample" in program("program", "analyse", "--help").stdout
    assert "nearest.py:nearest" in program("program", "--help").stdout


def test_halves_need_nothing_but_each_others_files(program: Program, tmp_path: Path) -> None:
    x, y = (np.load(tmp_path / f"{name}.npy") for name in "xy")
    declared = ("-s", "x=secret(16, bits=1)", "-s", "y=secret(16, bits=1)")
    secret = {"CIPHERVEC_PASSPHRASE": "a long passphrase"}

    def halves(*words: object, code: int = 0, **environment: str) -> str:
        done = program("program", *words, code=code, **environment)
        return done.stdout + done.stderr

    assert "next: ciphervec program keygen it.plan" in halves(
        "plan", "own.py:hamming", *declared, "--out", "it.plan"
    )
    made = ("keygen", "it.plan", "--out", "my.key", "--server-keys", "server.keys")
    assert "readable by you alone" in halves(*made, **secret)
    assert "never overwritten" in halves(*made, code=5, **secret)
    (tmp_path / "own.py").unlink()
    halves("encrypt", "it.plan", "x=x.npy", "--keys", "my.key", "--out", "kept", **secret)
    halves("encrypt", "it.plan", "y=y.npy", "--keys", "my.key", "--out", "asked", **secret)

    # The server has the plan, its keys and what was encrypted.
    run = ("compute", "it.plan", "server.keys", "kept/x.enc", "asked/y.enc", "--out", "answer.enc")
    assert "steps took" in halves(*run)
    assert "'y'" in halves(*run[:4], "--out", "none.enc", code=2).replace('"', "'")

    read = ("decrypt", "it.plan", "answer.enc", "--keys", "my.key")
    assert f"result: {np.sum(x != y)}\n" in halves(*read, **secret)
    halves(*read, "--out", "found.npz", **secret)
    with np.load(tmp_path / "found.npz") as found:
        assert found["result"] == np.sum(x != y)
    assert "passphrase" in halves(*read, code=3, CIPHERVEC_PASSPHRASE="another one")
    assert "keyboard" in halves(*read, code=2)
    assert "answer" in halves("decrypt", "it.plan", "gone.enc", "--keys", "my.key", code=4, **secret)
    wrong = ("encrypt", "it.plan", "z=x.npy", "--keys", "my.key", "--out", "asked")
    assert "no input 'z'; it has x, y" in halves(*wrong, code=2, **secret)

    # A key in clear asks for no passphrase; another key reads nothing.
    halves("keygen", "it.plan", "--out", "other.key", "--server-keys", "other.keys", "--no-passphrase")
    assert halves("decrypt", "it.plan", "answer.enc", "--keys", "other.key", code=3)
    assert halves("compute", "it.plan", "other.keys", *run[3:5], "--out", "o.enc", code=3)
    damaged = bytearray((tmp_path / "it.plan").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "bad.plan").write_bytes(damaged)
    assert halves("compute", "bad.plan", "server.keys", *run[3:5], "--out", "o.enc", code=6)


def test_public_inputs_are_written_as_they_are(program: Program, tmp_path: Path) -> None:
    x, y = np.arange(16), np.arange(16)[::-1] % 7
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    declared = ("-s", "x=secret(16, bits=4)", "-s", "y=public(16, bits=4)")
    said = program("program", "analyse", "own.py:hamming", *declared).stdout
    assert "y: public, the server sees all 16 numbers" in " ".join(said.split())
    program("program", "plan", "own.py:hamming", *declared, "--out", "p.plan")
    made = ("keygen", "p.plan", "--out", "p.key", "--server-keys", "p.keys", "--no-passphrase")
    program("program", *made)
    sent = ("program", "encrypt", "p.plan", "x=x.npy", "y=y.npy", "--keys", "p.key", "--out", "p")
    assert "y is public, and written as it is" in " ".join(program(*sent).stdout.split())
    assert (tmp_path / "p" / "y.enc").stat().st_size < 256
    program("program", "compute", "p.plan", "p.keys", "p/x.enc", "p/y.enc", "--out", "a.enc")
    found = program("program", "decrypt", "p.plan", "a.enc", "--keys", "p.key").stdout
    assert f"result: {np.sum(x != y)}" in found
    np.save(tmp_path / "y.npy", y + 16)
    refused = program(*sent, code=2)
    assert "from 0 to 15" in " ".join((refused.stdout + refused.stderr).split())


def test_a_program_on_a_server_is_pushed_asked_listed_and_removed(
    program: Program, tmp_path: Path, server_url: str
) -> None:
    def on_server(*words: object, code: int = 0) -> str:
        done = program("program", *words, "--url", server_url, code=code)
        return " ".join((done.stdout + done.stderr).split())

    program(
        "program", "plan", "own.py:hamming", "-s", "x=x.npy", "-s", "y=y.npy", "--out", "h.plan", *FOR_SERVERS
    )
    for name in ("mine", "theirs"):
        program(
            *("program", "keygen", "h.plan", "--out", f"{name}.key", "--server-keys", f"{name}.keys"),
            "--no-passphrase",
        )
        program("program", "encrypt", "h.plan", "x=x.npy", "y=y.npy", "--keys", f"{name}.key", "--out", name)
    said = on_server("push", "h", "h.plan", "--server-keys", "mine.keys", "--keep", "mine/y.enc")
    assert "is there as h" in said and "y is kept" in said and "predicted to take" in said
    on_server("push", "h", "h.plan", "--server-keys", "theirs.keys", "--keep", "theirs/y.enc")
    expected = int(np.sum(np.load(tmp_path / "x.npy") != np.load(tmp_path / "y.npy")))
    for name in ("mine", "theirs"):
        on_server("ask", "h", f"{name}/x.enc", "--kept", "y", "--out", "answer.enc")
        found = program("program", "decrypt", "h.plan", "answer.enc", "--keys", f"{name}.key").stdout
        assert f"result: {expected}" in found
    key = (tmp_path / "mine.keys").read_bytes()[16:24].hex()
    on_server("ask", "h", "mine/x.enc", "mine/y.enc", "--out", "answer.enc")
    listed = json.loads(program("program", "list", "--url", server_url, "--json").stdout)
    assert [(one["name"], one["keys"]) for one in listed] == [("h", 2)]
    assert "h" in on_server("list") and key in on_server("list", "h")
    known = json.loads(program("program", "list", "h", "--url", server_url, "--json").stdout)
    assert list(known["keys"][key]["inputs"]) == ["y"]
    assert "no input is kept" in on_server("ask", "h", "mine/x.enc", "--kept", "z", "--out", "a", code=2)
    assert "--key" in on_server("remove", "h", "--kept", "y", code=2)
    on_server("remove", "h", "--key", key, "--kept", "y")
    on_server("remove", "h", "--key", key)
    assert "no such program, keys" in on_server("remove", "h", "--key", key, code=4)
    on_server("remove", "h")
    assert "no such program" in on_server("list", "h", code=4)
    assert "matches" not in on_server("list")
