//! A server in this process, and clients of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use ciphervec::{Id, Keys};
use ciphervec_client::{Choices, Client, ClientOptions, Collection, Connection, Records, block_on};
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
    Client::new(ClientOptions { keys: Some(Arc::clone(keys)), ..ClientOptions::new(url) }).unwrap()
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
    }
}

/// A collection of these rows.
pub fn filled(client: &Client, host: &Connection, choices: &Choices, rows: Records) -> Collection {
    let collection = block_on(client.create_collection(host, choices)).unwrap();
    block_on(collection.add(host, rows)).unwrap();
    collection
}
