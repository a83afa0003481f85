"""Exceptions as the status codes and error bodies that Chroma's clients know. Key owner's side."""

from __future__ import annotations

import ciphervec.errors as errors

from ..ingest.limits import OverLimit

# What its clients make exceptions of; anything else reaches the caller as a bare message.
NAMES = {
    400: "InvalidArgumentError",
    403: "AuthError",
    404: "NotFoundError",
    409: "UniqueConstraintError",
    410: "Unimplemented",
    413: "BatchSizeExceededError",
    415: "InvalidArgumentError",
    422: "InvalidArgumentError",
    429: "RateLimitError",
    500: "InternalError",
    501: "InternalError",
    503: "InternalError",
    507: "QuotaError",
}


class Problem(Exception):  # noqa: N818
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, str]:
        """What the client is shown."""
        return {"error": NAMES[self.status], "message": str(self)}


def invalid(message: str) -> Problem:
    """An argument that can't be used."""
    return Problem(400, message)


def no_collection(name: str) -> Problem:
    """What is asked about is not there, or is gone."""
    return Problem(404, f"Collection [{name}] does not exist.")


def of(error: Exception) -> Problem:
    """What an error of the store behind the sidecar looks like from the application."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, OverLimit):
        return Problem(error.status, str(error), error.retry_after)
    if isinstance(error, errors.InvalidInput | errors.DuplicateId):
        return Problem(400, str(error))
    if isinstance(error, errors.CollectionNotFound):
        return Problem(404, f"Collection does not exist: another sidecar deleted it. {error}")
    if isinstance(error, errors.Conflict | errors.CommitUncertain):
        return Problem(503, f"others write to this collection at the same time: {error}")
    if isinstance(error, errors.PoolExhausted):
        return Problem(503, f"others may be shown no more results under this query key: {error}")
    if isinstance(error, errors.AuthenticationError):
        return Problem(503, f"the server behind the sidecar refuses its token: {error}")
    if isinstance(error, errors.ServerError):
        return Problem(503, f"the server behind the sidecar does not answer: {error}")
    if isinstance(error, errors.StoreLocked):
        return Problem(503, f"another process writes to the sidecar's folder: {error}")
    if isinstance(error, errors.WrongKey):
        return Problem(500, f"the sidecar's key does not fit: {error}")
    return Problem(500, str(error))
