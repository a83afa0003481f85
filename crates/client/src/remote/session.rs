//! A session with one server: a request is sent until it is answered.
//!
//! It is sent again after a lost connection and after 429, 502, 503 and 504. All requests may be: a commit carries a key by which the
//! server knows it again, and the others change nothing twice.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::host::{Head, Host, Later, Request};
use crate::json;
use crate::remote::address::Token;
use crate::remote::problem::{Reply, error_of, printable, words};
use crate::remote::sinks::{Blob, Parted, Whole};
use crate::store::Receiver;

const API: &str = "1";
/// Bytes of an answer that is JSON.
const MAX_JSON: usize = 256 << 20;
/// Of a listing of 700,000 segments: texts, and lists and objects.
const MOST_TEXTS: usize = 1 << 23;
const MOST_LISTS: usize = 1 << 22;
const LONGEST_ERROR: usize = 1 << 20;
/// Bytes of a blob after which an attempt to read it counts as none that failed.
const LEAST_PROGRESS: usize = 64 << 10;
/// Answers after which the same request may succeed.
const RETRIED: [u16; 4] = [429, 502, 503, 504];

/// What is sent, beside the path.
#[derive(Default)]
pub struct Call<'a> {
    pub body: Option<&'a [u8]>,
    pub headers: Vec<(&'static str, String)>,
    /// Statuses that are answers, beside 200.
    pub also: &'a [u16],
    /// Whether 200 is one.
    pub not_200: bool,
    /// Bytes of the longest answer, where no sink takes it; 0 for that of JSON.
    pub limit: usize,
    /// Told before each attempt after the first.
    pub again: Option<&'a dyn Fn() -> Later<'a, Result<()>>>,
}

/// What was asked for is of another length than was announced, or the server does not answer, or refuses.
pub enum Fetched {
    Blob(Vec<u8>),
    /// There is none.
    Absent,
    /// Of another length than was announced.
    Changed(Error),
}

/// A server, a token, and how patient to be.
pub struct Session {
    pub url: String,
    token: RwLock<Option<Token>>,
    timeout: Duration,
    pub(super) retries: u32,
    /// Whether something answered, or that nothing does was told: a wrong address is not to be waited for in silence.
    told: AtomicBool,
}

/// The attempts of one request: so many retries after the first, and so much time for all together.
///
/// The pause before attempt k is uniform between 0 and min(5 s, 0.2 s · 2^k), so that clients who failed together don't come back
/// together. Where the server says how long to wait, that is waited at least.
struct Attempts {
    timeout: Duration,
    ends: Duration,
    retries: u32,
    failed: u32,
}

impl Attempts {
    fn left(&self, host: &dyn Host) -> Duration {
        // A request with none left would fail for the wrong reason.
        self.ends.saturating_sub(host.now()).max(Duration::from_millis(50))
    }

    /// Counts a failure and waits; whether there is another attempt. A server that says how long to wait is busy, not broken: those
    /// attempts end with the time, not with their number.
    async fn again(&mut self, host: &dyn Host, wait: Option<Duration>) -> Result<bool> {
        self.failed += 1;
        let longest =
            Duration::from_secs(5).min(Duration::from_millis(200) * (1 << self.failed.min(10)));
        let pause = longest.mul_f64(crate::random::uniform()) + wait.unwrap_or_default();
        if wait.is_none() && self.failed > self.retries || host.now() + pause >= self.ends {
            return Ok(false);
        }
        host.sleep(pause).await?;
        Ok(true)
    }

    /// Something arrived: what comes next has all its time and attempts again.
    fn progressed(&mut self, host: &dyn Host) {
        self.ends = host.now() + self.timeout;
        self.failed = 0;
    }
}

impl Session {
    pub fn new(url: String, token: Option<Token>, timeout: Duration, retries: u32) -> Self {
        Session { url, token: RwLock::new(token), timeout, retries, told: AtomicBool::new(false) }
    }

    /// Shows another token from now on.
    pub fn set_token(&self, token: Token) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Sends a request until it is answered. Other statuses than those of `call` are the errors of [`error_of`]. `doing` starts the
    /// message of an error: "cannot read 'faces'".
    pub async fn call(
        &self,
        host: &dyn Host,
        method: &'static str,
        path: &str,
        doing: &str,
        call: Call<'_>,
    ) -> Result<Reply> {
        let mut sink = Whole {
            limit: if call.limit == 0 { MAX_JSON } else { call.limit },
            ..Whole::default()
        };
        self.stream(host, method, path, doing, call, &mut sink).await
    }

    /// The same, whose body goes to `sink` where it is a 200.
    pub async fn stream(
        &self,
        host: &dyn Host,
        method: &'static str,
        path: &str,
        doing: &str,
        call: Call<'_>,
        sink: &mut (impl Receiver + ?Sized),
    ) -> Result<Reply> {
        let mut attempts = self.attempts(host);
        let request = self.request(method, path, call.body, call.headers);
        let mut sent = false;
        loop {
            let mut parted = Parted {
                error: Whole { limit: LONGEST_ERROR, ..Whole::default() },
                good: false,
                sink,
            };
            let sending = host.send(&request, attempts.left(host), &mut parted).await;
            let Parted { error, .. } = parted;
            let (failure, wait) = match sending {
                Ok(()) => {
                    self.told.store(true, Relaxed);
                    let (head, body) = match sink.answer() {
                        Some((head, body)) if error.head.is_none() => (head, body),
                        _ => (error.head.unwrap_or_default(), error.body),
                    };
                    let reply = Reply { head, body, failed: attempts.failed };
                    let status = reply.head.status;
                    if status == 200 && !call.not_200 || call.also.contains(&status) {
                        self.check_api(&reply, doing)?;
                        return Ok(reply);
                    }
                    if !RETRIED.contains(&status) {
                        return Err(error_of(&reply, doing, &self.url));
                    }
                    let failure = if status == 502 || status == 504 {
                        sent = true; // a proxy's word, which can't know
                        self.unanswered(doing, &words(&reply), sent)
                    } else {
                        error_of(&reply, doing, &self.url)
                    };
                    (failure, retry_after(&reply.head, host.clock()))
                }
                Err(lost) => {
                    host.check()?;
                    if let Some(refused) = sink.refused() {
                        return Err(refused);
                    }
                    sent |= lost.sent;
                    let failure = self.unanswered(doing, &lost.says, sent);
                    if lost.last {
                        return Err(failure);
                    }
                    (failure, None)
                }
            };
            if !attempts.again(host, wait).await? {
                return Err(failure);
            }
            if !self.told.swap(true, Relaxed) {
                host.warn(&format!("{failure} Trying again, up to {} times.", self.retries));
            }
            if let Some(again) = call.again {
                again().await?;
            }
        }
    }

    /// A blob of that many bytes. What arrived before a connection was lost is not fetched again.
    pub async fn fetch(
        &self,
        host: &dyn Host,
        path: &str,
        length: u64,
        doing: &str,
    ) -> Result<Fetched> {
        let mut attempts = self.attempts(host);
        // Not reserved: how long it is to be is the server's word.
        let mut came = Blob {
            host,
            bytes: Vec::new(),
            from: 0,
            length,
            error: Whole { limit: LONGEST_ERROR, ..Whole::default() },
        };
        loop {
            came.from = came.bytes.len();
            came.error.head = None;
            let range = (came.from > 0).then(|| ("Range", format!("bytes={}-", came.from)));
            let request = self.request("GET", path, None, range.into_iter().collect());
            let from = came.from;
            let (failure, wait) = match host.send(&request, attempts.left(host), &mut came).await {
                Ok(()) => {
                    let head = came.error.head.take().unwrap_or_default();
                    let body = core::mem::take(&mut came.error.body);
                    let reply = Reply { head, body, failed: attempts.failed };
                    match reply.head.status {
                        404 => return Ok(Fetched::Absent),
                        416 => {
                            let says = format!(
                                "{doing}: {length} bytes expected, fewer are there. Open it again."
                            );
                            return Ok(Fetched::Changed(Error::server(says)));
                        }
                        200 | 206 => {
                            self.check_api(&reply, doing)?;
                            let had = came.bytes.len();
                            if had as u64 != length {
                                let says = format!(
                                    "{doing}: {length} bytes expected, {had} came. Open it again."
                                );
                                return Ok(Fetched::Changed(Error::server(says)));
                            }
                            return Ok(Fetched::Blob(came.bytes));
                        }
                        status if !RETRIED.contains(&status) => {
                            return Err(error_of(&reply, doing, &self.url));
                        }
                        _ => (
                            error_of(&reply, doing, &self.url),
                            retry_after(&reply.head, host.clock()),
                        ),
                    }
                }
                Err(lost) => {
                    host.check()?;
                    let failure = self.unanswered(doing, &lost.says, false);
                    if lost.last {
                        return Ok(Fetched::Changed(failure));
                    }
                    (failure, None)
                }
            };
            // Not for a byte at a time.
            if came.bytes.len() >= from + LEAST_PROGRESS {
                attempts.progressed(host);
            }
            if !attempts.again(host, wait).await? {
                return Err(failure);
            }
        }
    }

    /// The object in an answer.
    pub fn json<T: DeserializeOwned>(&self, reply: &Reply, doing: &str) -> Result<T> {
        few_names(&reply.body)
            .map_err(|why| Error::server(format!("{doing}: {} {why}", self.url)))?;
        json::read(&reply.body).map_err(|error| {
            let first = reply.body.iter().find(|byte| !byte.is_ascii_whitespace());
            let what = if first == Some(&b'{') {
                let error = printable(&error.to_string(), 200);
                format!("answered in a way that is not understood ({error}). Check the versions on both sides.")
            } else {
                "answered with something else than JSON. Is this the right URL?".to_owned()
            };
            Error::server(format!("{doing}: {} {what}", self.url))
        })
    }

    fn attempts(&self, host: &dyn Host) -> Attempts {
        Attempts {
            timeout: self.timeout,
            ends: host.now() + self.timeout,
            retries: self.retries,
            failed: 0,
        }
    }

    fn request<'a>(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&'a [u8]>,
        mut headers: Vec<(&'static str, String)>,
    ) -> Request<'a> {
        headers.push(("Ciphervec-Api", API.to_owned()));
        if let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            headers.push(("Authorization", token.bearer()));
        }
        Request { method, url: format!("{}{path}", self.url), headers, body }
    }

    fn unanswered(&self, doing: &str, says: &str, acted: bool) -> Error {
        let message = format!(
            "{doing}: {} did not answer: {says}. Check that it runs and can be reached from here; from a page of another origin, that it \
             allows this one.",
            self.url
        );
        Error::Server { message, acted }
    }

    fn check_api(&self, reply: &Reply, doing: &str) -> Result<()> {
        if reply.head.header("ciphervec-api") == Some(API) {
            return Ok(());
        }
        Err(Error::server(format!(
            "{doing}: {} does not speak version {API} of ciphervec's HTTP interface. Check the URL, and the versions on both sides.",
            self.url
        )))
    }
}

/// That JSON holds no more texts, names among them, and no more lists and objects, than a listing of the largest collection: each takes
/// many times its own bytes once it is read.
pub fn few_names(body: &[u8]) -> core::result::Result<(), String> {
    let (mut quotes, mut lists) = (0usize, 0usize);
    for byte in body {
        quotes += usize::from(*byte == b'"');
        lists += usize::from(matches!(byte, b'{' | b'['));
    }
    if quotes > 2 * MOST_TEXTS || lists > MOST_LISTS {
        return Err(format!(
            "answered with {} texts and {lists} lists, where at most {MOST_TEXTS} and {MOST_LISTS} were expected. Ask its operator.",
            quotes / 2
        ));
    }
    Ok(())
}

/// What `Retry-After` asks for, as a number or a date.
fn retry_after(head: &Head, now: Duration) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(86_400);
    let text = head.header("retry-after")?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text[..text.len().min(9)].parse().ok()?).min(LONGEST));
    }
    let when = crate::time::http_date(text)?;
    Some(Duration::from_secs(when).saturating_sub(now).min(LONGEST))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::Lost;
    use crate::host::fake::{Fake, Said};
    use futures_lite::future::block_on;

    pub(in crate::remote) fn session(retries: u32) -> Session {
        Session::new("https://x".to_owned(), None, Duration::from_secs(60), retries)
    }

    pub(in crate::remote) fn says(
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> core::result::Result<Said, Lost> {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Ok((status, headers, 1, body.as_bytes().to_vec()))
    }

    /// An answer of 64 MiB, 64 KiB at a time.
    fn endless(status: u16) -> core::result::Result<Said, Lost> {
        Ok((status, Vec::new(), 1024, vec![0; 64 << 10]))
    }

    pub(in crate::remote) fn gone(sent: bool) -> core::result::Result<Said, Lost> {
        Err(Lost { says: "the connection broke".to_owned(), sent, last: false, ended: false })
    }

    fn call(host: &Fake, call: Call<'_>) -> Result<Reply> {
        block_on(session(2).call(host, "GET", "/v1", "cannot", call))
    }

    #[test]
    fn more_names_than_any_listing_has_are_not_read() {
        assert!(few_names(br#"{"name":"notes","segments":[{"id":"00"}]}"#).is_ok());
        let names = [&b"{"[..], &b"\"\",".repeat(MOST_TEXTS + 1)].concat();
        let why = few_names(&names).unwrap_err();
        assert!(why.contains("8388609 texts") && why.contains("8388608"), "{why}");
        assert!(few_names(&b"[".repeat(MOST_LISTS + 1)).is_err());
    }

    #[test]
    fn an_answer_takes_no_more_memory_than_it_may() {
        for (status, limit, most) in
            [(200, 2 << 20, 2 << 20), (400, 1 << 40, 1 << 20), (503, 1 << 40, 1 << 20)]
        {
            let host = Fake::of([endless(status)]);
            let error = call(&host, Call { limit, also: &[400], ..Call::default() }).unwrap_err();
            assert!(
                error.to_string().contains(&format!("longer than the {most} bytes expected")),
                "{error}"
            );
            assert!(host.taken.get() <= most);
            assert_eq!(host.asked.borrow().len(), 1, "and is not asked for again");
        }
        for (status, length, most) in [(200, 1 << 20, 1 << 20), (503, 1 << 47, 1 << 20)] {
            let host = Fake::of([endless(status)]);
            let found = block_on(session(2).fetch(&host, "/v1", length, "cannot"));
            let Ok(Fetched::Changed(error)) = found else { panic!("{status}") };
            assert!(
                error.to_string().contains(&format!("longer than the {most} bytes expected")),
                "{error}"
            );
            assert!(host.taken.get() <= most);
        }
        let host = Fake::of([says(200, &[], "few")]);
        let found = block_on(session(2).fetch(&host, "/v1", 1 << 47, "cannot"));
        assert!(
            matches!(found, Ok(Fetched::Changed(error)) if error.to_string().contains("3 came"))
        );
    }

    #[test]
    fn attempts_end_with_their_number_and_those_of_a_busy_server_with_the_time() {
        let host = Fake::of([gone(false), gone(true), gone(false), says(200, &[], "{}")]);
        let error = call(&host, Call::default()).unwrap_err();
        assert!(
            matches!(error, Error::Server { acted: true, .. }),
            "one of them was sent: {error}"
        );
        assert_eq!(host.asked.borrow().len(), 3);
        let warned = host.warned.borrow();
        assert!(
            matches!(warned.as_slice(), [one] if one.ends_with("Trying again, up to 2 times.")),
            "a wrong address is not waited for in silence: {warned:?}"
        );
        let busy = || says(503, &[("retry-after", "5")], "");
        let host = Fake::of((0..30).map(|_| busy()));
        let error = call(&host, Call::default()).unwrap_err();
        assert!(error.to_string().contains("is busy and stayed so"), "{error}");
        assert!(
            host.waited.get() > Duration::from_secs(45)
                && host.waited.get() < Duration::from_secs(60)
        );
        let later = says(429, &[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], "");
        let host = Fake::of([later, says(200, &[], "{}")]);
        assert_eq!(call(&host, Call::default()).unwrap().failed, 1);
        assert!(host.waited.get() >= Duration::from_secs(10), "ten seconds from now on");
    }

    #[test]
    fn a_blob_of_another_length_or_range_is_another_one() {
        let host = Fake::of([
            Ok((200, Vec::new(), 1, b"0123".to_vec())),
            says(206, &[("content-range", "bytes 4-9/10")], "456789"),
        ]);
        let found = block_on(session(2).fetch(&host, "/v1", 10, "cannot"));
        assert!(matches!(found, Ok(Fetched::Changed(_))));
        let wrong = Fake::of([says(206, &[("content-range", "bytes 3-9/10")], "3456789")]);
        let found = block_on(session(2).fetch(&wrong, "/v1", 10, "cannot"));
        assert!(
            matches!(found, Ok(Fetched::Changed(error)) if error.to_string().contains("another range"))
        );
        assert!(matches!(
            block_on(session(2).fetch(&Fake::of([says(404, &[], "")]), "/", 1, "")),
            Ok(Fetched::Absent)
        ));
    }

    #[test]
    fn what_a_server_says_is_repeated_in_one_line_and_redirects_are_not_followed() {
        let problem =
            r#"{"detail":"no\u0007\n way","hint":"ask again.","type":"urn:ciphervec:busy"}"#;
        let error = call(&Fake::of([says(403, &[], problem)]), Call::default()).unwrap_err();
        assert!(error.to_string().contains("forbids it (no   way. ask again)"), "{error}");
        let moved = says(307, &[("location", "https://evil/\u{7}")], "");
        let error = call(&Fake::of([moved]), Call::default()).unwrap_err();
        assert!(
            error.to_string().contains("redirects to https://evil/ , which is not followed"),
            "{error}"
        );
        let host = Fake::of([says(200, &[("ciphervec-api", "2")], "")]);
        assert!(
            call(&host, Call::default())
                .unwrap_err()
                .to_string()
                .contains("does not speak version 1")
        );
    }
}
