"""Wrapping keys of Google Cloud KMS: one Encrypt or Decrypt a file key, with key id and URI as additional authenticated
data."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ...errors import InvalidInput
from ...ingest.extras import needed
from .wrapper import Context, after, away, denied, gone, not_its_own, shown, without

_EXAMPLE = "gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K"
_NAME = re.compile(r"projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+", re.ASCII)
_SECONDS = 10.0


class GcpKms:
    """A key of Google Cloud KMS. Credentials are the application default ones."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        self._uri, self._name = uri, after(uri, "gcpkms://", _EXAMPLE)
        if not _NAME.fullmatch(self._name):
            raise InvalidInput(f"{_EXAMPLE} expected, without a version, got {shown(uri)}.")
        try:
            from google.auth.exceptions import DefaultCredentialsError
            from google.cloud import kms_v1
        except ImportError:
            raise needed("a key wrapped by Google Cloud KMS", "google-cloud-kms", "gcpkms") from None
        try:
            self._client: Any = kms_v1.KeyManagementServiceClient()
        except DefaultCredentialsError:
            denied(
                uri, "there are no application default credentials", "gcloud auth application-default login"
            )

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """One request."""
        return bytes(self._ask("encrypt", context, plaintext=file_key).ciphertext)

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """One request."""
        return bytes(self._ask("decrypt", context, ciphertext=wrapped).plaintext)

    def _ask(self, operation: str, context: Context, **given: bytes) -> Any:
        from google.api_core.exceptions import (
            DeadlineExceeded,
            GoogleAPICallError,
            RetryError,
            ServiceUnavailable,
        )
        from google.api_core.retry import Retry, if_exception_type
        from google.auth.exceptions import GoogleAuthError

        request = {"name": self._name, "additional_authenticated_data": context.data, **given}
        patience = Retry(
            if_exception_type(DeadlineExceeded, ServiceUnavailable), initial=0.2, timeout=_SECONDS
        )
        try:
            return getattr(self._client, operation)(request=request, retry=patience, timeout=_SECONDS)
        except GoogleAPICallError as error:
            self._refused(type(error).__name__, without(error.message, *given.values()))
        except RetryError as error:
            away(self._uri, without(error.message, *given.values()))
        except GoogleAuthError as error:
            denied(self._uri, error, "log in with gcloud auth application-default login")

    def _refused(self, kind: str, said: str) -> NoReturn:
        why = f"{kind}, {said}".strip(", ")
        if kind in ("Forbidden", "PermissionDenied", "Unauthenticated", "Unauthorized"):
            denied(self._uri, why, "the caller needs the role cloudkms.cryptoKeyEncrypterDecrypter")
        if kind in ("BadRequest", "InvalidArgument"):
            not_its_own(self._uri, why)
        if kind in ("FailedPrecondition", "NotFound"):
            gone(self._uri, why, "Restore the key's version; without it the file stays shut.")
        away(self._uri, why)

    def close(self) -> None:
        """Close connections."""
        self._client.transport.close()
