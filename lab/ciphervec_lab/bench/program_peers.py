"""Peers of the programs bench: other software's best way to compute a sample program encrypted. Plays both halves."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from ciphervec import InvalidInput

from .program_samples import Arrays

# Most numbers of a ciphertext of TenSEAL, at its largest degree.
_MOST = 16384


class Peer(Protocol):
    """A program with keys and encrypted inputs."""

    def run(self) -> Any:
        """An encrypted answer."""

    def decrypt(self, answer: Any) -> Any:
        """The numbers in it."""


class Tenseal:
    """Hamming and Euclidean distances under CKKS: a difference and its product with itself."""

    def __init__(self, program: str, arrays: Arrays) -> None:
        ts = _imported("tenseal", "TenSEAL", "tenseal")
        first, second = (np.asarray(arrays[name], np.float64) for name in list(arrays)[:2])
        rows = np.atleast_2d(second)
        parts = -(-first.size // _MOST)
        width = first.size // parts
        # Sums have room up to 2^(59 - scale): 2^19 for bits, 2^24 for distances of bytes.
        scale = 40 if program.startswith("hamming") else 35
        degree = 8192 if width <= 4096 else 32768
        self.context = ts.context(
            ts.SCHEME_TYPE.CKKS, degree, coeff_mod_bit_sizes=[60, scale, 60], n_threads=1
        )
        self.context.global_scale = 2.0**scale
        self.context.generate_galois_keys()
        cut = range(0, first.size, width)
        self.one = [ts.ckks_vector(self.context, first[at : at + width].tolist()) for at in cut]
        self.others = [
            [ts.ckks_vector(self.context, row[at : at + width].tolist()) for at in cut] for row in rows
        ]

    def run(self) -> list[Any]:
        found = []
        for other in self.others:
            total: Any = None
            for a, b in zip(self.one, other, strict=True):
                difference = a - b
                part = difference.dot(difference)
                total = part if total is None else total + part
            found.append(total)
        return found

    def decrypt(self, answer: list[Any]) -> Any:
        found = np.array([one.decrypt()[0] for one in answer])
        return found[0] if len(found) == 1 else found


class OpenFhe:
    """Hamming distances under BFV; comparisons under CKKS, by the composite sign of Cheon, Kim and
    Kim 2020."""

    # Odd polynomials of degree 7: of the first kind bring numbers away from 0, of the second to ±1.
    STEEP = tuple(one / 1024 for one in (4589, -16577, 25614, -12860))
    CLEAN = tuple(one / 16 for one in (35, -35, 21, -5))
    # 8 bits: from half a step of 2^-8 to within 1e-6 of ±1.
    STAGES = (STEEP, STEEP, STEEP, STEEP, CLEAN, CLEAN)

    def __init__(self, program: str, arrays: Arrays) -> None:
        self.fhe = _imported("openfhe", "OpenFHE", "openfhe")
        first, second = (np.asarray(one) for one in list(arrays.values())[:2])
        self.count = first.size
        self.compares = program == "less"
        self.cc = self._compare_context() if self.compares else self._hamming_context()
        features = ("PKE", "KEYSWITCH", "LEVELEDSHE", "ADVANCEDSHE")
        for feature in features:
            self.cc.Enable(getattr(self.fhe.PKESchemeFeature, feature))
        self.keys = self.cc.KeyGen()
        self.cc.EvalMultKeyGen(self.keys.secretKey)
        if self.compares:
            most = float(1 << int(max(first.max(), second.max())).bit_length())
            plain = [self.cc.MakeCKKSPackedPlaintext((one / most).tolist()) for one in (first, second)]
            self.half = 0.5 / most
        else:
            self.cc.EvalSumKeyGen(self.keys.secretKey)
            plain = [self.cc.MakePackedPlaintext(one.astype(np.int64).tolist()) for one in (first, second)]
        self.sealed = [self.cc.Encrypt(self.keys.publicKey, one) for one in plain]

    def _hamming_context(self) -> Any:
        parameters = self.fhe.CCParamsBFVRNS()
        parameters.SetPlaintextModulus(65537)
        parameters.SetMultiplicativeDepth(1)
        parameters.SetRingDim(8192 if self.count <= 8192 else 32768)
        return self.fhe.GenCryptoContext(parameters)

    def _compare_context(self) -> Any:
        parameters = self.fhe.CCParamsCKKSRNS()
        parameters.SetMultiplicativeDepth(3 * len(self.STAGES) + 1)
        parameters.SetScalingModSize(45)
        parameters.SetFirstModSize(50)
        parameters.SetSecurityLevel(self.fhe.SecurityLevel.HEStd_128_classic)
        parameters.SetRingDim(65536)
        parameters.SetBatchSize(1 << (self.count - 1).bit_length())
        return self.fhe.GenCryptoContext(parameters)

    def run(self) -> Any:
        x, y = self.sealed
        if not self.compares:
            difference = self.cc.EvalSub(x, y)
            return self.cc.EvalSum(
                self.cc.EvalMult(difference, difference), 1 << (self.count - 1).bit_length()
            )
        sign = self.cc.EvalSub(self.cc.EvalSub(y, x), self.half)
        for polynomial in self.STAGES:
            sign = self._evaluate(polynomial, sign)
        return sign

    def _evaluate(self, polynomial: tuple[float, ...], x: Any) -> Any:
        """In three levels, where the library's own way takes four."""
        multiply, add = self.cc.EvalMult, self.cc.EvalAdd
        square = multiply(x, x)
        first, third, fifth, seventh = (multiply(x, one) for one in polynomial)
        low, high = add(first, multiply(third, square)), add(fifth, multiply(seventh, square))
        return add(low, multiply(high, multiply(square, square)))

    def decrypt(self, answer: Any) -> Any:
        plain = self.cc.Decrypt(answer, self.keys.secretKey)
        if not self.compares:
            plain.SetLength(1)
            return np.float64(plain.GetPackedValue()[0] % 65537)
        plain.SetLength(self.count)
        return np.array(plain.GetRealPackedValue()[: self.count]) / 2 + 0.5


class Concrete:
    """Hamming distances under TFHE, as its compiler plans them; a result is wrong with a chance of
    2^-40."""

    def __init__(self, program: str, arrays: Arrays) -> None:
        _imported("concrete", "Concrete", "concrete-python")
        fhe = _imported("concrete.fhe", "Concrete", "concrete-python")
        first, second = (np.asarray(one, np.int64) for one in list(arrays.values())[:2])
        settings = fhe.Configuration(p_error=2.0**-40, loop_parallelize=False, dataflow_parallelize=False)
        none, all_of_them = np.zeros_like(first), np.ones_like(first)
        samples = [(none, all_of_them), (all_of_them, none), (none, none)]
        compiler = fhe.Compiler(lambda x, y: np.sum((x - y) ** 2), {"x": "encrypted", "y": "encrypted"})
        self.circuit = compiler.compile(samples, settings)
        self.circuit.keygen()
        self.sealed = self.circuit.encrypt(first, second)

    def run(self) -> Any:
        return self.circuit.run(*self.sealed)

    def decrypt(self, answer: Any) -> Any:
        return np.float64(self.circuit.decrypt(answer))


def _imported(module: str, name: str, package: str) -> Any:
    if importlib.util.find_spec(module) is None:
        raise InvalidInput(f"{name} is not installed, so it is left out; pip install {package}")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        # A wheel named for every Python that holds a module for one, or a package that it needs.
        raise InvalidInput(
            f"{name} as installed cannot be imported here ({error}), so it is left out"
        ) from error


PEERS: Mapping[str, Callable[[str, Arrays], Peer]] = {
    "openfhe": OpenFhe,
    "tenseal": Tenseal,
    "concrete": Concrete,
}
