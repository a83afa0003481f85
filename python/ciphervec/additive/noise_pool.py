"""Noise computed ahead for one key of the factoring schemes: with it an encryption takes microseconds. Key owner's
side.

Nearly all the time of an encryption goes into its noise, which does not depend on the message. A
pool draws it at leisure. Every element is used once: used twice, it would show the difference of
two messages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.files import StrPath, at_home
from ..ingest.forks import fresh_in_child
from .encrypted_array import EncryptedArray
from .encrypted_vectors import EncryptedVectors, as_rows
from .keys import KeyPair, _sealed

Progress = Callable[[int, int], None]

# Elements drawn between two reports of progress.
_BATCH = 128


class NoisePool:
    """One-shot noise of one pair of keys; `len(pool)` elements are left.

    Safe to share between threads: one may fill while others encrypt. A process that is forked has an
    empty one of its own.
    """

    def __init__(self, keys: KeyPair) -> None:
        """An empty pool. Raises InvalidInput for ElGamal, whose noise is quick to draw anyway."""
        if not isinstance(keys, KeyPair):
            raise InvalidInput(f"keys must be a key pair of a scheme, got {type(keys).__name__}.")
        self._keys = keys
        self._native = _native.NoisePool(keys._native)
        # A fork's is empty: its parent has the elements, too.
        fresh_in_child(self, _native=lambda: _native.NoisePool(keys._native))

    @property
    def key_id(self) -> str:
        """The public name of the key."""
        return self._keys.key_id

    def fill(self, count: int, *, progress: Progress | None = None) -> None:
        """Draw `count` elements more; `progress(done, count)` is called on the way. Raises
        InvalidInput."""
        count = arrays.count(count, "count")
        for done in range(0, count, _BATCH):
            self._native.fill(min(_BATCH, count - done))
            if progress is not None:
                progress(min(done + _BATCH, count), count)

    def fill_in_background(self, count: int) -> threading.Thread:
        """Start a thread that draws `count` elements more; `join` it to wait for the last one."""
        thread = threading.Thread(
            target=self.fill, args=(arrays.count(count, "count"),), name="ciphervec noise", daemon=True
        )
        thread.start()
        return thread

    def encrypt(self, x: Any, *, bits: int | None = None, fraction_bits: int | None = None) -> EncryptedArray:
        """As the keys' `encrypt`, with noise of the pool.

        Raises PoolExhausted when fewer elements are left than numbers came; none is used then.
        """
        public = self._keys.public
        table, numbers = _sealed(public, self._native.encrypt, x, bits, fraction_bits)
        return EncryptedArray(public, table, numbers, fresh=True)

    def encrypt_vectors(
        self, rows: Any, *, metric: str = "cosine", precision: str = "standard", layout: str = "elements"
    ) -> EncryptedVectors:
        """As the keys' `encrypt_vectors`, with noise of the pool: an element for each ciphertext.

        Raises PoolExhausted; none is used then.
        """
        inner = self._native.encrypt_vectors(as_rows(rows, metric, "rows"), metric, precision, layout)
        return EncryptedVectors(self._keys.public, inner)

    def save(self, path: StrPath) -> None:
        """Write the pool to a new file, encrypted under the secret key, and empty it: an element is
        in one place.

        Don't back such files up; they can be made again, and a copy that is used too shows what was
        encrypted. Raises StorageError, also when there is such a file already.
        """
        self._native.save(at_home(path))

    @classmethod
    def claim(cls, path: StrPath, keys: KeyPair) -> NoisePool:
        """Take a pool out of its file, which is gone then, so that no other process uses the same
        noise.

        Raises StorageError when there is none or another process was faster, WrongKey, CorruptData;
        the file stays then.
        """
        pool = cls(keys)
        pool._native = _native.NoisePool.claim(at_home(path), keys._native)
        return pool

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<ciphervec.NoisePool of key {self.key_id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noise pool can't be pickled; save it to a file and claim it there")
