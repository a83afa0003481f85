"""Spans of OpenTelemetry, for applications that trace themselves: one a call, with how many rows and bytes it was, and
nothing of what they hold. Off until `trace_calls`; the package of OpenTelemetry is asked for only then."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .extras import needed

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class _Tracing:
    tracer: Tracer
    propagate: bool


_tracing: _Tracing | None = None
_SPAN: contextvars.ContextVar[Span | None] = contextvars.ContextVar("ciphervec_span", default=None)


def trace_calls(on: bool = True, *, propagate: bool = False) -> None:
    """Make spans of the calls of all clients of this process, for the tracer provider that the application has set.

    A span has the name of the call, how many rows it was about, bytes that were sent and received, and whether it
    failed: no id, text, vector, name or message. With `propagate` requests bear the ids of their trace (`traceparent`):
    a server of `serve --otlp` puts its spans below the caller's, and whoever runs it sees which requests belong
    together, which requests alone do not say. Raises InvalidInput where opentelemetry-api is not installed.
    """
    global _tracing
    if not on:
        _tracing = None
        return
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as error:
        raise needed("tracing", "opentelemetry-api", "otel") from error
    _tracing = _Tracing(trace.get_tracer("ciphervec"), propagate)


def traced(method: Callable[P, R]) -> Callable[P, R]:
    """The method, in a span of its name."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tracing = _tracing
        if tracing is None:
            return method(*args, **kwargs)
        from opentelemetry.trace import SpanKind, Status, StatusCode

        # A message of an error may name ids, and so may its traceback.
        with tracing.tracer.start_as_current_span(
            f"ciphervec.{method.__name__}",
            kind=SpanKind.CLIENT,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            token = _SPAN.set(span)
            try:
                return method(*args, **kwargs)
            except BaseException:
                span.set_status(Status(StatusCode.ERROR))
                raise
            finally:
                _SPAN.reset(token)

    return call


def note(count: int, sent: int, received: int) -> None:
    """Say in the span of the present call how many rows or queries there were, and bytes of bodies."""
    span = _SPAN.get()
    if span is None:
        return
    span.set_attributes({"ciphervec.count": count, "ciphervec.sent": sent, "ciphervec.received": received})


def traceparent() -> str | None:
    """What a request says of the trace that it belongs to; None where it is to say nothing."""
    if _tracing is None or not _tracing.propagate:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, Any] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


__all__ = ["note", "trace_calls", "traced", "traceparent"]
