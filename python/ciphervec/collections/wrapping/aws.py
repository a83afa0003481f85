"""Wrapping keys of AWS KMS: one Encrypt or Decrypt a file key, bound to key id and URI by the encryption context, which
CloudTrail shows."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import urlsplit

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.forks import open_in_child
from .wrapper import Context, after, away, denied, gone, is_local, not_its_own, parameters, shown, without

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
open_in_child(_MAKING)
_NOT_ITS_OWN = {"IncorrectKeyException", "InvalidCiphertextException"}


class AwsKms:
    """A key of AWS KMS. Credentials, endpoint and region are those of the aws command."""

    _client: Any

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        key, _, query = after(uri, "awskms://", _EXAMPLE).partition("?")
        region = parameters(uri, query, ("region",)).get("region")
        named = _KEY.fullmatch(key)
        if named is None or (region is not None and not _REGION.fullmatch(region)):
            raise InvalidInput(f"{_EXAMPLE} and ?region=REGION at will expected, got {shown(uri)}.")
        try:
            import boto3
            from botocore.exceptions import BotoCoreError, NoRegionError
        except ImportError:
            raise needed("a key wrapped by AWS KMS", "boto3", "awskms") from None
        self._uri, self._key = uri, key
        try:
            with _MAKING:
                # boto3 itself reads AWS_DEFAULT_REGION, and not the variable of the aws command.
                self._client = _client(
                    boto3.client, region or named["region"] or os.environ.get("AWS_REGION")
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
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionClosedError,
            HTTPClientError,
            ReadTimeoutError,
        )

        bound = {"ciphervec-key": context.key_id, "ciphervec-wrapped-by": context.uri}
        try:
            return getattr(self._client, operation)(KeyId=self._key, EncryptionContext=bound, **given)
        except ClientError as error:
            self._refused(error.response.get("Error", {}), *given.values())
        except BotoCoreError as error:
            if type(error).__name__ in (
                "NoCredentialsError",
                "PartialCredentialsError",
                "TokenRetrievalError",
            ):
                denied(self._uri, error, "set AWS credentials as for the aws command")
            sayable = not isinstance(error, HTTPClientError) or isinstance(
                error, ConnectionClosedError | ReadTimeoutError
            )
            # The others quote the header that they could not send.
            why = shown(without(error, *given.values())) if sayable else type(error).__name__
            away(self._uri, why, "look at the AWS_… variables, or try again")

    def _refused(self, error: dict[str, str], *sent: bytes) -> NoReturn:
        code, said = error.get("Code", ""), without(error.get("Message", ""), *sent)
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


def _client(make: Callable[..., Any], region: str | None) -> Any:
    from botocore.config import Config

    patience = Config(
        connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3}
    )
    try:
        made: Any = make("kms", region_name=region, config=patience)
        place = urlsplit(made.meta.endpoint_url)
    except ValueError:
        raise InvalidInput(
            "AWS KMS has no such region or endpoint. Look at AWS_REGION and AWS_ENDPOINT_URL_KMS."
        ) from None
    if place.scheme == "https":
        return made
    made.close()
    if not is_local(place):
        raise InvalidInput(
            f"The endpoint of AWS KMS is {place.scheme}://{place.hostname}: file keys would cross the network in clear. "
            "Take https:// in AWS_ENDPOINT_URL_KMS or AWS_ENDPOINT_URL."
        )
    # A proxy would see what is sent to this machine in clear.
    return make("kms", region_name=region, config=patience.merge(Config(proxies={})))
