"""Which module asks the holder of which wrapping key: one row a scheme of URIs."""

from __future__ import annotations

import importlib
from typing import NamedTuple

from ...errors import InvalidInput
from .wrapper import Wrapper, shown


class Row(NamedTuple):
    """A sort of wrapping keys."""

    module: str
    name: str


SCHEMES = {
    "awskms://": Row("aws", "AwsKms"),
    "gcpkms://": Row("gcp", "GcpKms"),
    "azurekv://": Row("azure", "AzureKeyVault"),
    "vault://": Row("vault", "Vault"),
    "pkcs11:": Row("pkcs11", "Pkcs11"),
    "keyring:": Row("keychain", "Keyring"),
    "age:": Row("age", "Age"),
}


def holder(uri: str) -> Wrapper:
    """Who holds the wrapping key of this URI. Raises InvalidInput for one of no sort that is known, or without its
    extra."""
    if not uri.isprintable():
        raise InvalidInput(
            f"a wrapping key's URI of printable characters is expected, got {shown(uri)}: nobody sees which key that names."
        )
    if uri.startswith("passkey:"):
        raise InvalidInput(
            f"{shown(uri)!r} is a passkey, which browsers ask for on pages of its domain alone: load the file there, and write "
            "a copy with toFile({ passphrase })."
        )
    row = next((row for scheme, row in SCHEMES.items() if uri.startswith(scheme)), None)
    if row is None:
        known = ", ".join(SCHEMES)
        raise InvalidInput(
            f"a wrapping key's URI begins with one of {known}, got {shown(uri)!r}. See docs/keys-and-backups.md"
        )
    made: Wrapper = getattr(importlib.import_module(f"{__package__}.{row.module}"), row.name)(uri)
    return made
