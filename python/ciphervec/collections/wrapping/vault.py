"""Wrapping keys of the transit engine of HashiCorp Vault and OpenBao: one encrypt or decrypt a file key, with key id and URI
as associated data."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

from ...errors import InvalidInput
from ...ingest.extras import needed
from .wrapper import Context, after, away, denied, gone, is_local, not_its_own, shown, without

_EXAMPLE = "vault://MOUNT/KEY, such as vault://transit/ciphervec,"
_NAME = re.compile(r"(?P<mount>[\w.-]+(/[\w.-]+)*)/(?P<key>[\w.-]+)", re.ASCII)


class Vault:
    """A key of a transit engine. Address, namespace, token and certificates are those of the vault command: VAULT_ADDR,
    VAULT_NAMESPACE, VAULT_TOKEN or ~/.vault-token, VAULT_CACERT or VAULT_CAPATH."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        named = _NAME.fullmatch(after(uri, "vault://", _EXAMPLE))
        if named is None or ".." in uri:
            raise InvalidInput(f"{_EXAMPLE} expected, the address being VAULT_ADDR, got {shown(uri)}.")
        try:
            import hvac
        except ImportError:
            raise needed("a key wrapped by Vault", "hvac", "vault") from None
        address = _address(uri)
        self._uri, self._mount, self._key = uri, named["mount"], named["key"]
        try:
            # A redirect to another host would take the token along.
            self._client: Any = hvac.Client(
                url=address.geturl(),
                namespace=os.environ.get("VAULT_NAMESPACE", "").strip() or None,
                session=_session(address),
                timeout=10,
                allow_redirects=False,
            )
        except (OSError, UnicodeDecodeError) as error:
            denied(uri, f"~/.vault-token can't be read, {type(error).__name__}", "set VAULT_TOKEN")
        token = (self._client.token or "").strip()
        if not token:
            denied(uri, "there is no token", "set VAULT_TOKEN, or log in with the vault command")
        if not (token.isascii() and token.isprintable()):
            denied(uri, "the token has other characters than printable ASCII", "set VAULT_TOKEN anew")
        self._client.token = token

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """One request."""
        answer = self._ask("encrypt_data", context, plaintext=base64.b64encode(file_key).decode())
        return str(answer["ciphertext"]).encode()

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """One request."""
        answer = self._ask("decrypt_data", context, ciphertext=wrapped.decode("ascii", "replace"))
        return base64.b64decode(answer["plaintext"])

    def _ask(self, operation: str, context: Context, **given: str) -> Any:
        import hvac.exceptions
        import requests

        bound = base64.b64encode(context.data).decode()
        try:
            answer = getattr(self._client.secrets.transit, operation)(
                self._key, mount_point=self._mount, associated_data=bound, **given
            )
            return answer["data"]
        except hvac.exceptions.VaultError as error:
            self._refused(error, *given.values())
        except (requests.ConnectionError, requests.Timeout) as error:
            # Its text has the address and the cause, and nothing of what was sent.
            away(self._uri, without(error, self._client.token), "look at VAULT_ADDR, or try again")
        except requests.RequestException as error:
            away(self._uri, type(error).__name__, "look at the VAULT_… variables")
        except (KeyError, TypeError):
            away(self._uri, "the answer is none of a transit engine", "look at VAULT_ADDR")

    def _refused(self, error: Any, *sent: str) -> NoReturn:
        import hvac.exceptions as raised

        errors = [error.errors] if isinstance(error.errors, str) else error.errors or []
        said = without("; ".join(str(one).strip() for one in errors), self._client.token, *sent)
        why = f"{type(error).__name__}, {said}".strip(", ")
        if isinstance(error, raised.Forbidden | raised.Unauthorized):
            denied(self._uri, why, f"the token needs update on {self._mount}/encrypt and decrypt/{self._key}")
        if isinstance(error, raised.InvalidPath) or "not found" in said or "too old" in said:
            step = (
                "Give the key back, or its version (min_decryption_version); without it the file stays shut."
            )
            gone(self._uri, why, step)
        if isinstance(error, raised.InvalidRequest):
            not_its_own(self._uri, why)
        away(self._uri, why, "unseal it if it is sealed, or try again")

    def close(self) -> None:
        """Close connections."""
        self._client.adapter.close()


def _address(uri: str) -> SplitResult:
    address = os.environ.get("VAULT_ADDR", "").strip()
    if not address:
        raise InvalidInput(f"{uri}: where is the server? Set VAULT_ADDR, as for the vault command.")
    try:
        place = urlsplit(address)
    except ValueError:
        raise InvalidInput("VAULT_ADDR is no address; https://HOST:PORT is expected.") from None
    if place.scheme != "https" and not (place.scheme == "http" and is_local(place)):
        raise InvalidInput(
            f"VAULT_ADDR is {place.scheme}://{place.hostname}: file keys and tokens would cross the network in clear. "
            "Take https://."
        )
    return place


def _session(address: SplitResult) -> Any:
    import requests
    from urllib3.util import Retry

    session = requests.Session()
    retry = Retry(total=2, backoff_factor=0.2, status_forcelist=(429, 500, 502, 503), allowed_methods=None)
    retry.raise_on_status = False
    for scheme in ("https://", "http://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    # A proxy would see what is sent to this machine in clear.
    session.trust_env = address.scheme == "https"
    for name in ("VAULT_CACERT", "VAULT_CAPATH"):
        if (path := os.environ.get(name)) and not Path(path).exists():
            raise InvalidInput(f"{name} is {path}, which is not there.")
    # hvac prefers what a session says, and reads these variables but once.
    session.verify = os.environ.get("VAULT_CACERT") or os.environ.get("VAULT_CAPATH") or True
    return session
