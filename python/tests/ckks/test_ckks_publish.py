"""What publish() rests on: computations that the owner knows, and never what bytes say of themselves."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ciphervec import InvalidInput, _native, ckks
from ciphervec.errors import BoundExceeded, CorruptData

FRAME = 64
"""Bytes of a frame's head, which ends in the checksum of the rest."""
FIGURES = FRAME + 2 + 4 + 4
"""Where a ciphertext's frame has scale, deviation and bound of the error, and magnitude: a double each."""
POLICY = {"uses": 64, "statistical_bits": 8}
INTERVAL = (0.25, 1.0)
BITS = 10


@pytest.fixture(scope="module")
def shallow() -> ckks.Context:
    return ckks.Context.for_depth(1, precision_bits=20)


@pytest.fixture(scope="module")
def deep() -> ckks.Context:
    depth = ckks.depth_for("distance", lengths=INTERVAL, precision_bits=BITS, batch=True)
    return ckks.Context.for_depth(depth + 1, precision_bits=24, sums=4)


def sealed(data: bytearray) -> bytes:
    """The array with checksums that fit, as whoever writes bytes can make them."""
    inner = data.find(b"CVEC", 1)
    while inner > 0:
        end = inner + FRAME + int.from_bytes(data[inner - 4 : inner], "little") - FRAME
        frame = data[inner:end]
        frame[FRAME - 32 : FRAME] = _native.blake3(bytes(frame[: FRAME - 32] + frame[FRAME:]))
        data[inner:end] = frame
        inner = data.find(b"CVEC", end)
    data[FRAME - 32 : FRAME] = _native.blake3(bytes(data[: FRAME - 32] + data[FRAME:]))
    return bytes(data)


def saying(array: ckks.CkksArray, change: Callable[[list[float]], list[float]]) -> bytes:
    """The bytes of an array of one ciphertext that says something else of itself."""
    data = bytearray(array.to_bytes())
    at = data.find(b"CVEC", 1) + FIGURES
    figures = change(list(struct.unpack_from("<4d", data, at)))
    struct.pack_into("<4d", data, at, *figures)
    return sealed(data)


def test_a_supplier_who_writes_a_small_error_is_refused_and_nothing_is_counted(shallow: ckks.Context) -> None:
    """With the public key alone: one published result used to give the secret key."""
    published = shallow._owner.published
    supplier = ckks.PublicContext.from_bytes(shallow.public(encryption=True).to_bytes())
    x = np.random.default_rng(1).uniform(-1, 1, shallow.slots)
    array = supplier.encrypt(x)
    fresh = shallow.encrypt(x)
    _, std, bound, _ = struct.unpack_from(
        "<4d", fresh.to_bytes(), fresh.to_bytes().find(b"CVEC", 1) + FIGURES
    )
    for small in ([1e-30, 1e-30], [std, bound / 2], [std / 2, bound], [std, 5e-324]):
        with pytest.raises(CorruptData, match="less than that of a fresh ciphertext"):
            shallow.array_from_bytes(saying(array, lambda old, small=small: [old[0], *small, old[3]]))  # type: ignore[misc]
    # The least that may be claimed: of a ciphertext under the secret key.
    least = shallow.array_from_bytes(saying(array, lambda old: [old[0], std, bound, old[3]]))
    honest = shallow.array_from_bytes(array.to_bytes())
    huge = shallow.array_from_bytes(saying(array, lambda old: [old[0], old[1], 1e30, 2.0**40]))
    for claimed in (least, honest, huge):
        with pytest.raises(InvalidInput, match="not believed"):
            shallow.publish(claimed, **POLICY)
        with pytest.raises(InvalidInput, match="not believed"):
            shallow.publish(fresh, expected=claimed, **POLICY)
    # Not as an instance of another computation either: scale, error and magnitude are that one's.
    for other in (huge, shallow.array_from_bytes(saying(array, lambda old: [old[0] / 2, *old[1:]]))):
        with pytest.raises(InvalidInput, match="as the expected computation gives it"):
            shallow.publish(other, expected=supplier_like(shallow, x), **POLICY)
    assert shallow._owner.published == published


def supplier_like(context: ckks.Context, x: np.ndarray) -> ckks.CkksArray:
    """What the owner expects of a supplier: an array under the public key, made by itself."""
    return ckks.CkksArray(context, context.public(encryption=True).encrypt(np.zeros_like(x))._inner)


def test_the_flood_is_for_the_computation_that_the_owner_expects() -> None:
    context = ckks.Context.for_depth(1, precision_bits=20)
    supplier = ckks.PublicContext.from_bytes(context.public(encryption=True).to_bytes())
    x = np.random.default_rng(2).uniform(-1, 1, 1024)
    array, like = supplier.encrypt(x), supplier_like(context, x)
    fresh = context.encrypt(x)
    figures = struct.unpack_from("<4d", fresh.to_bytes(), fresh.to_bytes().find(b"CVEC", 1) + FIGURES)
    least = context.array_from_bytes(saying(array, lambda old: [old[0], *figures[1:3], old[3]]))
    scale, _, bound, _ = struct.unpack_from(
        "<4d", array.to_bytes(), array.to_bytes().find(b"CVEC", 1) + FIGURES
    )
    deviation = bound / scale * np.sqrt(1024 * 64) * 2.0**7
    for received in (array, least):
        found = context.publish(context.array_from_bytes(received.to_bytes()), expected=like, **POLICY)
        # 1,024 Gaussian numbers: eight deviations of their sample's deviation.
        assert abs(np.std(found - x) / deviation - 1) < 8 / np.sqrt(2 * 1024) + 0.01
    # An owner who expects less than came is told so: the array is under the public key.
    with pytest.raises(InvalidInput, match="as the expected computation gives it"):
        context.publish(context.array_from_bytes(array.to_bytes()), expected=context.encrypt(x), **POLICY)
    # Larger numbers than the owner's own, too.
    wide = context.array_from_bytes(supplier.encrypt(4 * x).to_bytes())
    with pytest.raises(InvalidInput, match="numbers up to"):
        context.publish(wide, expected=like, **POLICY)
    assert context._owner.published == ((64, 8), 2)


OPERATIONS: dict[str, Callable[[ckks.CkksArray, ckks.CkksArray], ckks.CkksArray]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "subtract from": lambda a, b: b - a,
    "multiply": lambda a, b: a * b,
    "dot": lambda a, b: a @ b,
    "other dot": lambda a, b: b @ a,
    "squared distance": lambda a, b: a.squared_distance(b),
    "distance": lambda a, b: a.distance(b),
    "distance within": lambda a, b: a.distance(b, within=INTERVAL, precision_bits=BITS),
    "negate": lambda a, _: -a,
    "add plain": lambda a, _: a + 1.0,
    "subtract plain": lambda a, _: a - np.full(4, 0.5),
    "multiply plain": lambda a, _: a * 2,
    "dot plain": lambda a, _: a @ np.full(4, 0.5),
    "distance within plain": lambda a, _: a.distance(np.zeros(4), within=INTERVAL, precision_bits=BITS),
    "sum": lambda a, _: a.sum(),
    "bounded": lambda a, _: a.bounded(4.0),
    "rotate": lambda a, _: a.rotate(1),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("layout", ["slots", "single"])
def test_what_is_computed_from_read_bytes_is_the_word_of_who_wrote_them(
    deep: ckks.Context, name: str, layout: str
) -> None:
    if layout == "single" and name == "rotate":
        pytest.skip("vectors are turned in layout slots")
    x, y = np.array([0.3, 0.2, 0.1, -0.3]), np.array([0.1, -0.2, 0.1, 0.1])
    a, b = deep.encrypt(x, layout=layout), deep.encrypt(y, layout=layout)
    if name == "rotate":
        deep = ckks.Context.for_depth(1, precision_bits=24, rotations=[1])
        a, b = deep.encrypt(x), deep.encrypt(y)
    operation = OPERATIONS[name]
    own = operation(a, b)
    read = operation(deep.array_from_bytes(a.to_bytes()), b)
    sent = deep.array_from_bytes(own.to_bytes())
    for array in (read, sent):
        with pytest.raises(InvalidInput, match="not believed"):
            deep.publish(array, **POLICY)
        assert deep._owner.uses_of(array._inner, own._inner, 64, 8) == deep._owner.uses_of(
            own._inner, own._inner, 64, 8
        )


def test_numbers_outside_of_a_stated_interval_are_seen(deep: ckks.Context) -> None:
    """Nobody can see them while they are encrypted, and what is computed of them is noise enlarged a billion times: it used
    to be returned, and published."""
    zero = deep.encrypt(np.array([0.0, 0.0]))
    before = deep._owner.published[1]
    for true in (0.5, 0.6, 0.9):
        root = deep.encrypt(np.array([true, 0.0])).distance(zero, within=INTERVAL, precision_bits=BITS)
        assert abs(deep.decrypt(root) - true) < 1e-3
        assert abs(deep.publish(root, **POLICY) - true) < 0.2
    used = deep._owner.published[1]
    assert used == before + 6, "the root, and what it was taken of"
    for true in (0.1, 0.2, 1.1, 1.2, 1.5, 2.0, 3.0, 4.0):
        root = deep.encrypt(np.array([true, 0.0])).distance(zero, within=INTERVAL, precision_bits=BITS)
        for array in (root, root + 1, deep.array_from_bytes(root.to_bytes()) * 2):
            with pytest.raises(BoundExceeded, match="interval that was stated"):
                deep.decrypt(array)
        with pytest.raises(BoundExceeded, match="interval that was stated"):
            deep.publish(root, **POLICY)
    root = deep.encrypt(np.array([0.6, 0.0])).distance(zero, within=INTERVAL, precision_bits=BITS)
    deep.publish(root, **POLICY)
    assert deep._owner.published[1] == used + 8 * 2 + 2, "a refusal is a result"


def test_one_number_of_many_outside_refuses_them_all(deep: ckks.Context) -> None:
    vectors = np.zeros((5, 2))
    vectors[:, 0] = [0.5, 0.6, 0.7, 0.8, 0.55]
    plain = np.array([1.0, 0.0])
    for layout in ("slots", "single"):
        near = deep.encrypt(vectors, layout=layout).cosine(plain, lengths=INTERVAL, precision_bits=BITS)
        assert np.abs(deep.decrypt(near) - 1).max() < 1e-3
        far = vectors.copy()
        far[4, 0] = 1.3
        with pytest.raises(BoundExceeded, match="interval"):
            deep.decrypt(
                deep.encrypt(far, layout=layout).cosine(plain, lengths=INTERVAL, precision_bits=BITS)
            )


def test_the_interval_is_the_owners_and_goes_along_with_the_bytes(deep: ckks.Context) -> None:
    zero = deep.encrypt(np.array([0.0, 0.0]))
    root = deep.encrypt(np.array([1.5, 0.0])).distance(zero, within=INTERVAL, precision_bits=BITS)
    like = deep.encrypt(np.array([2.0, 0.0])).distance(zero, within=INTERVAL, precision_bits=BITS)
    data = bytearray(root.to_bytes())
    at = bytes(data).find(struct.pack("<2d", 0.0625, 1.0))
    assert at > 0
    wide = bytearray(data)
    struct.pack_into("<2d", wide, at, 0.0625, 9.0)
    without = data[: at - 4]
    without[FRAME + 2] &= ~64
    struct.pack_into("<Q", without, payload_length_at(without, len(data)), len(without) - FRAME)
    for other in (wide, without):
        array = deep.array_from_bytes(sealed(other))
        with pytest.raises(InvalidInput, match="not what the expected computation gives"):
            deep.publish(array, expected=like, **POLICY)
    with pytest.raises(BoundExceeded):
        deep.publish(deep.array_from_bytes(bytes(data)), expected=like, **POLICY)


def payload_length_at(data: bytes, whole: int) -> int:
    """Where the head of a frame has the length of what follows."""
    at = bytes(data[: FRAME - 32]).find((whole - FRAME).to_bytes(8, "little"))
    assert at > 0
    return at


def test_numbers_beyond_a_bound_that_was_stated_are_seen(shallow: ckks.Context) -> None:
    array = shallow.encrypt(np.array([0.75, -0.25])).bounded(0.5)
    with pytest.raises(BoundExceeded, match=r"±0\.5, their magnitude"):
        shallow.decrypt(array)
    before = shallow._owner.published[1]
    with pytest.raises(BoundExceeded, match=r"±0\.5, their magnitude"):
        shallow.publish(array, **POLICY)
    assert shallow._owner.published[1] == before + 1
    assert np.abs(shallow.decrypt(array.bounded(1.0)) - [0.75, -0.25]).max() < 1e-4


def test_publish_takes_arrays(shallow: ckks.Context) -> None:
    array = shallow.encrypt(np.array([0.5]))
    wrong: Any = np.zeros(1)
    with pytest.raises(InvalidInput, match="encrypted arrays, got ndarray"):
        shallow.publish(wrong)
    with pytest.raises(InvalidInput, match="encrypted arrays, got ndarray"):
        shallow.publish(array, expected=wrong)
