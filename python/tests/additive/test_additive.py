"""The additively homomorphic schemes against Python's integers, float64, phe, and hostile bytes."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import (
    BoundExceeded,
    CorruptData,
    InvalidInput,
    StorageError,
    UnsupportedVersion,
    WrongKey,
    _native,
    damgard_jurik,
    elgamal,
    okamoto_uchiyama,
    paillier,
)

pytestmark = pytest.mark.core

# Short keys: what is tested is arithmetic and checks, not security.
PAIRS = {
    "paillier": lambda: paillier.generate(512, insecure=True),
    "paillier-uniform": lambda: paillier.generate(512, noise="uniform", insecure=True),
    "paillier-subgroup": lambda: paillier.generate(512, noise="subgroup", insecure=True),
    "damgard-jurik": lambda: damgard_jurik.generate(512, insecure=True),
    "okamoto-uchiyama": lambda: okamoto_uchiyama.generate(1024, insecure=True),
    "elgamal": elgamal.generate,
}
SECRET = "correct horse"


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Any:
    return PAIRS[request.param]()


@pytest.fixture(scope="module")
def small() -> Any:
    return PAIRS["paillier"]()


def test_integers_follow_pythons(pair: Any) -> None:
    for a, b in [(0, 0), (1, -1), (-60_000, 59_999), (12_345, -131_000)]:
        x, y = pair.encrypt(a), pair.public.encrypt(b)
        for sealed, expected in [
            (x, a),
            (y, b),
            (x + y, a + b),
            (x - y, a - b),
            (-x, -a),
            (x + 3, a + 3),
            (3 + x, a + 3),
            (x - 7, a - 7),
            (7 - x, 7 - a),
            (x * 5, 5 * a),
            (-5 * x, -5 * a),
            (x * 0, 0),
            (x.rerandomise(), a),
        ]:
            found = pair.decrypt(sealed)
            assert type(found) is int and found == expected
            assert sealed.error == 0


@given(a=st.integers(-(2**180), 2**180), b=st.integers(-(2**180), 2**180), k=st.integers(-(2**70), 2**70))
def test_wide_integers_follow_pythons(small: Any, a: int, b: int, k: int) -> None:
    x, y = small.encrypt(a), small.encrypt(b)
    assert small.decrypt((x + y) * k - b) == (a + b) * k - b


def test_large_integers_in_lists_stay_integers(small: Any) -> None:
    for numbers in ([2**63 + 1, 5], [2**64 - 1, -1], [[2**70 + 1], [np.int64(3)]]):
        assert small.decrypt(small.encrypt(numbers, bits=100)).tolist() == numbers
    for bad in ([np.ma.array([1, 2], mask=[0, 1])], np.array([1 + 2j, 2**70], object), [10**400, 0.5]):
        with pytest.raises(InvalidInput):
            small.encrypt(bad)
    for index in (1.0, "0", None, (0, 0), [0], True):
        with pytest.raises(InvalidInput, match="whole number"):
            small.encrypt([1, 2])[index]


def test_floats_stay_within_the_stated_error(pair: Any) -> None:
    a, b = 3.141592653589793, -2.718281828459045
    x, y = pair.encrypt(a), pair.encrypt(b)
    for sealed, exact in [
        (x, a),
        (x + y, a + b),
        (x - y, a - b),
        (x * -3, -3 * a),
        (x * 0.37, 0.37 * a),
        (x + 0.1, a + 0.1),
        (1 - x, 1 - a),
        (x * 0.25, a / 4),
    ]:
        found = pair.decrypt(sealed)
        assert type(found) is float
        assert abs(found - exact) <= sealed.error + 4 * math.ulp(exact)
        assert sealed.error < (1e-15 if pair.scheme != "elgamal" else 0.01)


def test_integers_and_floats_mix(small: Any) -> None:
    whole, real = small.encrypt(10_000), small.encrypt(0.5)
    assert small.decrypt(1.05 * whole) == 10_500
    assert small.decrypt(whole + 0.25) == 10_000.25
    assert small.decrypt(whole + real) == 10_000.5
    assert small.decrypt(real - 1) == -0.5
    assert small.decrypt(small.encrypt(1e200)) == 1e200 if small.bits > 2000 else True
    assert small.decrypt(small.encrypt(5, fraction_bits=3)) == 5.0


def test_arrays_keep_their_shape_and_type(pair: Any, rng: np.random.Generator) -> None:
    for shape in [(1,), (5,), (1, 1), (3, 4), (4, 1), (1, 6)]:
        a, b = rng.integers(-100, 100, shape), rng.integers(-100, 100, shape)
        x = pair.encrypt(a, bits=10)
        assert x.shape == shape and len(x) == shape[0]
        for sealed, expected in [
            (x, a),
            (x + pair.public.encrypt(b, bits=10), a + b),
            (x + b, a + b),
            (b - x, b - a),
            (x * b, a * b),
            (b * x, a * b),
            (-x, -a),
            (x * 3, 3 * a),
            (x.sum(), a.sum(axis=-1)),
        ]:
            found = pair.decrypt(sealed)
            assert np.array_equal(found, expected)
            assert np.asarray(found).dtype == np.int64
        assert np.array_equal(pair.decrypt(x[-1]), a[-1])
        assert np.array_equal(pair.decrypt(x[0:1]), a[0:1])
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(InvalidInput):
        x[::2]


def test_dot_products(pair: Any, rng: np.random.Generator) -> None:
    for left, right in [
        ((7,), (7,)),
        ((7,), (7, 3)),
        ((4, 7), (7,)),
        ((4, 7), (7, 3)),
        ((4, 7), (7, 1)),
        ((1, 7), (7,)),
    ]:
        a, w = rng.integers(-100, 100, left), rng.integers(-100, 100, right)
        sealed = pair.encrypt(a, bits=8) @ w
        assert sealed.shape == np.shape(a @ w)
        assert np.array_equal(pair.decrypt(sealed), a @ w)
        x, v = rng.normal(size=left) / 8, rng.normal(size=right) / 8
        product = pair.encrypt(x, bits=14, fraction_bits=12) @ v
        assert np.abs(pair.decrypt(product) - x @ v).max() <= product.error + 1e-15
        assert product.error < 0.02
    assert [pair.decrypt(one) for one in pair.encrypt([1, 2, 3])] == [1, 2, 3]


def test_floats_are_exact_to_the_last_digit_where_there_is_room(small: Any, rng: np.random.Generator) -> None:
    x, w = rng.normal(size=50), rng.normal(size=50)
    assert np.array_equal(small.decrypt(small.encrypt(x)), np.rint(x * 2.0**64) / 2.0**64)
    found = small.decrypt(small.encrypt(x) @ w)
    assert abs(found - math.fsum(a * b for a, b in zip(x, w, strict=True))) < 1e-14


def test_big_integers_come_back_as_python_ints(small: Any) -> None:
    values = [2**200, -(2**199), 7]
    found = small.decrypt(small.encrypt(values) * 2**20)
    assert found.dtype == object and list(found) == [one * 2**20 for one in values]


def test_what_might_overflow_is_refused_beforehand(pair: Any) -> None:
    room = pair.public.message_bits - 1
    top = pair.encrypt(2**room - 1, bits=room)
    assert pair.decrypt(top) == 2**room - 1
    assert pair.decrypt(-top) == 1 - 2**room
    for compute in (
        lambda: top + top,
        lambda: top + 1,
        lambda: top * 2,
        lambda: top * 1.5,
        lambda: top - top,
    ):
        with pytest.raises(InvalidInput, match="overflow"):
            compute()
    wide = pair.encrypt([1, 1], bits=room - 1)
    assert pair.decrypt(wide.sum()) == 2
    with pytest.raises(InvalidInput, match="overflow"):
        wide @ [2, 1]
    for x, options in [
        (2**room, {"bits": room}),
        (256, {"bits": 8}),
        (4.0, {"bits": 8, "fraction_bits": 6}),
        (1, {"bits": room + 1}),
        (1, {"bits": 0}),
        (1.0, {"bits": 4, "fraction_bits": 5}),
    ]:
        with pytest.raises(InvalidInput):
            pair.encrypt(x, **options)


def test_a_false_bound_is_found_out_and_no_value_shown(pair: Any) -> None:
    honest = pair.public.encrypt(1000, bits=20)
    honest._numbers = honest._numbers._replace(bound=999 // 2)
    with pytest.raises(BoundExceeded) as caught:
        pair.decrypt(honest)
    assert "1000" not in str(caught.value)
    assert isinstance(caught.value, ArithmeticError)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ("7", "str"),
        (b"7", "bytes"),
        ([], "at least one"),
        ([[1], [2, 3]], "rectangular"),
        (np.zeros((2, 2, 2)), "two axes"),
        ([1.0, math.nan], "NaN"),
        (math.inf, "infinity"),
        (1j, "complex"),
        ([None, 1], "object"),
        (np.ma.masked_array([1, 2], mask=[True, False]), "masked"),
    ],
)
def test_what_is_no_number_is_named(small: Any, x: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        small.encrypt(x)
    with pytest.raises(InvalidInput, match=says):
        small.encrypt(1) + x


def test_shapes_and_ciphertexts_that_do_not_fit(small: Any) -> None:
    x = small.encrypt([1, 2, 3])
    for compute in (
        lambda: x + np.array([1, 2]),
        lambda: x * [[1, 2, 3]],
        lambda: x + small.encrypt([1, 2]),
        lambda: x @ [1, 2],
        lambda: x @ 3,
        lambda: small.encrypt(1) @ [1],
        lambda: x * x,
        lambda: x @ x,
        lambda: small.decrypt(7),
    ):
        with pytest.raises(InvalidInput):
            compute()
    with pytest.raises(TypeError):
        len(small.encrypt(1))


def test_another_key_is_refused(pair: Any) -> None:
    x, scores = pair.encrypt([1, 2]), pair.encrypt_vectors([[1.0, 2.0]]) @ [0.0, 1.0]
    for other in (PAIRS["paillier"](), PAIRS["elgamal"]()):
        for compute in (
            lambda other=other: other.decrypt(x),
            lambda other=other: other.decrypt(scores),
            lambda other=other: other.matches(scores, 0.5),
            lambda other=other: x + other.encrypt([1, 2]),
            lambda other=other: other.public._native.add(x._table, x._table),
        ):
            with pytest.raises(WrongKey):
                compute()
        expected = WrongKey if other.scheme == pair.scheme else CorruptData
        with pytest.raises(expected):
            other.public.array_from_bytes(x.to_bytes())
        with pytest.raises((WrongKey, CorruptData)):
            other.public.scores_from_bytes(scores.to_bytes())


def test_keys_travel_and_only_public_ones_pickle(pair: Any) -> None:
    public = type(pair.public).from_bytes(pair.public.to_bytes(), insecure=True)
    assert public == pair.public and hash(public) == hash(pair.public)
    assert pickle.loads(pickle.dumps(pair.public)) == pair.public
    assert pair.decrypt(public.encrypt(-3)) == -3
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="save them to a file"):
            copied(pair)
    assert "secret not shown" in repr(pair) and pair.key_id in repr(pair)


@pytest.mark.slow
def test_secret_keys_are_saved_under_a_passphrase(pair: Any, tmp_path: Path) -> None:
    module = {
        "paillier": paillier,
        "damgard-jurik": damgard_jurik,
        "okamoto-uchiyama": okamoto_uchiyama,
        "elgamal": elgamal,
    }[pair.scheme]
    allowed: dict[str, Any] = {} if module is elgamal else {"insecure": True}
    path = tmp_path / "my.key"
    pair.save(path, SECRET)
    assert path.stat().st_mode & 0o777 == 0o600
    again = module.load(path, SECRET, **allowed)
    assert again.decrypt(pair.encrypt(41) + 1) == 42
    with pytest.raises(WrongKey):
        module.load(path, "incorrect horse", **allowed)
    with pytest.raises(InvalidInput, match="passphrase"):
        module.load(path, **allowed)
    with pytest.raises(StorageError):
        pair.save(path, SECRET)
    with pytest.raises(InvalidInput, match="allow_plaintext"):
        pair.save(tmp_path / "clear.key")
    with pytest.raises(StorageError):
        module.load(tmp_path / "absent.key", SECRET, **allowed)
    clear = pair.to_bytes(allow_plaintext=True)
    assert module.from_bytes(clear, **allowed).key_id == pair.key_id
    assert pair.to_bytes(SECRET) != pair.to_bytes(SECRET)
    other = elgamal if module is not elgamal else okamoto_uchiyama
    with pytest.raises(InvalidInput, match=pair.scheme):
        other.from_bytes(clear, **({} if other is elgamal else {"insecure": True}))
    for at in range(0, len(clear), 7):
        with pytest.raises((CorruptData, InvalidInput)):
            module.from_bytes(clear[:at] + bytes([clear[at] ^ 1]) + clear[at + 1 :], **allowed)


def test_a_master_key_is_told_from_a_scheme_key(small: Any, tmp_path: Path) -> None:
    import ciphervec

    ciphervec.Keys.generate().save(tmp_path / "master.key", SECRET)
    with pytest.raises(InvalidInput, match="master key"):
        paillier.load(tmp_path / "master.key", SECRET)
    small.save(tmp_path / "paillier.key", SECRET)
    with pytest.raises(InvalidInput, match="additively homomorphic"):
        ciphervec.Keys.load(tmp_path / "paillier.key", SECRET)


def test_short_keys_have_to_be_asked_for(small: Any) -> None:
    for generate in (paillier.generate, damgard_jurik.generate, okamoto_uchiyama.generate):
        with pytest.raises(InvalidInput, match="2048"):
            generate(1024)
    with pytest.raises(InvalidInput, match="2048"):
        paillier.PublicKey.from_bytes(small.public.to_bytes())
    with pytest.raises(InvalidInput, match="2048"):
        paillier.from_bytes(small.to_bytes(allow_plaintext=True))
    with pytest.raises(InvalidInput, match="noise"):
        paillier.generate(512, noise="none", insecure=True)
    with pytest.raises(InvalidInput):
        damgard_jurik.generate(512, 4, insecure=True)


def test_security_is_stated(pair: Any) -> None:
    says = pair.security()
    assert set(says) == {"bits", "table", "assumption", "post_quantum", "insecure"}
    assert says["post_quantum"] is False
    assert says["insecure"] is (pair.scheme != "elgamal")
    assert elgamal.generate().security()["bits"] == 126


def test_arrays_travel(pair: Any) -> None:
    x = pair.encrypt([[1.5, -2.0, 3.25], [0.0, 1.0, -0.125]])
    for sealed in (x, x * 2, x[1], pair.encrypt(7), pair.encrypt([1, -2]) @ [3, 4]):
        data = sealed.to_bytes()
        again = pair.public.array_from_bytes(data)
        assert again.to_bytes() == data
        assert np.array_equal(pair.decrypt(again), pair.decrypt(sealed))
        assert (again.shape, again.fraction_bits, again.error) == (
            sealed.shape,
            sealed.fraction_bits,
            sealed.error,
        )
        copied = pickle.loads(pickle.dumps(sealed))
        assert np.array_equal(pair.decrypt(copied), pair.decrypt(sealed))


def test_results_are_rerandomised_before_they_leave(pair: Any) -> None:
    x = pair.encrypt([1, 2])
    doubled = x + x
    assert x.to_bytes() == x.to_bytes() and doubled.to_bytes() != doubled.to_bytes()
    assert doubled.to_bytes(rerandomise=False) == doubled.to_bytes(rerandomise=False)
    assert x.rerandomise().to_bytes() != x.to_bytes()
    # All noise has cancelled: without fresh noise this would show its message.
    nothing = x - x
    assert np.array_equal(pair.decrypt(pair.public.array_from_bytes(nothing.to_bytes())), [0, 0])


def test_corrupt_bytes_are_refused(pair: Any) -> None:
    data = pair.encrypt(5).to_bytes()
    read = pair.public.array_from_bytes
    for at in range(len(data)):
        with pytest.raises(CorruptData):
            read(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
    for length in range(0, len(data), 11):
        with pytest.raises(CorruptData):
            read(data[:length])
    with pytest.raises(CorruptData):
        read(data + b"\0")
    with pytest.raises(UnsupportedVersion):
        read(data[:4] + b"\2\0\0\0" + data[8:])
    with pytest.raises(InvalidInput, match="bytes expected"):
        read("CVEA")
    for reader in (
        pair.public.vectors_from_bytes,
        pair.public.scores_from_bytes,
        paillier.PublicKey.from_bytes,
    ):
        with pytest.raises(CorruptData):
            reader(data)


def test_forged_heads_are_refused(small: Any) -> None:
    import hashlib
    import struct

    data = small.encrypt([5, 6]).to_bytes()

    def forge(**change: int | float) -> bytes:
        fields = dict(
            zip(
                ("axes", "floats", "fraction", "bits", "error"),
                struct.unpack_from("<BBIId", data, 40),
                strict=True,
            )
        )
        count = change.pop("count", 2)
        fields.update(change)
        body = struct.pack("<BBIId", *fields.values()) + struct.pack("<Q", int(count)) + data[40 + 18 + 8 :]
        return data[:8] + hashlib.blake2b(body, digest_size=32).digest() + body

    assert np.array_equal(small.decrypt(small.public.array_from_bytes(forge())), [5, 6])
    for bad in (
        {"axes": 3},
        {"axes": 0},
        {"axes": 255},
        {"floats": 2},
        {"bits": 0},
        {"bits": 511},
        {"bits": 2**32 - 1},
        {"fraction": 2**31},
        {"error": math.nan},
        {"error": -1.0},
        {"count": 3},
        {"count": 2**63},
    ):
        with pytest.raises(CorruptData):
            small.public.array_from_bytes(forge(**bad))


ERROR = {"small": 1e-3, "standard": 1e-4, "high": 1e-12}


@pytest.mark.parametrize("layout", ["elements", "lanes", "horizontal"])
@pytest.mark.parametrize("precision", ["small", "standard", "high"])
def test_cosines(pair: Any, layout: str, precision: str, rng: np.random.Generator) -> None:
    if pair.scheme == "elgamal" and (layout != "elements" or precision == "high"):
        with pytest.raises(InvalidInput):
            pair.encrypt_vectors(rng.normal(size=(3, 16)), precision=precision, layout=layout)
        return
    if layout == "horizontal" and pair.public.message_bits < 600:
        return
    rows, probes = rng.normal(size=(5, 16)) * 3, rng.normal(size=(2, 16))
    probes[1] = rows[2]
    cosines = probes @ rows.T / np.outer(np.linalg.norm(probes, axis=1), np.linalg.norm(rows, axis=1))
    for encryptor in (pair, pair.public):
        sealed = encryptor.encrypt_vectors(rows, precision=precision, layout=layout)
        assert (len(sealed), sealed.dimension, sealed.layout) == (5, 16, layout)
        assert sealed.error_bound < 2 * ERROR[precision]
        found = pair.decrypt(sealed.scores(probes))
        assert found.shape == (2, 5)
        assert np.abs(found - cosines).max() <= ERROR[precision]
    one = sealed @ probes[1]
    assert one.shape == (5,)
    assert np.abs(pair.decrypt(one) - cosines[1]).max() <= ERROR[precision]
    assert np.array_equal(pair.matches(one, 0.9), cosines[1] >= 0.9)
    assert sum(pair.matches(one, 0.9)) == 1
    # Across the wire, with another noise for the same scores.
    far = pair.public.vectors_from_bytes(sealed.to_bytes())
    assert far.to_bytes() == sealed.to_bytes()
    answer = (far @ probes[0]).to_bytes()
    assert answer != (far @ probes[0]).to_bytes()
    scores = pair.decrypt(pair.public.scores_from_bytes(answer))
    assert scores.shape == (5,) and np.abs(scores - cosines[0]).max() <= ERROR[precision]
    assert np.abs(pair.decrypt(pickle.loads(pickle.dumps(one))) - cosines[1]).max() <= ERROR[precision]


def test_metrics(pair: Any, rng: np.random.Generator) -> None:
    rows, probe = rng.normal(size=(4, 12)) * 5, rng.normal(size=12)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(probe)
    inner = pair.encrypt_vectors(rows, metric="ip")
    assert np.all(np.abs(pair.decrypt(inner @ probe) - rows @ probe) <= 1e-4 * lengths)
    squares = pair.decrypt(pair.encrypt_vectors(rows, metric="l2") @ probe)
    assert np.all(np.abs(squares - ((rows - probe) ** 2).sum(axis=1)) <= 2e-4 * lengths)
    bits, other = rng.random((4, 12)) < 0.5, rng.random(12) < 0.5
    hamming = pair.encrypt_vectors(bits, metric="hamming") @ other
    assert np.array_equal(pair.decrypt(hamming), (bits != other).sum(axis=1))
    assert np.array_equal(pair.matches(hamming, 5), (bits != other).sum(axis=1) <= 5)
    # Norms are not encrypted and do not travel.
    far = pair.public.scores_from_bytes((inner @ probe).to_bytes())
    with pytest.raises(InvalidInput, match="norms"):
        pair.decrypt(far)
    known = {"norms": np.linalg.norm(rows, axis=1), "probe_norms": [np.linalg.norm(probe)]}
    assert np.all(np.abs(pair.decrypt(far, **known) - rows @ probe) <= 1e-4 * lengths)


def test_galleries_grow(small: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(7, 8))
    parts = [small.encrypt_vectors(rows[:3], layout="lanes"), small.encrypt_vectors(rows[3:], layout="lanes")]
    both = type(parts[0]).append(parts)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(small.decrypt(both @ rows[4]) - units @ units[4]).max() < 1e-4
    assert small.public.lanes() == 510 // 33 or small.public.lanes() >= 10
    with pytest.raises(InvalidInput):
        type(parts[0]).append([])
    with pytest.raises(InvalidInput):
        type(parts[0]).append([parts[0], small.encrypt_vectors(rows)])
    with pytest.raises(WrongKey):
        type(parts[0]).append([parts[0], PAIRS["paillier"]().encrypt_vectors(rows, layout="lanes")])


def test_bad_vectors_are_named(small: Any) -> None:
    for rows in ([[1.0, math.nan]], [[0.0, 0.0]], [], [[1], [2, 3]], np.zeros((2, 2, 2)), "seven"):
        with pytest.raises(InvalidInput):
            small.encrypt_vectors(rows)
    for option in ({"metric": "angle"}, {"precision": "double"}, {"layout": "columns"}):
        with pytest.raises(InvalidInput):
            small.encrypt_vectors([[1.0, 2.0]], **option)
    sealed = small.encrypt_vectors([[1.0, 2.0]])
    for probe in ([1.0], [[1.0, 2.0]], [0.0, 0.0], 3.0):
        with pytest.raises(InvalidInput):
            sealed @ probe
    with pytest.raises(WrongKey):
        PAIRS["paillier"]().decrypt(sealed @ [1.0, 0.0])


def test_phe_computes_the_same() -> None:
    phe = pytest.importorskip("phe")
    public, private = phe.paillier.generate_paillier_keypair(n_length=512)
    pair = paillier.generate(512, insecure=True)
    x, w = [3, -14, 159, -2653], [5, -8, 0, 97]
    theirs = sum(c * int(k) for c, k in zip((public.encrypt(one) for one in x), w, strict=True))
    assert pair.decrypt(pair.encrypt(x) @ w) == private.decrypt(theirs)
    a, b = 0.1, -7.25
    theirs = (public.encrypt(a) - public.encrypt(b)) * 3.5 + 1
    ours = (pair.encrypt(a) - pair.encrypt(b)) * 3.5 + 1
    assert abs(pair.decrypt(ours) - private.decrypt(theirs)) < 1e-12


def test_natives_are_not_to_be_made_by_hand() -> None:
    for made in (paillier.PublicKey, paillier.KeyPair):
        with pytest.raises(InvalidInput):
            made(b"")
    with pytest.raises(TypeError):
        pickle.dumps(_native.AdditiveSecretKey.generate("elgamal"))
