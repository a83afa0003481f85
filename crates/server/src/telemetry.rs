//! Telemetry: traces and metrics by OTLP, for an operator's collector: a span a request, and one a stage of its work. They
//! are made of route, status, sizes and times alone: nothing that a client sent goes out but the ids of its trace, and no
//! name of a collection.

use axum::http::HeaderMap;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{
    Span, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceFlags, TraceState,
    Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use reqwest::Url;
use std::time::{Duration, SystemTime};

const TRACEPARENT: &str = "traceparent";

/// Where spans and measurements go.
pub struct Telemetry {
    traces: SdkTracerProvider,
    tracer: SdkTracer,
    meters: SdkMeterProvider,
    seconds: Histogram<f64>,
    stages: Histogram<f64>,
    received: Counter<u64>,
    sent: Counter<u64>,
}

/// A request that was answered.
pub struct Answered<'a> {
    /// GET, PUT, …
    pub method: &'static str,
    /// The route, never a path that was sent.
    pub route: &'a str,
    /// The status.
    pub status: u16,
    /// Bytes of its body.
    pub received: u64,
    /// Bytes of the answer's.
    pub sent: u64,
    /// From its first byte to the answer's.
    pub took: Duration,
    /// Parts of the work, one after the other, and their seconds.
    pub stages: &'a [(&'static str, f64)],
    /// The trace that it belongs to, where whoever sent it is known.
    pub parent: Option<Context>,
}

/// The one header that is read: `tracestate` is a text of the sender's.
struct Parent<'a>(&'a HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == TRACEPARENT).then(|| self.0.get(TRACEPARENT)?.to_str().ok()).flatten()
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

/// The trace that a request says it belongs to (W3C), if it does. It counts as sampled, whatever its sender says of that.
pub fn parent(headers: &HeaderMap) -> Option<Context> {
    let none = Context::new();
    let found = TraceContextPropagator::new().extract_with_context(&none, &Parent(headers));
    let named = found.span().span_context().clone();
    let (trace, span) = (named.trace_id(), named.span_id());
    let sampled = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::default());
    named.is_valid().then(|| none.with_remote_span_context(sampled))
}

impl Telemetry {
    /// Sends what happens from now on to a collector, whose paths are `/v1/traces` and `/v1/metrics` below `url`. Other
    /// settings come from the usual OTEL_* variables.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn start(url: &str) -> Result<Self, String> {
        let parsed = Url::parse(url).ok();
        let parsed =
            parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = parsed.ok_or_else(|| {
            format!("--otlp takes the URL of a collector, as http://localhost:4318; {url:?} came")
        })?;
        let base = base.as_str().trim_end_matches('/');
        // Whoever was first has installed the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable = |error: &dyn std::fmt::Display| format!("cannot send to --otlp: {error}");
        let spans = SpanExporter::builder().with_http().with_endpoint(format!("{base}/v1/traces"));
        let measured =
            MetricExporter::builder().with_http().with_endpoint(format!("{base}/v1/metrics"));
        let spans = spans.build().map_err(|error| unusable(&error))?;
        let measured = measured.build().map_err(|error| unusable(&error))?;
        let resource = Resource::builder().with_service_name("ciphervec").build();
        let traces = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            // Whether a request is seen is not for its sender to say.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource.clone())
            .build();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(measured)
            .with_resource(resource)
            .build();
        let meter = meters.meter("ciphervec");
        let seconds = |name| meter.f64_histogram(name).with_unit("s").build();
        let bytes = |name| meter.u64_counter(name).with_unit("By").build();
        Ok(Telemetry {
            tracer: traces.tracer("ciphervec"),
            seconds: seconds("http.server.request.duration"),
            stages: seconds("ciphervec.stage.duration"),
            received: bytes("ciphervec.received"),
            sent: bytes("ciphervec.sent"),
            traces,
            meters,
        })
    }

    /// Notes a request whose answer begins now.
    pub fn answered(&self, answered: Answered<'_>) {
        let Answered { method, route, status, received, sent, took, stages, parent } = answered;
        let labels = [
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route.to_owned()),
            KeyValue::new("http.response.status_code", i64::from(status)),
        ];
        self.seconds.record(took.as_secs_f64(), &labels);
        self.received.add(received, &labels[..2]);
        self.sent.add(sent, &labels[..2]);
        let now = SystemTime::now();
        let size = |name, bytes: u64| KeyValue::new(name, i64::try_from(bytes).unwrap_or(i64::MAX));
        let attributes = labels.into_iter().chain([
            size("http.request.body.size", received),
            size("http.response.body.size", sent),
        ]);
        let builder = SpanBuilder::from_name(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_start_time(now.checked_sub(took).unwrap_or(now))
            .with_attributes(attributes);
        let mut span = self.tracer.build_with_context(builder, &parent.unwrap_or_default());
        if status >= 500 {
            span.set_status(Status::error(""));
        }
        let within = Context::new().with_remote_span_context(span.span_context().clone());
        let mut end = now;
        for &(stage, seconds) in stages.iter().rev() {
            self.stages.record(seconds, &[KeyValue::new("stage", stage)]);
            let start = Duration::try_from_secs_f64(seconds).ok();
            let start = start.and_then(|took| end.checked_sub(took)).unwrap_or(end);
            let builder = SpanBuilder::from_name(stage).with_start_time(start);
            self.tracer.build_with_context(builder, &within).end_with_timestamp(end);
            end = start;
        }
        span.end_with_timestamp(now);
    }

    /// Sends what is left, before the server ends.
    pub fn close(&self) {
        for closed in [self.traces.shutdown(), self.meters.shutdown()] {
            if let Err(error) = closed {
                tracing::warn!(%error, "the last spans or measurements did not reach the collector");
            }
        }
    }
}
