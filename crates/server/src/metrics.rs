//! Metrics of the server as Prometheus text.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A route's requests with one status.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RequestLabels {
    /// GET, PUT, …
    pub method: String,
    /// The route as in the OpenAPI document, never a path that was sent.
    pub route: String,
    /// The status.
    pub status: u16,
}

/// A route.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RouteLabels {
    /// GET, PUT, …
    pub method: String,
    /// The route as in the OpenAPI document.
    pub route: String,
}

/// A collection.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct CollectionLabels {
    /// Its name.
    pub collection: String,
}

/// Why a request was turned away.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ReasonLabels {
    /// What ran out, why a connection was closed, what kind of refusal it was.
    pub reason: &'static str,
}

/// Which verb a token would have needed.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct VerbLabels {
    /// As in token files.
    pub verb: &'static str,
}

/// What is known of a collection when the metrics are read.
pub struct Reading {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes stored.
    pub bytes: u64,
    /// Bytes in memory.
    pub resident: u64,
    /// Segments.
    pub segments: u64,
}

/// What can run out.
const REJECTED: [&str; 8] = [
    "token",
    "rate",
    "queries-per-day",
    "max-bytes",
    "max-rows",
    "memory",
    "operations",
    "connections",
];
/// Why connections are closed from here.
const CLOSED: [&str; 4] = ["silent", "idle", "unread", "crowded"];
/// What can be wrong with a store.
const STORAGE: [&str; 4] = ["full", "read-only", "refused", "stopped"];
/// Verbs that a token may lack.
const VERBS: [&str; 8] = ["read", "query", "append", "write", "run", "keep", "admin", "metrics"];
/// Why a run is ended.
const STOPPED: [&str; 2] = ["left", "deadline"];

/// Every metric of the server.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    /// Requests being answered.
    pub in_flight: Gauge,
    /// Open connections.
    pub connections: Gauge,
    /// Queries that wait or are being answered.
    pub queries: Gauge,
    waiting: Gauge,
    /// Bytes of request bodies in memory.
    pub buffered: Gauge<u64, AtomicU64>,
    /// Bytes of request bodies.
    pub received: Counter,
    /// Bytes of answers.
    pub sent: Counter,
    rejected: Family<ReasonLabels, Counter>,
    closed: Family<ReasonLabels, Counter>,
    problems: Family<ReasonLabels, Counter>,
    denied: Family<VerbLabels, Counter>,
    storage: Family<ReasonLabels, Counter>,
    /// Queries answered piece by piece, since the collection is larger than the memory budget.
    pub degraded: Counter,
    queue_seconds: Histogram,
    scan_seconds: Histogram,
    fetch_seconds: Histogram,
    /// Bytes of tables of private fetch in memory.
    pub fetch_tables: Gauge<u64, AtomicU64>,
    commit_seconds: Histogram,
    /// Open uploads.
    pub uploads: Gauge,
    /// Bytes set aside for them.
    pub upload_bytes: Gauge<u64, AtomicU64>,
    /// Runs of programs that wait or are computed.
    pub runs: Gauge,
    runs_waiting: Gauge,
    run_queue_seconds: Histogram,
    run_load_seconds: Histogram,
    run_seconds: Histogram,
    stopped: Family<ReasonLabels, Counter>,
    programs: Gauge,
    program_bytes: Gauge<u64, AtomicU64>,
    program_memory: Gauge<u64, AtomicU64>,
    /// Memory for segments and the work on queries.
    pub budget: Gauge<u64, AtomicU64>,
    /// Memory that the whole process takes.
    pub process: Gauge<u64, AtomicU64>,
    rows: Family<CollectionLabels, Gauge>,
    bytes: Family<CollectionLabels, Gauge>,
    resident: Family<CollectionLabels, Gauge>,
    segments: Family<CollectionLabels, Gauge>,
}

/// From a tenth of a millisecond to a minute and a half.
fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 20))
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let metrics = Metrics {
            registry: Registry::with_prefix("ciphervec"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(latency as fn() -> Histogram),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            queries: Gauge::default(),
            waiting: Gauge::default(),
            buffered: Gauge::default(),
            received: Counter::default(),
            sent: Counter::default(),
            rejected: Family::default(),
            closed: Family::default(),
            problems: Family::default(),
            denied: Family::default(),
            storage: Family::default(),
            degraded: Counter::default(),
            queue_seconds: latency(),
            scan_seconds: latency(),
            fetch_seconds: latency(),
            fetch_tables: Gauge::default(),
            commit_seconds: latency(),
            uploads: Gauge::default(),
            upload_bytes: Gauge::default(),
            runs: Gauge::default(),
            runs_waiting: Gauge::default(),
            run_queue_seconds: latency(),
            run_load_seconds: latency(),
            run_seconds: latency(),
            stopped: Family::default(),
            programs: Gauge::default(),
            program_bytes: Gauge::default(),
            program_memory: Gauge::default(),
            budget: Gauge::default(),
            process: Gauge::default(),
            rows: Family::default(),
            bytes: Family::default(),
            resident: Family::default(),
            segments: Family::default(),
        };
        // There from the start: what rises from nothing to one has not risen, to who asks by how much.
        for (family, reasons) in [
            (&metrics.rejected, &REJECTED[..]),
            (&metrics.closed, &CLOSED[..]),
            (&metrics.storage, &STORAGE[..]),
            (&metrics.stopped, &STOPPED[..]),
        ] {
            for &reason in reasons {
                drop(family.get_or_create(&ReasonLabels { reason }));
            }
        }
        for verb in VERBS {
            drop(metrics.denied.get_or_create(&VerbLabels { verb }));
        }
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let to = &mut self.registry;
        to.register("requests", "Answers by route and status", self.requests.clone());
        to.register_with_unit(
            "request",
            "From the first byte of a request to the first of its answer",
            Unit::Seconds,
            self.seconds.clone(),
        );
        to.register("requests_in_flight", "Requests being answered", self.in_flight.clone());
        to.register("connections", "Open connections", self.connections.clone());
        to.register("queries_in_flight", "Queries waiting or being answered", self.queries.clone());
        to.register("queries_waiting", "Queries waiting for their turn", self.waiting.clone());
        to.register_with_unit(
            "buffered",
            "Request bodies in memory",
            Unit::Bytes,
            self.buffered.clone(),
        );
        to.register_with_unit("received", "Bodies of requests", Unit::Bytes, self.received.clone());
        to.register_with_unit("sent", "Bodies of answers", Unit::Bytes, self.sent.clone());
        to.register("rejected", "Requests turned away, by what ran out", self.rejected.clone());
        to.register(
            "closed_connections",
            "Connections closed from here, by what their peers did not do",
            self.closed.clone(),
        );
        to.register("problems", "Requests refused or failed, by their type", self.problems.clone());
        to.register(
            "denied",
            "Requests whose token is not for them, by the permission they need",
            self.denied.clone(),
        );
        to.register(
            "storage_errors",
            "Requests that the store failed, by what was wrong",
            self.storage.clone(),
        );
        to.register(
            "degraded_answers",
            "Queries over more segments than fit the memory budget",
            self.degraded.clone(),
        );
        let seconds = |to: &mut Registry, name, help, histogram: &Histogram| {
            to.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        };
        seconds(to, "query_queue", "Waiting for other queries", &self.queue_seconds);
        seconds(to, "query_scan", "Answering a query", &self.scan_seconds);
        seconds(to, "fetch", "Answering a private fetch", &self.fetch_seconds);
        to.register_with_unit(
            "fetch_tables",
            "Tables of private fetch in memory",
            Unit::Bytes,
            self.fetch_tables.clone(),
        );
        seconds(to, "commit", "A commit, fsync included", &self.commit_seconds);
        to.register("uploads", "Unfinished uploads", self.uploads.clone());
        to.register_with_unit(
            "upload",
            "Set aside for uploads",
            Unit::Bytes,
            self.upload_bytes.clone(),
        );
        to.register("runs_in_flight", "Runs of programs, waiting or computed", self.runs.clone());
        to.register("runs_waiting", "Runs waiting for their turn", self.runs_waiting.clone());
        seconds(
            to,
            "run_queue",
            "A run waiting for a turn and for memory",
            &self.run_queue_seconds,
        );
        seconds(to, "run_load", "Reading what a run needs", &self.run_load_seconds);
        seconds(to, "run", "The steps of a run", &self.run_seconds);
        to.register("stopped_runs", "Runs that were ended, by why", self.stopped.clone());
        to.register("programs", "Programs that are open", self.programs.clone());
        to.register_with_unit(
            "program",
            "Stored plans, keys and inputs",
            Unit::Bytes,
            self.program_bytes.clone(),
        );
        to.register_with_unit(
            "program_memory",
            "Taken by plans, keys, inputs and runs",
            Unit::Bytes,
            self.program_memory.clone(),
        );
        to.register_with_unit(
            "memory_budget",
            "For segments and the work on queries",
            Unit::Bytes,
            self.budget.clone(),
        );
        to.register_with_unit(
            "process_resident",
            "Memory that the whole process takes, 0 where the system does not say",
            Unit::Bytes,
            self.process.clone(),
        );
        to.register("collection_rows", "Rows, deleted ones included", self.rows.clone());
        to.register_with_unit("collection", "Stored", Unit::Bytes, self.bytes.clone());
        to.register_with_unit(
            "collection_resident",
            "In memory",
            Unit::Bytes,
            self.resident.clone(),
        );
        to.register("collection_segments", "Segments", self.segments.clone());
        self
    }

    /// An answer has begun.
    pub fn answered(&self, labels: RequestLabels, took: Duration) {
        let route = RouteLabels { method: labels.method.clone(), route: labels.route.clone() };
        self.seconds.get_or_create(&route).observe(took.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
    }

    /// A request was turned away.
    pub fn reject(&self, reason: &'static str) {
        self.rejected.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// A connection was closed from here.
    pub fn close(&self, reason: &'static str) {
        self.closed.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// A request was refused or failed.
    pub fn problem(&self, reason: &'static str) {
        self.problems.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// A token was not enough for what was asked.
    pub fn deny(&self, verb: &'static str) {
        self.denied.get_or_create(&VerbLabels { verb }).inc();
    }

    /// The store failed a request.
    pub fn storage_error(&self, reason: &'static str) {
        self.storage.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// A private fetch was answered.
    pub fn fetch(&self, work: Duration) {
        self.fetch_seconds.observe(work.as_secs_f64());
    }

    /// A query was answered.
    pub fn query(&self, queue: Duration, scan: Duration, degraded: bool) {
        self.queue_seconds.observe(queue.as_secs_f64());
        self.scan_seconds.observe(scan.as_secs_f64());
        self.degraded.inc_by(u64::from(degraded));
    }

    /// A program was run.
    pub fn run(&self, queue: Duration, load: Duration, run: Duration) {
        self.run_queue_seconds.observe(queue.as_secs_f64());
        self.run_load_seconds.observe(load.as_secs_f64());
        self.run_seconds.observe(run.as_secs_f64());
    }

    /// A run was ended before its last step.
    pub fn stop(&self, reason: &'static str) {
        self.stopped.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// What is known of programs now: how many wait to run, how many are open, the bytes that they
    /// have stored, and those that they take in memory.
    pub fn programs(&self, waiting: usize, (open, stored): (u64, u64), memory: u64) {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.runs_waiting.set(whole(waiting as u64));
        self.programs.set(whole(open));
        self.program_bytes.set(stored);
        self.program_memory.set(memory);
    }

    /// A commit is durable.
    pub fn commit(&self, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
    }

    /// Everything as text, with what is known of each collection and of the queue now.
    pub fn text(&self, collections: &[Reading], waiting: usize) -> String {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.waiting.set(whole(waiting as u64));
        for family in [&self.rows, &self.bytes, &self.resident, &self.segments] {
            family.clear();
        }
        for reading in collections {
            let labels = CollectionLabels { collection: reading.name.clone() };
            self.rows.get_or_create(&labels).set(whole(reading.rows));
            self.bytes.get_or_create(&labels).set(whole(reading.bytes));
            self.resident.get_or_create(&labels).set(whole(reading.resident));
            self.segments.get_or_create(&labels).set(whole(reading.segments));
        }
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts something up while it lives.
pub struct Counting(Gauge);

impl Counting {
    /// Counts one up.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Counting(gauge.clone())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.dec();
    }
}
