"""Peer of the bootstrapping bench, a program of its own: takes turns on its standard input and prints times as JSON.
Plays both halves of OpenFHE.

Nothing of this package is imported: it runs under whatever Python the peer's wheel is for.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
import time
from typing import Any

# Products of each transform: the library's own example first; of few slots the fewest levels, which take no longer.
BUDGETS = ([3, 3], [2, 2])
FEW, FEW_BUDGETS = 32, ([1, 1], [2, 2])
# Bits of the scaling primes.
SCALES = (59, 54, 50, 45)
# Digits of key switching: the library's choice, then more of them, which take a smaller modulus.
DIGITS = (0, 6)
MOST_LEVELS = 8


class Peer:
    """Keys, and a ciphertext whose levels are spent."""

    def __init__(self, log_n: int, slots: int, seed: int, secret: str) -> None:
        import openfhe  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self.fhe = openfhe
        self.slots = slots
        began = time.perf_counter()
        self.cc, self.depth, self.settings = self._context(log_n, secret)
        self.keys = self.cc.KeyGen()
        self.cc.EvalMultKeyGen(self.keys.secretKey)
        self.cc.EvalBootstrapKeyGen(self.keys.secretKey, self.slots)
        self.keygen_ms = 1e3 * (time.perf_counter() - began)
        draw = random.Random(seed)  # noqa: S311, numbers to compute on
        self.values = [draw.uniform(-1.0, 1.0) for _ in range(self.slots)]
        plain = self.cc.MakeCKKSPackedPlaintext(self.values, 1, self.depth - 1, None, self.slots)
        plain.SetLength(self.slots)
        self.spent = self.cc.Encrypt(self.keys.publicKey, plain)
        self.fresh: Any = None

    def _context(self, log_n: int, secret: str) -> tuple[Any, int, str]:
        """The first that the library takes at 128 bits: the widest scale, then the most levels."""
        fhe = self.fhe
        dist = getattr(fhe.SecretKeyDist, secret.upper().replace("-", "_"))
        depth_of = getattr(fhe, "FHECKKSRNS", fhe.CryptoContext).GetBootstrapDepth
        last = ""
        budgets = FEW_BUDGETS if self.slots <= FEW else BUDGETS
        tried = itertools.product(SCALES, DIGITS, budgets, range(MOST_LEVELS, 0, -1))
        for scale, digits, budget, levels in tried:
            depth = levels + depth_of(budget, dist)
            parameters = fhe.CCParamsCKKSRNS()
            parameters.SetSecretKeyDist(dist)
            parameters.SetSecurityLevel(fhe.SecurityLevel.HEStd_128_classic)
            parameters.SetRingDim(1 << log_n)
            parameters.SetScalingTechnique(fhe.ScalingTechnique.FLEXIBLEAUTO)
            parameters.SetScalingModSize(scale)
            parameters.SetFirstModSize(min(scale + 1, 60))
            parameters.SetMultiplicativeDepth(depth)
            parameters.SetNumLargeDigits(digits)
            parameters.SetBatchSize(self.slots)
            try:
                context = fhe.GenCryptoContext(parameters)
            except Exception as error:
                # Of what it says the end, after the place in its source.
                said = str(error).strip().rpartition("(): ")[2]
                last = said if "comply" in said or not last else last
                continue
            for feature in ("PKE", "KEYSWITCH", "LEVELEDSHE", "ADVANCEDSHE", "FHE"):
                context.Enable(getattr(fhe.PKESchemeFeature, feature))
            context.EvalBootstrapSetup(budget, [0, 0], self.slots)
            sizes = f"N = 2^{log_n}, scale 2^{scale}, level budget {budget}, depth {depth}"
            settings = f"HEStd_128_classic, {secret} secret, {sizes}, FLEXIBLEAUTO"
            return context, depth, settings
        raise RuntimeError(f"no set at 128 bits takes bootstrapping at N = 2^{log_n} ({last})")

    def run(self) -> float:
        """Milliseconds of one bootstrapping."""
        began = time.perf_counter()
        self.fresh = self.cc.EvalBootstrap(self.spent)
        return 1e3 * (time.perf_counter() - began)

    def result(self) -> dict[str, float]:
        """How precise the last one was, and what it left."""
        plain = self.cc.Decrypt(self.fresh, self.keys.secretKey)
        plain.SetLength(self.slots)
        found = plain.GetRealPackedValue()[: self.slots]
        errors = [a - b for a, b in zip(found, self.values)]  # noqa: B905, Python 3.9 has no `strict`
        deviation = math.sqrt(sum(error * error for error in errors) / self.slots)
        left = self.depth - self.fresh.GetLevel() - (self.fresh.GetNoiseScaleDeg() - 1)
        return {
            "precision_bits": -math.log2(deviation),
            "worst_bits": -math.log2(max(map(abs, errors))),
            "levels_left": left,
        }


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """`bootstrapping_peer.py LOG_N SLOTS SEED SECRET`, then `run` and `result` lines until the input ends."""
    log_n, slots, seed = map(int, sys.argv[1:4])
    try:
        peer = Peer(log_n, slots, seed, sys.argv[4])
    except Exception as error:
        say(refused=f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error))
        return
    say(settings=peer.settings, keygen_ms=peer.keygen_ms, slots=peer.slots)
    for line in sys.stdin:
        if line.strip() == "run":
            say(ms=peer.run())
        elif line.strip() == "result":
            say(**peer.result())


if __name__ == "__main__":
    main()
