"""docs/migrating.md, one part for each library: both sides' blocks run in order, and what the page says of
the other library is looked up in it."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/migrating.md"
LIBRARIES = ["phe", "LightPHE"]
NEEDS = {"LightPHE": ("lightphe",), "phe": ("phe", "gmpy2"), "ciphervec": ()}
SECTION = re.compile(r"^## From (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^\*\*(\w+)\*\*$|^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason="needs the repository, not only the wheel"
)


def parts(theirs: str) -> list[tuple[str, str]]:
    """Names in bold, and blocks of code, in the part of the page that is about this library."""
    return PART.findall(dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))[theirs])


def blocks(theirs: str) -> dict[str, list[str]]:
    """Code by library; a block belongs to the last name in bold above it."""
    found: dict[str, list[str]] = {}
    library = ""
    for name, code in parts(theirs):
        if name:
            library = name
        else:
            found.setdefault(library, []).append(code)
    return found


@pytest.mark.parametrize("theirs", LIBRARIES)
@pytest.mark.parametrize("ours", [True, False])
def test_blocks_run_in_order(
    theirs: str, ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "ciphervec" if ours else theirs
    for module in NEEDS[library]:
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__snippet__"}
    codes = blocks(theirs)[library]
    assert len(codes) >= 4
    for number, code in enumerate(codes):
        exec(compile(code, f"docs/migrating.md, {library} {number}", "exec"), names)


@pytest.mark.parametrize("theirs", LIBRARIES)
def test_every_block_of_theirs_stands_beside_one_of_ours(theirs: str) -> None:
    order = [name for name, _ in parts(theirs) if name]
    assert order == [theirs, "ciphervec"] * (len(order) // 2)
    assert set(blocks(theirs)) == {theirs, "ciphervec"}


# What the page says of the installed versions, so that it is corrected when a library is.


@pytest.fixture(scope="module")
def system() -> Any:
    lightphe = pytest.importorskip("lightphe")
    return lightphe.LightPHE("Paillier", key_size=512, precision=5)


def test_lightphe_noise_and_primes_are_of_the_mersenne_twister(system: Any) -> None:
    import random

    import sympy.core.random

    source = inspect.getsource(inspect.getmodule(type(system.cs)))
    assert "random.randint(0, n)" in source and "import random\n" in source
    assert "sympy.randprime(" in source
    assert type(sympy.core.random.rng) is random.Random


def test_lightphe_signs_are_in_clear_and_stop_a_product(system: Any) -> None:
    sealed = system.encrypt([-0.5, 0.25], silent=True)
    assert [fraction.sign for fraction in sealed.fractions] == [-1, 1]
    assert sealed.fractions[0].dividend != sealed.fractions[0].abs_dividend
    with pytest.raises(ValueError, match="must be positive"):
        sealed @ [1.0, 1.0]


def test_lightphe_zeros_are_one_ciphertext_and_products_are_not_randomised(system: Any) -> None:
    sealed = system.encrypt([0.0, 0.5, 0.0], silent=True)
    first, other, last = (fraction.dividend for fraction in sealed.fractions)
    assert first == last != other
    one, two = (sealed @ [1.0, 2.0, 3.0] for _ in range(2))
    assert one.fractions[0].dividend == two.fractions[0].dividend


def test_lightphe_negative_numbers_and_fractions_come_back_modulo_n(system: Any) -> None:
    n = system.cs.keys["public_key"]["n"]
    assert system.decrypt(system.encrypt(-3)) == n - 3
    assert system.decrypt(1.05 * system.encrypt(3)) == 315 * pow(100, -1, n) % n


def test_lightphe_key_files_are_code(system: Any, tmp_path: Path) -> None:
    import lightphe

    marker = tmp_path / "ran"
    path = tmp_path / "public.txt"
    path.write_text(f"{{'public_key': {{'g': 2, 'n': open({str(marker)!r}, 'w').write('x')}}}}")
    lightphe.LightPHE("Paillier", key_file=str(path))
    assert marker.exists()


def test_lightphe_okamoto_uchiyama_gives_p_away() -> None:
    import math

    lightphe = pytest.importorskip("lightphe")
    owner = lightphe.LightPHE("Okamoto-Uchiyama", key_size=512)
    stranger = lightphe.LightPHE("Okamoto-Uchiyama", keys={"public_key": owner.cs.keys["public_key"]})
    message = 2**400
    back = owner.decrypt(stranger.encrypt(message))
    n, p = owner.cs.keys["public_key"]["n"], owner.cs.keys["private_key"]["p"]
    assert math.gcd(message - back, n) in (p, p * p)
    # n = p²q with primes of half the key size.
    assert 700 < n.bit_length() <= 768


def test_lightphe_damgard_jurik_has_messages_modulo_n() -> None:
    lightphe = pytest.importorskip("lightphe")
    system = lightphe.LightPHE("Damgard-Jurik", key_size=512)
    n = system.cs.keys["public_key"]["n"]
    assert system.cs.keys["public_key"]["s"] == 2
    assert system.cs.decrypt(system.cs.encrypt(n + 5)) == 5


@pytest.fixture(scope="module")
def keys() -> Any:
    pytest.importorskip("gmpy2")
    return pytest.importorskip("phe").paillier.generate_paillier_keypair(n_length=256)


def test_phe_exponents_are_in_clear(keys: Any) -> None:
    public, _ = keys
    small, large = public.encrypt(-4.6e-12), public.encrypt(300.0)
    assert small.exponent < large.exponent
    assert public.encrypt(300.0, precision=2**-32).exponent == public.encrypt(1e-3, precision=2**-32).exponent


def test_phe_noise_is_the_systems(keys: Any) -> None:
    assert "SystemRandom()" in inspect.getsource(type(keys[0]).get_random_lt_n)


def test_phe_powers_take_time_by_their_exponent() -> None:
    pytest.importorskip("phe")
    assert "gmpy2.powmod(" in inspect.getsource(importlib.import_module("phe.util").powmod)


def test_phe_any_integer_is_a_ciphertext_but_not_of_another_key(keys: Any) -> None:
    from phe import EncryptedNumber, paillier

    public, private = keys
    assert isinstance(private.raw_decrypt(EncryptedNumber(public, 12345).ciphertext(be_secure=False)), int)
    other, _ = paillier.generate_paillier_keypair(n_length=256)
    with pytest.raises(ValueError, match="different key"):
        private.decrypt(other.encrypt(1))


def test_phe_notices_an_overflow(keys: Any) -> None:
    from phe import EncryptedNumber

    public, private = keys
    with pytest.raises(OverflowError):
        private.decrypt(EncryptedNumber(public, public.raw_encrypt(public.n // 2)))
