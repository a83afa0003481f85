//! What a client needs of the world around it: a connection, a place to keep things, a clock. The rest of this crate does no I/O.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::error::Result;
use crate::note::Note;

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

    /// A header that is a number of at most 15 digits.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let text = self.header(name)?;
        let whole = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
        whole.then(|| text.parse().ok())?
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

    /// Of an answer that takes more than it may.
    pub(crate) fn too_long(most: u64) -> Self {
        Self::refused(format!("the answer is longer than the {most} bytes expected"))
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

/// What names begin with under which is counted what others were shown. A host may keep them in one place for all of a user's clients,
/// wherever each remembers the rest: with every place of its own the same rows could be shown as often again.
pub const COUNTS: &str = "flooding/";

/// What names begin with under which a host finds the same as a client of an earlier release counted it: of the index whose description
/// follows, in hexadecimal digits. It counts beside what is counted since.
pub const FORMER_COUNTS: &str = "former/counts\n";

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

    /// The bytes that are kept under each of these names, which begin with `prefix`; none where there are none. Left out, it lists all that
    /// begin so; a storage that finds a name faster should.
    fn lengths<'a>(
        &'a self,
        prefix: &'a str,
        names: &'a [String],
    ) -> Later<'a, Result<Vec<Option<u64>>>> {
        Box::pin(async move {
            let there: HashMap<_, _> = self.list(prefix).await?.into_iter().collect();
            Ok(names.iter().map(|name| there.get(name).copied()).collect())
        })
    }

    /// Keeps others with the same storage from what is done under a name, until what it gives is dropped.
    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn core::any::Any>>>;

    /// Which process this is: a fork has all of its parent's memory, and may use nothing of it that can be used once.
    fn process(&self) -> u64 {
        0
    }

    /// Whether what was put somewhere is there in a later session.
    fn durable(&self) -> bool;

    /// Whether what is counted of results for others, under names that begin with [`COUNTS`], is there in a later session.
    fn counts(&self) -> bool {
        self.durable()
    }

    /// Tells the user what does not end the call.
    fn warn(&self, text: &str);

    /// What was done, for a log that the user keeps. A host without one forgets it.
    fn note(&self, note: &Note<'_>) {
        let _ = note;
    }

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

/// A host that answers as it is told, for tests.
#[cfg(test)]
pub mod fake {
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeMap, VecDeque};
    use std::rc::Rc;

    use super::*;

    /// Status, headers, and how many times which bytes the body has.
    pub type Said = (u16, Vec<(&'static str, String)>, usize, Vec<u8>);

    /// Method, path, length of the body, headers.
    pub type Asked = (&'static str, String, usize, Vec<(&'static str, String)>);

    /// What is remembered, by name, with when it was used last.
    type Kept = BTreeMap<String, (usize, Vec<u8>)>;

    #[derive(Default)]
    pub struct Fake {
        pub answers: RefCell<VecDeque<core::result::Result<Said, Lost>>>,
        pub asked: RefCell<Vec<Asked>>,
        pub taken: Cell<usize>,
        pub waited: Cell<Duration>,
        /// Shared by the hosts of one user.
        pub kept: Rc<RefCell<Kept>>,
        pub uses: Cell<usize>,
        /// Whether there is no more room.
        pub full: Cell<bool>,
        /// Whether it gives no locks.
        pub held: Cell<bool>,
        /// Which one it is.
        pub process: Cell<u64>,
        pub warned: RefCell<Vec<String>>,
        /// Lines of what was done.
        pub noted: RefCell<Vec<String>>,
    }

    impl Fake {
        /// Another client of the same user's.
        pub fn beside(other: &Self) -> Self {
            Fake {
                kept: Rc::clone(&other.kept),
                uses: Cell::new(other.uses.get()),
                ..Fake::default()
            }
        }

        fn used(&self) -> usize {
            self.uses.set(self.uses.get() + 1);
            self.uses.get()
        }

        pub fn of(answers: impl IntoIterator<Item = core::result::Result<Said, Lost>>) -> Self {
            Fake { answers: RefCell::new(answers.into_iter().collect()), ..Fake::default() }
        }
    }

    impl Host for Fake {
        fn send<'a>(
            &'a self,
            request: &'a Request<'a>,
            _within: Duration,
            sink: &'a mut dyn Sink,
        ) -> Later<'a, core::result::Result<(), Lost>> {
            Box::pin(async move {
                let path = request.url.trim_start_matches("https://x").to_owned();
                let length = request.body.map_or(0, <[u8]>::len);
                self.asked.borrow_mut().push((
                    request.method,
                    path,
                    length,
                    request.headers.clone(),
                ));
                let next = self.answers.borrow_mut().pop_front();
                let (status, headers, times, piece) =
                    next.unwrap_or_else(|| Err(Lost::refused("no more")))?;
                let mut headers: Vec<_> =
                    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                headers.push(("ciphervec-api".to_owned(), "1".to_owned()));
                sink.begin(&Head { status, headers })?;
                for _ in 0..times {
                    sink.take(&piece)?;
                    self.taken.set(self.taken.get() + piece.len());
                }
                Ok(())
            })
        }

        fn sleep(&self, time: Duration) -> Later<'_, Result<()>> {
            self.waited.set(self.waited.get() + time);
            Box::pin(async { Ok(()) })
        }

        fn now(&self) -> Duration {
            self.waited.get()
        }

        fn clock(&self) -> Duration {
            Duration::from_secs(784_111_777)
        }

        fn get<'a>(&'a self, name: &'a str) -> Later<'a, Result<Option<Vec<u8>>>> {
            let used = self.used();
            let found = self.kept.borrow_mut().get_mut(name).map(|(last, data)| {
                *last = used;
                data.clone()
            });
            Box::pin(async { Ok(found) })
        }

        fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>> {
            let full = self.full.get();
            if !full {
                let entry = (self.used(), data.to_vec());
                self.kept.borrow_mut().insert(name.to_owned(), entry);
            }
            Box::pin(async move {
                match full {
                    true => Err(crate::error::Error::Storage("there is no more room.".to_owned())),
                    false => Ok(()),
                }
            })
        }

        fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>> {
            self.kept.borrow_mut().remove(name);
            Box::pin(async { Ok(()) })
        }

        fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>> {
            let kept = self.kept.borrow();
            let named = kept.iter().filter(|(name, _)| name.starts_with(prefix));
            let mut found: Vec<_> = named
                .map(|(name, (last, data))| (*last, name.clone(), data.len() as u64))
                .collect();
            found.sort();
            Box::pin(async {
                Ok(found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect())
            })
        }

        fn lock<'a>(&'a self, _name: &'a str) -> Later<'a, Result<Box<dyn core::any::Any>>> {
            let held = self.held.get();
            Box::pin(async move {
                match held {
                    true => Err(crate::error::Error::Ended("the call was ended.".to_owned())),
                    false => Ok(Box::new(()) as Box<dyn core::any::Any>),
                }
            })
        }

        fn durable(&self) -> bool {
            true
        }

        fn process(&self) -> u64 {
            self.process.get()
        }

        fn note(&self, note: &Note<'_>) {
            self.noted.borrow_mut().push(note.line(0.5, 7, 9));
        }

        fn warn(&self, text: &str) {
            self.warned.borrow_mut().push(text.to_owned());
        }
    }
}
