"""Wrapping by age: the file key is encrypted to X25519 recipients, whom the URI names, and any of their identities unwraps
it. Not post-quantum, and age authenticates no more than the file key. The key file binds id, URI and file key to each other,
not whose key it is: whoever can write the file can put a key of his own there, which an expected key id tells."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.files import at_home, read_text
from .wrapper import Context, after, denied, not_its_own, shown

_EXAMPLE = "age:RECIPIENT, one or more that begin with age1, commas between,"
_RECIPIENT = re.compile(r"age1[02-9ac-hj-np-z]{58}")  # in bech32
IDENTITY = "CIPHERVEC_AGE_IDENTITY"


class Age:
    """Recipients of age. Identities are read from the file that CIPHERVEC_AGE_IDENTITY names, which age-keygen wrote."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        named = [one.strip() for one in after(uri, "age:", _EXAMPLE).split(",")]
        if not all(map(_RECIPIENT.fullmatch, named)):
            raise InvalidInput(
                f"{_EXAMPLE} expected, got {shown(uri)}; identities are secret and stay in their file."
            )
        try:
            import pyrage
        except ImportError:
            raise needed("a key wrapped by age", "pyrage", "age") from None
        try:
            self._recipients: Any = [pyrage.x25519.Recipient.from_str(one) for one in named]
        except pyrage.RecipientError as error:
            raise InvalidInput(f"{_EXAMPLE} expected, got {uri}: {error}.") from None
        self._uri = uri

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """To all recipients."""
        import pyrage

        return bytes(pyrage.encrypt(file_key, self._recipients))

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """By whichever identity fits."""
        import pyrage

        try:
            return bytes(pyrage.decrypt(wrapped, _identities(self._uri)))
        except pyrage.DecryptError as error:
            not_its_own(self._uri, f"none of the identities of {IDENTITY} opens it ({error})")

    def close(self) -> None:
        """Nothing is held."""


def _identities(uri: str) -> list[Any]:
    import pyrage

    file = os.environ.get(IDENTITY)
    if not file:
        denied(uri, "there is no identity", f"set {IDENTITY} to the file that age-keygen wrote")
    lines = [line.strip() for line in read_text(Path(at_home(file))).splitlines()]
    try:
        # Identities of plugins stand beside those in clear, and are not asked.
        found = [
            pyrage.x25519.Identity.from_str(line)
            for line in lines
            if line and not line.startswith(("#", "AGE-PLUGIN-"))
        ]
    except pyrage.IdentityError:
        found = []
    if not found:
        # Its content is not told: it may be a secret of another sort.
        raise InvalidInput(f"{IDENTITY} is {file}, which holds no line AGE-SECRET-KEY-1… in clear.")
    return found
