"""Times SEAL's CKKS operations by TenSEAL's own way down, `tenseal.sealapi`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ciphervec import InvalidInput

BASE_BITS, SCALE_BITS = 50, 49
# The Galois element of a rotation by one slot.
ROTATION = 3


class Seal:
    """Keys of one parameter set: primes as wide as ours, the one special prime that SEAL has, a
    digit for each prime."""

    MAX_LOG_N = 15
    OPS = (
        "encode", "encrypt", "encrypt_public", "decrypt", "add", "multiply", "relinearize",
        "multiply_relinearize", "rescale", "rotate", "conjugate", "multiply_plain",
    )  # fmt: skip

    def __init__(self, log_n: int, primes: int, seconds: float) -> None:
        if importlib.util.find_spec("tenseal") is None:
            raise InvalidInput("TenSEAL is not installed; pip install tenseal, or leave --peer out")
        from tenseal import sealapi

        self.seal, self.seconds, degree = sealapi, seconds, 1 << log_n
        bits = [BASE_BITS, *[SCALE_BITS] * (primes - 1), BASE_BITS]
        parameters = sealapi.EncryptionParameters(sealapi.SCHEME_TYPE.CKKS)
        parameters.set_poly_modulus_degree(degree)
        parameters.set_coeff_modulus(sealapi.CoeffModulus.Create(degree, bits))
        context = sealapi.SEALContext(parameters, True, sealapi.SEC_LEVEL_TYPE.TC128)
        if not context.parameters_set():
            raise InvalidInput(f"TenSEAL refuses these sizes: {context.parameters_error_message()}.")
        generator = sealapi.KeyGenerator(context)
        secret, public = generator.secret_key(), sealapi.PublicKey()
        self.relinearise, self.galois = sealapi.RelinKeys(), sealapi.GaloisKeys()
        generator.create_public_key(public)
        generator.create_relin_keys(self.relinearise)
        generator.create_galois_keys([ROTATION, 2 * degree - 1], self.galois)
        self.encoder, self.evaluator = sealapi.CKKSEncoder(context), sealapi.Evaluator(context)
        self.encryptor = sealapi.Encryptor(context, public, secret)
        self.decryptor = sealapi.Decryptor(context, secret)
        self.levels = self.chain(context)
        slots = np.arange(1, degree // 2 + 1)
        self.u, self.v = np.exp(3j * slots), np.exp(5j * slots)

    @staticmethod
    def chain(context: Any) -> dict[int, Any]:
        """SEAL's name of each level."""
        found = {}
        data = context.first_context_data()
        while data is not None:
            found[data.chain_index()] = data.parms_id()
            data = data.next_context_data()
        return found

    def time(self, op: str, level: int, repeats: int) -> tuple[list[float], float]:
        """As ours. A slow operation stops once it has used its seconds; it has run once by then,
        after a warm-up."""
        run, expected = self.job(op, level)
        runs: list[float] = []
        result, began = run(), time.perf_counter()
        while len(runs) < repeats and not (runs and time.perf_counter() - began > self.seconds):
            start = time.perf_counter()
            result = run()
            runs.append(1e3 * (time.perf_counter() - start))
        if op != "decrypt":
            plain = result if op == "encode" else self.decrypted(result)
            result = self.encoder.decode_complex(plain)
        return runs, float(np.abs(np.asarray(result) - expected).max())

    def job(self, op: str, level: int) -> tuple[Callable[[], Any], Any]:
        """What to time, and what comes out of it."""
        u, v, evaluator = self.u, self.v, self.evaluator
        numbers = u.tolist()
        plain, factor = self.encoded(numbers, level), self.encoded(v.tolist(), level)
        a, b = (self.made(self.encryptor.encrypt_symmetric, one) for one in (plain, factor))
        square = self.made(evaluator.multiply, a, b)
        linear = self.made(evaluator.relinearize, square, self.relinearise)
        jobs: dict[str, tuple[Callable[[], Any], Any]] = {
            "encode": (lambda: self.encoded(numbers, level), u),
            "encrypt": (lambda: self.made(self.encryptor.encrypt_symmetric, plain), u),
            "encrypt_public": (lambda: self.made(self.encryptor.encrypt, plain), u),
            "decrypt": (lambda: self.encoder.decode_complex(self.decrypted(a)), u),
            "add": (lambda: self.made(evaluator.add, a, b), u + v),
            "multiply": (lambda: self.made(evaluator.multiply, a, b), u * v),
            "relinearize": (lambda: self.made(evaluator.relinearize, square, self.relinearise), u * v),
            "multiply_relinearize": (lambda: self.both(a, b), u * v),
            "rescale": (lambda: self.made(evaluator.rescale_to_next, linear), u * v),
            "rotate": (lambda: self.made(evaluator.rotate_vector, a, 1, self.galois), np.roll(u, -1)),
            "conjugate": (lambda: self.made(evaluator.complex_conjugate, a, self.galois), u.conj()),
            "multiply_plain": (lambda: self.made(evaluator.multiply_plain, a, factor), u * v),
        }
        return jobs[op]

    def encoded(self, numbers: list[complex], level: int) -> Any:
        plain = self.seal.Plaintext()
        self.encoder.encode(numbers, self.levels[level], 2.0**SCALE_BITS, plain)
        return plain

    def decrypted(self, sealed: Any) -> Any:
        plain = self.seal.Plaintext()
        self.decryptor.decrypt(sealed, plain)
        return plain

    def both(self, a: Any, b: Any) -> Any:
        product = self.made(self.evaluator.multiply, a, b)
        self.evaluator.relinearize_inplace(product, self.relinearise)
        return product

    def made(self, operation: Callable[..., None], *operands: Any) -> Any:
        """A new ciphertext for what `operation` writes into its last argument."""
        out = self.seal.Ciphertext()
        operation(*operands, out)
        return out
