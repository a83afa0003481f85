"""Wrapping keys of Azure Key Vault and Managed HSM: RSA-OAEP-256, or A256KW of a Managed HSM's AES keys. Neither
authenticates more than the file key; the key file binds id, URI and file key to each other, not whose key it is. What is
stored begins with algorithm and version, as a newer version of a key does not unwrap what an older one wrapped."""

from __future__ import annotations

import base64
import re
from typing import Any, NoReturn

from ...errors import InvalidInput
from ...ingest.extras import needed
from .wrapper import Context, after, away, denied, gone, not_its_own, shown, without

_EXAMPLE = "azurekv://VAULT.vault.azure.net/keys/NAME"
# A credential goes to no other host, whatever a key file says.
_HOSTS = (
    ".vault.azure.net", ".vault.azure.cn", ".vault.usgovcloudapi.net", ".managedhsm.azure.net",
    ".managedhsm.azure.cn", ".managedhsm.usgovcloudapi.net",
)  # fmt: skip
_NAME = re.compile(r"(?P<host>[a-zA-Z0-9-]+(\.[a-z]+)+)/keys/(?P<name>[a-zA-Z0-9-]+)", re.ASCII)
_VERSION = re.compile(r"[0-9a-f]{32}", re.ASCII)
_ALGORITHMS = ("RSA-OAEP-256", "A256KW")


class AzureKeyVault:
    """A key of Azure Key Vault or Managed HSM. Credentials are DefaultAzureCredential's."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        named = _NAME.fullmatch(after(uri, "azurekv://", _EXAMPLE))
        if named is None or not named["host"].endswith(_HOSTS):
            raise InvalidInput(
                f"{_EXAMPLE} expected, without a version and on a host of Azure's, got {shown(uri)}."
            )
        try:
            from azure.identity import DefaultAzureCredential
            from azure.keyvault.keys import KeyClient
        except ImportError:
            raise needed(
                "a key wrapped by Azure Key Vault", "azure-keyvault-keys with azure-identity", "azurekv"
            ) from None
        self._uri, self._key = uri, f"/keys/{named['name']}"
        self._algorithm = _ALGORITHMS["managedhsm" in named["host"]]
        self._credential: Any = DefaultAzureCredential()
        self._client: Any = KeyClient(
            f"https://{named['host']}", self._credential, connection_timeout=5, read_timeout=10, retry_total=2
        )

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """One request."""
        answer = self._ask("wrapkey", "", self._algorithm, file_key)
        version = str(answer["kid"]).rpartition("/")[2]
        return b" ".join([self._algorithm.encode(), version.encode(), _from_text(answer["value"])])

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """One request."""
        algorithm, _, rest = wrapped.partition(b" ")
        version, _, data = rest.partition(b" ")
        named, of = algorithm.decode("ascii", "replace"), version.decode("ascii", "replace")
        if named not in _ALGORITHMS or not _VERSION.fullmatch(of):
            not_its_own(self._uri, "it names no algorithm and version of a key")
        return _from_text(self._ask("unwrapkey", f"/{of}", named, data)["value"])

    def _ask(self, operation: str, version: str, algorithm: str, value: bytes) -> Any:
        # CryptographyClient would fetch the key first: a second request, and a second permission.
        from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
        from azure.core.rest import HttpRequest

        text = base64.urlsafe_b64encode(value).rstrip(b"=").decode()
        request = HttpRequest(
            "POST", f"{self._key}{version}/{operation}", json={"alg": algorithm, "value": text}
        )
        try:
            response = self._client.send_request(request, retry_on_methods=frozenset({"POST"}))
            response.raise_for_status()
            return response.json()
        except ClientAuthenticationError as error:
            denied(
                self._uri,
                without(_first_line(error), text),
                "az login, or set the identity's AZURE_… variables",
            )
        except HttpResponseError as error:
            self._refused(error, text)
        except AzureError as error:
            away(self._uri, without(_first_line(error), text))

    def _refused(self, error: Any, sent: str) -> NoReturn:
        why, status = without(_first_line(error), sent), error.status_code
        if status in (401, 403) and "disabled" not in why.lower():
            denied(self._uri, why, "the caller needs keys/wrapKey to wrap and keys/unwrapKey to unwrap")
        if status == 400:
            not_its_own(self._uri, why)
        if status in (403, 404, 409):
            gone(self._uri, why, "Recover the key or its version; without it the file stays shut.")
        away(self._uri, why)

    def close(self) -> None:
        """Close connections."""
        self._client.close()
        self._credential.close()


def _from_text(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
