//! What a client needs of the world around it: a connection, a place to keep things, a clock. The rest of this crate does no I/O.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::error::Result;

/// What a host does meanwhile. Not [`Send`]: answers are opened while they come.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One request: method, whole URL, headers, body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `GET`, say.
    pub method: &'static str,
    /// The whole of it.
    pub url: String,
    /// By name. The token is among them.
    pub headers: Vec<(&'static str, String)>,
    /// None for a request without one.
    pub body: Option<&'a [u8]>,
}

/// Status and headers of an answer.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// 200, say; 0 for a redirect that is not shown.
    pub status: u16,
    /// By lower-case name.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// A header; none where it is not there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// No answer came, or a part of one.
#[derive(Clone, Debug)]
pub struct Lost {
    /// What happened.
    pub says: String,
    /// Whether the server may have seen the request.
    pub sent: bool,
    /// Whether trying again is pointless.
    pub last: bool,
    /// Whether the caller has ended the call.
    pub ended: bool,
}

impl Lost {
    /// Of a server that does what it must not.
    pub fn refused(says: impl Into<String>) -> Self {
        Lost { says: says.into(), sent: true, last: true, ended: false }
    }
}

/// Where the body of an answer goes.
pub trait Sink {
    /// An answer begins.
    ///
    /// # Errors
    /// What is not taken, of which nothing more is read.
    fn begin(&mut self, head: &Head) -> core::result::Result<(), Lost>;

    /// Its next bytes.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn take(&mut self, piece: &[u8]) -> core::result::Result<(), Lost>;
}

/// What is being done, as far as it got. `done` and `total` are rows while sealing, else bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// `read`, `seal`, `upload`, `encrypt`, `server`, `download` or `open`.
    pub phase: &'static str,
    /// So far.
    pub done: u64,
    /// In all, where that is known.
    pub total: Option<u64>,
    /// Milliseconds that it took, where that is known.
    pub ms: Option<f64>,
}

/// What a client runs on, for one call or for many.
pub trait Host {
    /// One attempt at a request, within that time: nothing is followed, cached or decompressed, and the body of the answer goes to
    /// `sink` as it comes.
    fn send<'a>(
        &'a self,
        request: &'a Request<'a>,
        within: Duration,
        sink: &'a mut dyn Sink,
    ) -> Later<'a, core::result::Result<(), Lost>>;

    /// Waits. An error where the call was ended meanwhile.
    fn sleep(&self, time: Duration) -> Later<'_, Result<()>>;

    /// Time since some moment that stays the same.
    fn now(&self) -> Duration;

    /// Time since 1970.
    fn clock(&self) -> Duration;

    /// What was put under a name.
    fn get<'a>(&'a self, name: &'a str) -> Later<'a, Result<Option<Vec<u8>>>>;

    /// Keeps bytes under a name, durably once this is done.
    fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>>;

    /// Forgets them; that there are none is no error.
    fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>>;

    /// Names that begin so, with the bytes of each, the ones unused for longest first.
    fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>>;

    /// Keeps others with the same storage from what is done under a name, until what it gives is dropped.
    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn core::any::Any>>>;

    /// Whether what was put somewhere is there in a later session.
    fn durable(&self) -> bool;

    /// Tells the user what does not end the call.
    fn warn(&self, text: &str);

    /// Tells whoever waits.
    fn progress(&self, progress: Progress) {
        let _ = progress;
    }

    /// Does work that is better done before it is needed, while a server is waited for. It may be left out.
    fn meanwhile(&self, work: Box<dyn FnOnce() + Send>) {
        drop(work);
    }

    /// An error where the caller has ended the call.
    ///
    /// # Errors
    /// [`crate::Error::Ended`].
    fn check(&self) -> Result<()> {
        Ok(())
    }
}
