"""Wrapping keys of AWS KMS: one Encrypt or Decrypt a file key, bound to key id and URI by the encryption context, which
CloudTrail shows."""

from __future__ import annotations

import re
import threading
from typing import Any, NoReturn

from ...errors import InvalidInput
from ...ingest.extras import needed
from .wrapper import Context, after, away, denied, gone, not_its_own, parameters, shown

_EXAMPLE = "awskms://KEY, a key's id, alias/NAME or ARN,"
_KEY = re.compile(r"(arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):\d{12}:)?([\w/-]+)", re.ASCII)
_REGION = re.compile(r"[a-z0-9-]+", re.ASCII)
_DENIED = {
    "AccessDeniedException", "ExpiredTokenException", "IncompleteSignature", "InvalidClientTokenId",
    "InvalidSignatureException", "MissingAuthenticationToken", "NotAuthorized", "UnrecognizedClientException",
}  # fmt: skip
_GONE = {
    "DisabledException", "InvalidKeyUsageException", "KMSInvalidStateException", "NotFoundException",
}  # fmt: skip
_MAKING = threading.Lock()
"""Held while boto3's default session makes a client: what it has read of the service serves the next."""
_NOT_ITS_OWN = {"IncorrectKeyException", "InvalidCiphertextException"}


class AwsKms:
    """A key of AWS KMS. Credentials, endpoint and region are those of boto3's own chain."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        key, _, query = after(uri, "awskms://", _EXAMPLE).partition("?")
        region = parameters(uri, query, ("region",)).get("region")
        named = _KEY.fullmatch(key)
        if named is None or (region is not None and not _REGION.fullmatch(region)):
            raise InvalidInput(f"{_EXAMPLE} and ?region=REGION at will expected, got {shown(uri)}.")
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, NoRegionError
        except ImportError:
            raise needed("a key wrapped by AWS KMS", "boto3", "awskms") from None
        self._uri, self._key = uri, key
        patience = Config(
            connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3}
        )
        try:
            with _MAKING:
                self._client: Any = boto3.client(
                    "kms", region_name=region or named["region"], config=patience
                )
        except NoRegionError:
            raise InvalidInput(f"{uri}: of which region? Set AWS_REGION, or end it with ?region=….") from None
        except BotoCoreError as error:
            denied(uri, error, "look at the AWS profile that is used")

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """One request."""
        answer = self._ask("encrypt", context, Plaintext=file_key)
        return bytes(answer["CiphertextBlob"])

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """One request."""
        answer = self._ask("decrypt", context, CiphertextBlob=wrapped)
        return bytes(answer["Plaintext"])

    def _ask(self, operation: str, context: Context, **given: bytes) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        bound = {"ciphervec-key": context.key_id, "ciphervec-wrapped-by": context.uri}
        try:
            return getattr(self._client, operation)(KeyId=self._key, EncryptionContext=bound, **given)
        except ClientError as error:
            self._refused(error.response.get("Error", {}))
        except BotoCoreError as error:
            if type(error).__name__ in (
                "NoCredentialsError",
                "PartialCredentialsError",
                "TokenRetrievalError",
            ):
                denied(self._uri, error, "set AWS credentials as for the aws command")
            away(self._uri, error)

    def _refused(self, error: dict[str, str]) -> NoReturn:
        code, said = error.get("Code", ""), error.get("Message", "")
        why = f"{code}, {said}".strip(", ")
        if code in _DENIED:
            denied(self._uri, why, "the caller needs kms:Encrypt to wrap and kms:Decrypt to unwrap")
        if code in _NOT_ITS_OWN:
            not_its_own(self._uri, why)
        if code in _GONE:
            gone(self._uri, why, "Switch the key on or cancel its deletion; without it the file stays shut.")
        away(self._uri, why)

    def close(self) -> None:
        """Close connections."""
        self._client.close()
