"""Sample programs: plain functions with declarations of their arguments, and arrays to run them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ciphervec.programs import Declared, public, secret

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
SHARPEN = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])


def hamming(x: Any, y: Any) -> Any:
    """In how many places two vectors differ."""
    return np.sum(x != y)


def hamming_loop(x: Any, y: Any) -> Any:
    """The same as a loop over elements."""
    distance: Any = 0
    for one, other in zip(x, y, strict=True):
        distance = distance + (one != other)
    return distance


def less(a: Any, b: Any) -> Any:
    """Which of many pairs are in order."""
    return a < b


def arg_min(x: Any) -> Any:
    """Where the least of many numbers is."""
    return np.argmin(x)


def ads(x: Any, y: Any, places: Any, r_inv: Any) -> Any:
    """Which place to advertise to somebody at (x, y): the nearest, weighed by its inverse radius."""
    dx, dy = places[:, 0] - x, places[:, 1] - y
    return np.argmin(r_inv * (dx * dx + dy * dy))


def distances(probe: Any, gallery: Any) -> Any:
    """Squared Euclidean distances of a face to others."""
    return ((gallery - probe) ** 2).sum(axis=-1)


def nearest(probe: Any, gallery: Any) -> Any:
    """Which face is the nearest."""
    return np.argmin(((gallery - probe) ** 2).sum(axis=-1))


def nearest_shown(probe: Any, gallery: Any) -> Any:
    """The same, where the client may see the distances."""
    found = ((gallery - probe) ** 2).sum(axis=-1)
    return np.argmin(found)


def bag_of_words(table: Any, words: Any, weights: Any) -> Any:
    """A classifier of texts: the mean of the words' vectors, times weights."""
    return table[words].mean(axis=0) @ weights


def scores(x: Any, weights: Any) -> Any:
    """One layer of weights."""
    return x @ weights


def ascending(x: Any) -> Any:
    """Numbers in order."""
    return np.sort(x)


def which_or_none(probe: Any, gallery: Any, threshold: float) -> Any:
    """Which rows are similar enough, none of them perhaps; for unit vectors."""
    return gallery @ probe > threshold


def cardio(
    man: Any,
    smoking: Any,
    diabetic: Any,
    pressure: Any,
    age: Any,
    hdl: Any,
    height: Any,
    weight: Any,
    activity: Any,
    drinks: Any,
) -> Any:
    """A count of risk factors of the heart, patient by patient."""
    woman = ~man
    return (
        0
        + (man & (age > 50))
        + (woman & (age > 60))
        + smoking
        + diabetic
        + pressure
        + (hdl < 40)
        + (weight > height - 90)
        + (activity < 30)
        + (man & (drinks > 3))
        + (woman & (drinks > 2))
    )


def priced(amounts: Any, prices: Any, rates: Any) -> Any:
    """What each of many amounts costs."""
    return amounts * prices * rates


def chi_squared(n0: Any, n1: Any, n2: Any) -> Any:
    """The parts of a test of counts of genotypes, without its divisions, which the client does."""
    test = 4 * n0 * n2 - n1 * n1
    first, second = 2 * n0 + n1, 2 * n2 + n1
    return test * test, 2 * first * first, first * second, 2 * second * second


def sharpen(image: Any) -> Any:
    """An image less half of its Laplacian: a kernel of 3 × 3."""
    rows, columns = image.shape
    whole: Any = 0
    for i in range(3):
        for j in range(3):
            whole = whole + SHARPEN[i, j] * image[i : i + rows - 2, j : j + columns - 2]
    return image[1:-1, 1:-1] - whole / 2


def network(x: Any, first: Any, bias: Any, second: Any) -> Any:
    """Two layers, with squares between them."""
    hidden = x @ first + bias
    return (hidden * hidden) @ second


@dataclass(frozen=True)
class Case:
    """A program at one size."""

    program: str
    function: Callable[..., Any]
    n: int
    """Numbers, pairs, places, faces or patients, as the program has them."""
    bits: int | None
    """Of the numbers; None for reals."""
    declare: Callable[[], Mapping[str, Any]]
    draw: Callable[[np.random.Generator], Arrays]
    gap: float | None = None
    kept: tuple[str, ...] = ()
    """Inputs that stay with the server."""
    per: int = 1
    """Results that stand beside each other and are one another's price."""
    peers: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def whole(random: np.random.Generator, shape: Sequence[int] | int, bits: int) -> Array:
    """Integers of a width."""
    return random.integers(0, 1 << bits, shape)


def hamming_case(n: int, *, loop: bool = False) -> Case:
    both = secret(n, boolean=True)
    return Case(
        "hamming, loop" if loop else "hamming",
        hamming_loop if loop else hamming,
        n,
        1,
        lambda: {"x": both, "y": both},
        lambda random: {name: whole(random, n, 1).astype(np.bool_) for name in ("x", "y")},
        # Bit by bit, 32,768 would take Concrete half an hour.
        peers=("openfhe", "tenseal", "concrete") if n <= 1024 else ("openfhe", "tenseal"),
    )


def less_case(n: int, bits: int) -> Case:
    both = secret(n, bits=bits)
    return Case(
        "less",
        less,
        n,
        bits,
        lambda: {"a": both, "b": both},
        lambda random: {"a": whole(random, n, bits), "b": whole(random, n, bits)},
        per=n,
        peers=("openfhe",) if bits == 8 else (),
    )


def arg_min_case(n: int, bits: int) -> Case:
    return Case(
        "arg-min",
        arg_min,
        n,
        bits,
        lambda: {"x": secret(n, bits=bits)},
        lambda random: {"x": whole(random, n, bits)},
    )


def ads_case(n: int, bits: int, gap: float | None) -> Case:
    """Places are public; one is nearer than all others by more than the gap."""
    random = np.random.default_rng(n)
    places = whole(random, (n, 2), bits)
    radii = random.integers(1, 5, n)
    r_inv: Array = radii if gap is None else 1 / radii
    most = float(2 * ((1 << bits) - 1) ** 2 * r_inv.max())

    def draw(random: np.random.Generator) -> Arrays:
        while True:
            x, y = whole(random, (), bits), whole(random, (), bits)
            costs = np.sort(r_inv * ((places - [x, y]) ** 2).sum(axis=1))
            if n == 1 or costs[1] - costs[0] > (gap or 0.0) * most:
                return {"x": np.asarray(x), "y": np.asarray(y)}

    one = secret(bits=bits)
    return Case(
        "ads" if gap is None else f"ads, gap 2^{np.log2(gap):.0f}",
        ads,
        n,
        bits,
        lambda: {"x": one, "y": one, "places": public(places), "r_inv": public(r_inv)},
        draw,
        gap=gap,
    )


def faces(random: np.random.Generator, n: int, dim: int, bits: int) -> Arrays:
    """A gallery and a face that is much nearer to one of it than to the others."""
    gallery = whole(random, (n, dim), bits)
    off = 1 << max(0, bits - 5)
    probe = np.clip(gallery[random.integers(n)] + random.integers(-off, off + 1, dim), 0, (1 << bits) - 1)
    return {"probe": probe, "gallery": gallery}


def distances_case(n: int, dim: int = 128, bits: int = 8, *, shown: bool = False) -> Case:
    """`shown`: the server may see the gallery."""

    def declare() -> dict[str, Declared]:
        return {
            "probe": secret(dim, bits=bits),
            "gallery": (public if shown else secret)((n, dim), bits=bits),
        }

    return Case(
        "faces, public gallery" if shown else "faces, distances",
        distances,
        n,
        bits,
        declare,
        lambda random: faces(random, n, dim, bits),
        kept=("gallery",),
        peers=() if shown else ("tenseal",),
    )


def nearest_case(n: int, gap: float, dim: int = 128, bits: int = 8) -> Case:
    def declare() -> dict[str, Declared]:
        return {"probe": secret(dim, bits=bits), "gallery": secret((n, dim), bits=bits)}

    return Case(
        f"faces, arg-min, gap 2^{np.log2(gap):.0f}",
        nearest,
        n,
        bits,
        declare,
        lambda random: faces(random, n, dim, bits),
        gap=gap,
        kept=("gallery",),
    )


def shown_case(n: int, dim: int = 128, bits: int = 8) -> Case:
    def declare() -> dict[str, Declared]:
        return {"probe": secret(dim, bits=bits), "gallery": secret((n, dim), bits=bits)}

    return Case(
        "faces, arg-min, distances revealed",
        nearest_shown,
        n,
        bits,
        declare,
        lambda random: faces(random, n, dim, bits),
        kept=("gallery",),
        options={"reveal": "found"},
    )


def words_case(words: int, rows: int, dim: int, classes: int = 2) -> Case:
    random = np.random.default_rng(rows)
    table, weights = random.standard_normal((rows, dim)), random.standard_normal((dim, classes))

    def declare() -> dict[str, Declared]:
        index = secret(words, low=0, high=rows - 1)
        return {"table": public(table), "words": index, "weights": public(weights)}

    return Case(
        "bag of words",
        bag_of_words,
        words,
        None,
        declare,
        lambda random: {"words": random.integers(0, rows, words)},
    )


def scores_case(inputs: int, outputs: int) -> Case:
    random = np.random.default_rng(inputs)
    weights = random.standard_normal((inputs, outputs)) / inputs**0.5

    def declare() -> dict[str, Declared]:
        return {"x": secret(inputs, low=0, high=1, real=True), "weights": public(weights)}

    return Case(
        "one layer of weights", scores, inputs, None, declare, lambda random: {"x": random.random(inputs)}
    )


def sort_case(n: int, bits: int) -> Case:
    return Case(
        "sort",
        ascending,
        n,
        bits,
        lambda: {"x": secret(n, bits=bits)},
        lambda random: {"x": whole(random, n, bits)},
    )


def which_case(n: int, dim: int, gap: float = 2**-12) -> Case:
    """Cosines within the gap, of a range that is much wider than they are, are not drawn."""
    most, threshold = 4 / dim**0.5, 0.6

    def draw(random: np.random.Generator) -> Arrays:
        gallery = random.standard_normal((n, dim))
        gallery /= np.linalg.norm(gallery, axis=1)[:, None]
        probe = gallery[random.integers(n)] + 0.5 * random.standard_normal(dim) / dim**0.5
        return {
            "probe": np.clip(probe / np.linalg.norm(probe), -most, most),
            "gallery": np.clip(gallery, -most, most),
        }

    def declare() -> dict[str, Any]:
        real = {"low": -most, "high": most, "real": True}
        return {
            "probe": secret(dim, **real),
            "gallery": secret((n, dim), **real),
            "threshold": threshold,
        }

    return Case("which, or none", which_or_none, n, None, declare, draw, gap=gap, kept=("gallery",))


def cardio_case(n: int) -> Case:
    flags = ("man", "smoking", "diabetic", "pressure")
    # Names, and the least and largest of what is drawn; declared are 8 bits.
    numbers = {
        "age": (18, 99), "hdl": (20, 100), "height": (140, 210), "weight": (40, 160), "activity": (0, 120), "drinks": (0, 9)
    }  # fmt: skip

    def declare() -> dict[str, Declared]:
        return {
            **{name: secret(n, boolean=True) for name in flags},
            **{name: secret(n, bits=8) for name in numbers},
        }

    def draw(random: np.random.Generator) -> Arrays:
        return {
            **{name: random.integers(0, 2, n).astype(np.bool_) for name in flags},
            **{name: random.integers(low, high + 1, n) for name, (low, high) in numbers.items()},
        }

    return Case("cardio risk", cardio, n, 8, declare, draw)


def priced_case(n: int, bits: int, *, shown: bool) -> Case:
    """`shown`: the server may see prices and rates."""
    known = (public if shown else secret)(n, bits=bits)
    return Case(
        "prices, public" if shown else "prices, secret",
        priced,
        n,
        bits,
        lambda: {"amounts": secret(n, bits=bits), "prices": known, "rates": known},
        lambda random: {name: whole(random, n, bits) for name in ("amounts", "prices", "rates")},
    )


def chi_squared_case(n: int, bits: int) -> Case:
    one = secret(n, bits=bits)
    names = ("n0", "n1", "n2")
    return Case(
        "chi-squared",
        chi_squared,
        n,
        bits,
        lambda: dict.fromkeys(names, one),
        lambda random: {name: whole(random, n, bits) for name in names},
    )


def sharpen_case(side: int) -> Case:
    return Case(
        "kernel 3 × 3",
        sharpen,
        side * side,
        8,
        lambda: {"image": secret((side, side), bits=8)},
        lambda random: {"image": whole(random, (side, side), 8)},
    )


def network_case(inputs: int, hidden: int, outputs: int) -> Case:
    random = np.random.default_rng(inputs)
    first = random.standard_normal((inputs, hidden)) / inputs**0.5
    bias, second = random.standard_normal(hidden), random.standard_normal((hidden, outputs)) / hidden**0.5

    def declare() -> dict[str, Declared]:
        known = {"first": public(first), "bias": public(bias), "second": public(second)}
        return {"x": secret(inputs, low=0, high=1, real=True), **known}

    return Case("neural network", network, inputs, None, declare, lambda random: {"x": random.random(inputs)})


def all_cases() -> list[Case]:
    """What `bench programs` measures."""
    return [
        hamming_case(32),
        hamming_case(1024),
        hamming_case(32768),
        less_case(32768, 8),
        arg_min_case(8, 8),
        arg_min_case(128, 8),
        arg_min_case(128, 16),
        ads_case(128, 6, None),
        ads_case(128, 8, 2**-12),
        distances_case(1),
        distances_case(128),
        distances_case(128, shown=True),
        nearest_case(128, 2**-10),
        shown_case(128),
        sort_case(32, 8),
        which_case(1000, 512),
        cardio_case(1024),
        priced_case(1024, 8, shown=False),
        priced_case(1024, 8, shown=True),
        chi_squared_case(1024, 8),
        sharpen_case(64),
        network_case(784, 30, 10),
        scores_case(784, 10),
        words_case(128, 1024, 50),
    ]


def quick_cases() -> list[Case]:
    """The same at sizes that take a second together."""
    return [
        hamming_case(32),
        less_case(4096, 4),
        distances_case(4, dim=16, bits=4),
        distances_case(4, dim=16, bits=4, shown=True),
        priced_case(16, 4, shown=False),
        priced_case(16, 4, shown=True),
        chi_squared_case(16, 4),
        sharpen_case(8),
        shown_case(4, dim=16, bits=4),
        words_case(16, 32, 4),
        cardio_case(16),
    ]
