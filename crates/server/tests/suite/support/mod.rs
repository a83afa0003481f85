//! An owner with changes, queries and answers for each kind of collection.

pub mod http;
#[cfg(unix)]
pub mod process;
#[allow(dead_code, reason = "each test uses some of it")]
pub mod programs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ciphervec_owner::protect::records;
use ciphervec_owner::search::{Owner, QueryOptions, Retrieval, SegmentDirectory};
use ciphervec_owner::store::{Change, NewSegment, SegmentId};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme};
use ciphervec_server::{Database, DatabaseOptions};
use std::path::Path;
use std::sync::Arc;

pub const D: usize = 32;

/// Every mode, and one additively homomorphic scheme.
pub const KINDS: [(Mode, Precision, Scheme); 7] = [
    (Mode::Open, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Small, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Wide, Scheme::Lattice),
    (Mode::SealedQuery, Precision::Standard, Scheme::Lattice),
    (Mode::Sealed, Precision::Standard, Scheme::Lattice),
    (Mode::SealedIndex, Precision::Standard, Scheme::ElGamal),
];

pub fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// The owner's half, which knows what it sent.
pub struct Client {
    pub owner: Owner,
    pub keys: Keys,
    pub directory: SegmentDirectory,
    next: i64,
}

impl Client {
    pub fn new(name: &str, (mode, precision, scheme): (Mode, Precision, Scheme)) -> Self {
        Self::with_dimension(name, D, (mode, precision, scheme))
    }

    pub fn with_dimension(
        name: &str,
        dimension: usize,
        (mode, precision, scheme): (Mode, Precision, Scheme),
    ) -> Self {
        let keys = if mode == Mode::Open { Keys::public() } else { Keys::generate().unwrap() };
        let spec = IndexSpec::new(name, dimension as u32, Metric::Cosine, mode, precision)
            .and_then(|spec| spec.with_scheme(scheme, None))
            .unwrap();
        let owner = Owner::new(&keys, spec).unwrap();
        if scheme.is_additive() {
            owner.generate_key_pair().unwrap();
        }
        Self { owner, keys, directory: SegmentDirectory::new(), next: 0 }
    }

    /// Another process of the same owner.
    pub fn of(other: &Self) -> Self {
        let master = Keys::from_master([7; 32]);
        let owner = Owner::new(&master, other.owner.spec().clone()).unwrap();
        Self { owner, keys: master, directory: SegmentDirectory::new(), next: 0 }
    }

    pub fn meta_at(&self, epoch: u32) -> Vec<u8> {
        let spec = self.owner.spec();
        let encoded = STANDARD.encode(spec.to_bytes());
        let (scheme, key) = (spec.scheme().stored_name(), self.owner.key_id());
        format!(
            "{{\"format\":2,\"spec\":\"{encoded}\",\"scheme\":\"{scheme}\",\"key_id\":\"{key}\",\"epoch\":{epoch},\
             \"settings\":\"{}\"}}",
            STANDARD.encode(self.settings())
        )
        .into_bytes()
    }

    /// What only the owner reads of a description.
    fn settings(&self) -> Vec<u8> {
        let binding = self.owner.spec().binding();
        let place = records::Place { collection: &binding, segment: &[0; 16] };
        let rows = [(Id::from("settings"), b"{}".to_vec())];
        records::seal_records(self.owner.aead(), place, &rows).unwrap()
    }

    pub fn meta(&self) -> Vec<u8> {
        self.meta_at(0)
    }

    pub fn evaluation(&self, epoch: u32) -> Vec<u8> {
        let spec = self.owner.spec();
        if spec.scheme().is_additive() {
            return self.owner.public_key().unwrap();
        }
        self.keys.evaluation(spec, epoch).unwrap().map_or(Vec::new(), |keys| keys.to_bytes())
    }

    pub fn attachments(&self) -> Vec<(String, Vec<u8>)> {
        vec![("evaluation".to_owned(), self.evaluation(0))]
    }

    /// A sealed segment as a change, which the directory learns too.
    pub fn add(&mut self, rows: usize) -> Change {
        let vectors = random(rows * self.owner.spec().dimension(), self.next as u64 + 1);
        let ids: Vec<Id> = (self.next..self.next + rows as i64).map(Id::Number).collect();
        self.next += rows as i64;
        let sealed = self.owner.seal(&vectors, &ids).unwrap();
        self.directory.add(&self.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        let blobs = vec![
            ("rows".to_owned(), sealed.segment.to_vec()),
            ("sidecar".to_owned(), sealed.sidecar),
        ];
        let add = vec![NewSegment { id: sealed.id.0, rows: rows as u32, blobs }];
        Change { add, ..Change::default() }
    }

    pub fn query(&self, count: usize, seed: u64) -> ciphervec_owner::search::Query {
        let vectors = random(count * self.owner.spec().dimension(), seed);
        self.owner.query(&vectors, &self.directory, QueryOptions::default()).unwrap()
    }

    pub fn best(
        &self,
        query: &ciphervec_owner::search::Query,
        answer: &[u8],
    ) -> Vec<Vec<(Id, f64)>> {
        let ask = Retrieval::TopK(5);
        let opened = self.owner.open(query, answer, &self.directory, ask).unwrap();
        let named = |hits: Vec<ciphervec_owner::search::Hit>| {
            hits.into_iter().map(|hit| (hit.id, hit.value)).collect()
        };
        opened.hits.into_iter().map(named).collect()
    }
}

pub fn id_of(change: &Change) -> SegmentId {
    change.add.first().unwrap().id
}

pub fn open(path: &Path) -> Arc<Database> {
    open_with(path.to_str().unwrap(), 1 << 30)
}

pub fn open_with(url: &str, memory_budget: u64) -> Arc<Database> {
    let options = DatabaseOptions { url: url.to_owned(), memory_budget, threads: 2, queue: 64 };
    Database::open(&options).unwrap()
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
