//! Reads bodies of requests within limits of size, time and memory.

use super::headers::content_length;
use super::problem::Problem;
use crate::json_limits::Object;
use crate::metrics::Metrics;
use crate::storage::Pieces;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A sender who is slower than this is told so, once [`GRACE`] is over.
const LEAST_RATE: u64 = 16 << 10;
const GRACE: Duration = Duration::from_secs(30);
/// The unit in which memory for bodies is counted.
const UNIT: u64 = 1 << 10;
const MAX_JSON: u64 = 64 << 10;
/// Answers go out in pieces of this size.
const PIECE: usize = 256 << 10;
const PAUSE: Duration = Duration::from_secs(1);

/// Counts what came of one request's body.
#[derive(Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// Bytes so far.
    pub fn received(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Memory for the bodies of all requests together.
pub struct Buffers {
    free: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Buffers {
    /// Room for that many bytes.
    pub fn new(bytes: u64, metrics: Arc<Metrics>) -> Self {
        let units = usize::try_from(bytes / UNIT).unwrap_or(usize::MAX);
        Buffers { free: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))), metrics }
    }

    /// Nothing yet.
    pub fn share(&self) -> Share {
        Share { free: self.free.clone(), metrics: self.metrics.clone(), held: None, bytes: 0 }
    }
}

/// The part of [`Buffers`] that one request has; it goes back when this is dropped.
pub struct Share {
    free: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    held: Option<OwnedSemaphorePermit>,
    bytes: u64,
}

impl Share {
    /// Takes room for `bytes` more.
    ///
    /// # Errors
    /// 503 if there is none: waiting for it could wait for ever.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        let total = self.bytes.saturating_add(bytes);
        let held = self.held.as_ref().map_or(0, |permit| permit.num_permits() as u64);
        let missing = total.div_ceil(UNIT).saturating_sub(held);
        let permit = u32::try_from(missing).ok();
        let permit = permit.and_then(|units| self.free.clone().try_acquire_many_owned(units).ok());
        let Some(permit) = permit else {
            self.metrics.reject("memory");
            return Err(Problem::busy(
                "the bodies of other requests fill the memory set aside",
                PAUSE,
            ));
        };
        match &mut self.held {
            Some(held) => held.merge(permit),
            None => self.held = Some(permit),
        }
        self.bytes = total;
        self.metrics.buffered.inc_by(bytes);
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.metrics.buffered.dec_by(self.bytes);
    }
}

/// A body on its way.
pub struct Incoming {
    body: Body,
    length: Option<u64>,
    limit: u64,
    received: u64,
    started: Instant,
    patience: Duration,
    meter: Option<Arc<Meter>>,
    metrics: Arc<Metrics>,
}

impl Incoming {
    /// Bytes that it may have.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The body of a request.
    ///
    /// # Errors
    /// 413 if it says that it is larger than `limit`.
    pub fn new(
        request: Request,
        limit: u64,
        patience: Duration,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Problem> {
        let length = content_length(request.headers());
        if let Some(length) = length.filter(|&length| length > limit) {
            return Err(too_large(length, limit));
        }
        let meter = request.extensions().get::<Arc<Meter>>().cloned();
        Ok(Incoming {
            body: request.into_body(),
            length,
            limit,
            received: 0,
            started: Instant::now(),
            patience,
            meter,
            metrics,
        })
    }

    /// The next bytes; none at the end.
    async fn read(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let earned = Duration::from_secs(self.received / LEAST_RATE);
            let left = (GRACE + earned).saturating_sub(self.started.elapsed());
            let frame = tokio::time::timeout(left.min(self.patience), self.body.frame()).await;
            let frame = match frame.map_err(|_| self.too_slow())? {
                None => return Ok(None),
                Some(Err(_)) => return Err(Problem::bad_request("the body broke off")),
                Some(Ok(frame)) => frame,
            };
            // Trailers say nothing here.
            let Ok(bytes) = frame.into_data() else { continue };
            self.received = self.received.saturating_add(bytes.len() as u64);
            self.metrics.received.inc_by(bytes.len() as u64);
            if let Some(meter) = &self.meter {
                meter.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            if self.received > self.limit {
                return Err(too_large(self.received, self.limit));
            }
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// All of it, in memory taken from `share`.
    ///
    /// # Errors
    /// As [`Pieces::next`] and [`Share::grow`].
    pub async fn all(mut self, share: &mut Share) -> Result<Bytes, Problem> {
        let mut first = None;
        let mut whole: Vec<u8> = Vec::new();
        while let Some(bytes) = self.next().await? {
            share.grow(bytes.len() as u64)?;
            match (&first, whole.is_empty()) {
                (None, true) => first = Some(bytes),
                _ => {
                    if let Some(first) = first.take() {
                        whole.extend_from_slice(&first);
                    }
                    whole.extend_from_slice(&bytes);
                }
            }
        }
        Ok(first.unwrap_or_else(|| whole.into()))
    }

    /// All of it as JSON.
    ///
    /// # Errors
    /// As [`Pieces::next`]; 400 if it is not what is expected.
    pub async fn json<T: DeserializeOwned>(mut self, expected: &str) -> Result<T, Problem> {
        self.limit = self.limit.min(MAX_JSON);
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        let refused = |error: serde_json::Error| {
            Problem::bad_request(format!("the body is not the JSON expected: {error}"))
                .hint(format!("send {expected}"))
        };
        serde_json::from_slice(&whole).map(|Object(value)| value).map_err(refused)
    }

    fn too_slow(&self) -> Problem {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            format!("the body stopped after {} bytes", self.received),
        )
        .hint("send it again without pauses, or as an upload, which can be resumed")
        .header(header::CONNECTION, header::HeaderValue::from_static("close"))
    }
}

/// Its errors: 408 for a slow sender, 413 beyond the limit, 400 if the connection breaks off.
impl Pieces for Incoming {
    type Error = Problem;

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Problem>> + Send {
        self.read()
    }
}

fn too_large(length: u64, limit: u64) -> Problem {
    Problem::too_large(format!("a body of {length} bytes, at most {limit} are taken here"))
}

/// The length of an answer's body.
pub fn sent(response: &Response) -> u64 {
    let exact = HttpBody::size_hint(response.body()).exact();
    // The length of what goes out in pieces is in its header.
    exact.or_else(|| content_length(response.headers())).unwrap_or_default()
}

/// What became of a request's body.
#[derive(Clone, Default)]
pub struct Rest(Arc<Mutex<RestState>>);

#[derive(Default)]
struct RestState {
    /// The body, where whoever answered did not read all of it.
    left: Option<Body>,
    /// Whether it may be read at all.
    wanted: bool,
}

impl Rest {
    /// A body that comes back here if it is not read to its end, and the place where it does.
    pub fn of(body: Body, wanted: bool) -> (Body, Self) {
        let rest = Rest(Arc::new(Mutex::new(RestState { left: None, wanted })));
        let returning = Returning { body: Some(body), ended: false, rest: rest.clone() };
        (Body::new(returning), rest)
    }

    fn state(&self) -> MutexGuard<'_, RestState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and forgets what is left, so that its sender gets to read the answer; whether nothing is
    /// left then.
    pub async fn drain(self, limit: u64, patience: Duration) -> bool {
        let (left, wanted) = {
            let mut state = self.state();
            (state.left.take(), state.wanted)
        };
        let Some(mut body) = left else { return true };
        let announced = HttpBody::size_hint(&body).lower();
        if !wanted || announced > limit {
            return false;
        }
        let mut room = limit;
        let reading = async {
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                let length = frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
                let Some(rest) = room.checked_sub(length) else { return false };
                room = rest;
            }
            true
        };
        tokio::time::timeout(patience, reading).await.unwrap_or(false)
    }
}

/// A body that goes back when it is dropped before its end.
struct Returning {
    body: Option<Body>,
    ended: bool,
    rest: Rest,
}

impl HttpBody for Returning {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.ended = true;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        let body = self.body.take().filter(|body| !self.ended && !body.is_end_stream());
        self.rest.state().left = body;
    }
}

/// An answer that goes out piece by piece, none of them copied.
pub fn pieces(bytes: Bytes) -> Body {
    let cut = |mut rest: Bytes| async move {
        let piece = rest.split_to(rest.len().min(PIECE));
        (!piece.is_empty()).then_some((Ok::<_, std::convert::Infallible>(piece), rest))
    };
    Body::from_stream(stream::unfold(bytes, cut).fuse())
}
