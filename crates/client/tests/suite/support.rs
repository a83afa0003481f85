//! A server in this process, and clients of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ciphervec_client::{
    Choices, Client, ClientOptions, Collection, Connection, Error, Head, Host, Later, Lost,
    Progress, Records, Request, Result, Sink, block_on,
};
use ciphervec_owner::{Id, Keys};
use ciphervec_server::config::ServeOptions;
use ciphervec_server::http::{self, App};
use clap::{Args, Command, FromArgMatches};

/// A server on a folder of its own, without tokens: everyone may do everything.
pub struct Server {
    pub url: String,
    pub folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("db");
        Self::serve(folder, &data, "127.0.0.1:0")
    }

    /// In the place of another, on other data.
    pub fn start_on(other: Server, data: &Path) -> Self {
        let address = other.url.trim_start_matches("http://").to_owned();
        drop(other);
        Self::serve(tempfile::tempdir().unwrap(), data, &address)
    }

    fn serve(folder: tempfile::TempDir, data: &Path, address: &str) -> Self {
        let words = ["serve", "--data", data.to_str().unwrap()];
        let matches = ServeOptions::augment_args(Command::new("serve")).get_matches_from(words);
        let app = App::open(&ServeOptions::from_arg_matches(&matches).unwrap()).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = http::router(&app);
        runtime.spawn(async move {
            let _app = app;
            axum::serve(listener, router).await.unwrap();
        });
        Server { url, folder, _runtime: runtime }
    }

    pub fn client(&self, keys: &Arc<Keys>) -> Client {
        client(&self.url, keys)
    }
}

pub fn client(url: &str, keys: &Arc<Keys>) -> Client {
    Client::new(ClientOptions { keys: Some(Arc::clone(keys).into()), ..ClientOptions::new(url) })
        .unwrap()
}

pub fn keys() -> Arc<Keys> {
    Arc::new(Keys::from_master([7; 32]))
}

/// A host that remembers nothing between tests, and what it warns of.
pub fn connection() -> (Connection, Receiver<String>) {
    let (told, warnings) = channel();
    let warned = move |text: &str| drop(told.send(text.to_owned()));
    (Connection::in_memory().on_warning(warned), warnings)
}

/// Vectors of `dimension` numbers that follow from a seed.
pub fn vectors(rows: usize, dimension: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..rows * dimension).map(|_| next()).collect()
}

/// Rows of this many numbers, with metadata and documents.
pub fn rows(count: usize, dimension: usize, seed: u64) -> Records {
    Records {
        ids: (0..count).map(|row| Id::from(row as i64 + 1000 * seed as i64)).collect(),
        embeddings: vectors(count, dimension, seed),
        metadatas: (0..count)
            .map(|row| Some(format!("{{\"n\":{row}.0,\"even\":{}}}", row % 2 == 0)))
            .collect(),
        documents: (0..count).map(|row| Some(format!("row {row} of {seed}"))).collect(),
        ..Records::default()
    }
}

/// A collection of these rows.
pub fn filled(client: &Client, host: &Connection, choices: &Choices, rows: Records) -> Collection {
    let collection = block_on(client.create_collection(host, choices)).unwrap();
    block_on(collection.add(host, rows)).unwrap();
    collection
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It never arrives.
    Unsent,
    /// It is acted on, and its answer gets lost.
    Unanswered,
    /// Its answer ends after so many bytes.
    Cut(usize),
    /// The server is busy, and says for how long.
    Busy,
}

type Choose<'a> = dyn Fn(usize, &Request<'_>) -> Option<Fault> + 'a;
type Alter<'a> = dyn Fn(&str, Vec<u8>) -> Vec<u8> + 'a;
type Said = (Head, Vec<u8>);

/// A connection that does to requests what it is told, and waits for nobody.
pub struct Faulty<'a> {
    inner: Connection,
    /// By their methods and paths: what becomes of them.
    choose: Box<Choose<'a>>,
    /// Changes the bodies of good answers, by the paths that they answer.
    alter: Option<Box<Alter<'a>>>,
    /// Says everything in a server's place.
    script: Option<RefCell<VecDeque<Said>>>,
    /// The good and bad answers that passed, where there is somebody to alter them.
    pub tape: RefCell<Vec<Said>>,
    pub sent: Cell<usize>,
    pub waited: Cell<Duration>,
    pub ranges: RefCell<Vec<String>>,
    /// Rows done, and of how many, as they were told.
    pub done: RefCell<Vec<(u64, Option<u64>)>>,
    /// Ends calls once so many rows are done.
    pub patience: Cell<u64>,
    /// Whether it says that what it remembers is there in a later session.
    pub durable: Cell<bool>,
}

impl<'a> Faulty<'a> {
    pub fn new(choose: impl Fn(usize, &Request<'_>) -> Option<Fault> + 'a) -> Self {
        Faulty {
            inner: Connection::in_memory().on_warning(|_| ()),
            choose: Box::new(choose),
            alter: None,
            script: None,
            tape: RefCell::default(),
            sent: Cell::new(0),
            waited: Cell::default(),
            ranges: RefCell::default(),
            done: RefCell::default(),
            patience: Cell::new(u64::MAX),
            durable: Cell::new(true),
        }
    }

    /// Over another connection, and what it remembers.
    pub fn over(
        inner: Connection,
        choose: impl Fn(usize, &Request<'_>) -> Option<Fault> + 'a,
    ) -> Self {
        Faulty { inner, ..Self::new(choose) }
    }

    /// Of a process that ends at a request, which the server may have acted on; what it remembered stays.
    pub fn killed(inner: Connection, at: usize, acted: bool) -> Self {
        let choose = move |number: usize, _: &Request<'_>| match number.cmp(&at) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal if acted => Some(Fault::Unanswered),
            _ => Some(Fault::Unsent),
        };
        Self::over(inner, choose)
    }

    pub fn scripted(answers: Vec<(Head, Vec<u8>)>) -> Self {
        Faulty { script: Some(RefCell::new(answers.into())), ..Faulty::new(|_, _| None) }
    }

    /// Of such requests none arrives.
    pub fn losing(self, which: impl Fn(&Request<'_>) -> bool + 'a) -> Self {
        let choose =
            Box::new(move |_, request: &Request<'_>| which(request).then_some(Fault::Unsent));
        Faulty { choose, ..self }
    }

    pub fn altering(alter: impl Fn(&str, Vec<u8>) -> Vec<u8> + 'a) -> Self {
        Faulty { alter: Some(Box::new(alter)), ..Faulty::new(|_, _| None) }
    }

    /// The same over another connection, and what that remembers.
    pub fn keeping(self, inner: Connection) -> Self {
        Faulty { inner, ..self }
    }
}

fn lost(sent: bool) -> Lost {
    Lost { says: "the connection broke".to_owned(), sent, last: false, ended: false }
}

/// Takes no more than so many bytes.
struct Short<'a> {
    sink: &'a mut dyn Sink,
    left: usize,
}

impl Sink for Short<'_> {
    fn begin(&mut self, head: &Head) -> std::result::Result<(), Lost> {
        self.sink.begin(head)
    }

    fn take(&mut self, piece: &[u8]) -> std::result::Result<(), Lost> {
        let piece = &piece[..piece.len().min(self.left)];
        self.left -= piece.len();
        self.sink.take(piece)?;
        if self.left == 0 { Err(lost(true)) } else { Ok(()) }
    }
}

/// Keeps it all.
#[derive(Default)]
pub struct All {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Sink for All {
    fn begin(&mut self, head: &Head) -> std::result::Result<(), Lost> {
        self.head = head.clone();
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> std::result::Result<(), Lost> {
        self.body.extend_from_slice(piece);
        Ok(())
    }
}

impl Host for Faulty<'_> {
    fn send<'b>(
        &'b self,
        request: &'b Request<'b>,
        within: Duration,
        sink: &'b mut dyn Sink,
    ) -> Later<'b, std::result::Result<(), Lost>> {
        Box::pin(async move {
            let number = self.sent.get();
            self.sent.set(number + 1);
            let ranges = request.headers.iter().filter(|(name, _)| *name == "Range");
            self.ranges.borrow_mut().extend(ranges.map(|(_, range)| range.clone()));
            if let Some(script) = &self.script {
                let Some((head, body)) = script.borrow_mut().pop_front() else {
                    return Err(Lost { last: true, ..lost(true) });
                };
                sink.begin(&head)?;
                return sink.take(&body);
            }
            match (self.choose)(number, request) {
                Some(Fault::Unsent) => Err(lost(false)),
                Some(Fault::Unanswered) => {
                    self.inner.send(request, within, &mut All::default()).await?;
                    Err(lost(true))
                }
                Some(Fault::Busy) => {
                    let headers = [("retry-after", "3"), ("ciphervec-api", "1")];
                    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
                    sink.begin(&Head { status: 503, headers: headers.to_vec() })
                }
                Some(Fault::Cut(left)) => {
                    self.inner.send(request, within, &mut Short { sink, left }).await
                }
                None => {
                    let Some(alter) = &self.alter else {
                        return self.inner.send(request, within, sink).await;
                    };
                    let mut all = All::default();
                    self.inner.send(request, within, &mut all).await?;
                    self.tape.borrow_mut().push((all.head.clone(), all.body.clone()));
                    let path = request.url.splitn(4, '/').last().unwrap_or_default();
                    let good = [200, 206].contains(&all.head.status);
                    let body = if good { alter(path, all.body) } else { all.body };
                    sink.begin(&all.head)?;
                    sink.take(&body)
                }
            }
        })
    }

    fn sleep(&self, time: Duration) -> Later<'_, Result<()>> {
        self.waited.set(self.waited.get() + time);
        Box::pin(async { Ok(()) })
    }

    fn now(&self) -> Duration {
        self.inner.now() + self.waited.get()
    }

    fn clock(&self) -> Duration {
        self.inner.clock()
    }

    fn get<'b>(&'b self, name: &'b str) -> Later<'b, Result<Option<Vec<u8>>>> {
        self.inner.get(name)
    }

    fn put<'b>(&'b self, name: &'b str, data: &'b [u8]) -> Later<'b, Result<()>> {
        self.inner.put(name, data)
    }

    fn delete<'b>(&'b self, name: &'b str) -> Later<'b, Result<()>> {
        self.inner.delete(name)
    }

    fn list<'b>(&'b self, prefix: &'b str) -> Later<'b, Result<Vec<(String, u64)>>> {
        self.inner.list(prefix)
    }

    fn lock<'b>(&'b self, name: &'b str) -> Later<'b, Result<Box<dyn std::any::Any>>> {
        self.inner.lock(name)
    }

    fn process(&self) -> u64 {
        self.inner.process()
    }

    fn durable(&self) -> bool {
        self.durable.get()
    }

    fn warn(&self, _text: &str) {}

    fn progress(&self, progress: Progress) {
        if progress.phase == "seal" {
            self.done.borrow_mut().push((progress.done, progress.total));
        }
    }

    fn check(&self) -> Result<()> {
        let done = self.done.borrow().last().map_or(0, |(done, _)| *done);
        match done >= self.patience.get() {
            true => Err(Error::Ended("it takes too long".to_owned())),
            false => Ok(()),
        }
    }
}
