//! Private retrieval on one thread: records of 1 KB fetched from 200,000 and from a million, one and ten at a time; and 2 million
//! rows of 128 numbers in clusters of 4,096, folded to eight. Prints bytes, the server's memory and the back-end beside times.
//!
//! The floor of a fetch is its scan: 25 GB/s of memory for the first, two products a coefficient for those that share it.
//! A million records take 3.7 GB.
#![allow(missing_docs, reason = "criterion makes the entry point")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use ciphervec_arith::Backend;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::retrieval::{
    ChoiceShape, ClusterFolds, PAYLOAD_BYTES, RetrievalKey, RetrievalNoise, RetrievalQuery,
    SelectorKeys, Shape, Table, answer,
};
use ciphervec_he_secret::lattice::ring::{Binding, Layout, QueryKey, Ring, expand, scan};
use criterion::{Criterion, criterion_group, criterion_main};
use std::cell::LazyCell;
use std::sync::Once;

const RECORD: usize = 1024;

fn content(record: usize, out: &mut [u8]) {
    out.iter_mut().enumerate().for_each(|(at, byte)| *byte = (record * 31 + at * 7) as u8);
}

fn retrieval(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let (ring, master) = (Ring::new().unwrap(), MasterKey::from_bytes([1; 32]));
    let key = RetrievalKey::derive(&ring, &master, b"bench", 0);
    let keys = key.selector_keys(&ring, &master, b"bench");
    println!(
        "back-end {}, 1 thread, keys {} bytes",
        Backend::current().name(),
        SelectorKeys::BYTES
    );
    clusters(criterion, &ring, &master);
    two_places(criterion, (&ring, &key, &keys));
    for records in [200_000usize, 1_000_000] {
        let shape = Shape::new([0; 16], records, RECORD).unwrap();
        let table = LazyCell::new(|| [Table::new(&ring, shape, content)]);
        let mut group = criterion.benchmark_group(format!("{records} records of {RECORD} bytes"));
        group.sample_size(10);
        for fetches in [1usize, 10] {
            let wanted: Vec<usize> = (0..fetches).map(|at| (at + 1) * records / 11).collect();
            let told = Once::new();
            group.bench_function(format!("{fetches} fetched"), |b| {
                let asked = key.ask(&ring, &shape, &wanted).unwrap().to_bytes(&shape);
                let query = RetrievalQuery::from_bytes(&ring, &asked, &shape).unwrap();
                told.call_once(|| {
                    let answered = answer(&ring, &keys, &*table, &query).unwrap();
                    let opened = key.open(&ring, &shape, &wanted, &answered).unwrap();
                    for (&record, opened) in wanted.iter().zip(opened) {
                        let mut expected = vec![0; RECORD];
                        content(record, &mut expected);
                        assert!(*opened == expected, "record {record}");
                    }
                    let down = answered.to_bytes(&shape).len();
                    let memory = table[0].bytes() as f64 / (records * RECORD) as f64;
                    let noise = RetrievalNoise::of(&shape, fetches).unwrap();
                    println!(
                        "{} nodes, {} columns: {} bytes up, {down} down, {memory:.2} times the \
                         records in memory, {:.1} deviations",
                        shape.nodes(),
                        shape.columns(),
                        asked.len(),
                        noise.deviations()
                    );
                });
                b.iter(|| answer(&ring, &keys, &*table, &query).unwrap());
            });
        }
        group.finish();
    }
}

/// Blocks of uniform residues, as sealed ones are to their server: their scan alone, and with the fold.
fn clusters(criterion: &mut Criterion, ring: &Ring, master: &MasterKey) {
    const CLUSTERS: usize = 488;
    let layout = Layout::new(128, 7).unwrap();
    let rows = layout.vectors_per_block();
    let key = QueryKey::derive(ring, master, b"bench", 0);
    let binding = Binding { index: [0; 8], mask_seed: [0; 32] };
    let keys = key.evaluation_keys(ring, master, b"bench", binding, 128);
    let asked = key.encrypt(ring, &layout, &[1 << 20; 128], &[1; 32], &[2; 32], 0);
    let tree = expand(ring, &keys, &asked, &[layout]).unwrap().remove(0);
    let shape = ChoiceShape::new(128, CLUSTERS, 8).unwrap();
    let chosen: Vec<usize> = (0..8).map(|at| at * 61).collect();
    let choice = key.choose(ring, master, b"bench", &shape, &chosen).unwrap();
    let data: Vec<Vec<u8>> = (0..CLUSTERS)
        .map(|cluster| {
            let mut words = vec![0; layout.packed_len(rows)];
            Stream::new(&[3; 32], cluster as u64).fill(&mut words);
            words
        })
        .collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    println!("{CLUSTERS} clusters of {rows} rows, choice of {} bytes", shape.byte_len());
    let mut group = criterion.benchmark_group("2 million rows of 128 numbers in clusters");
    group.sample_size(10);
    group.bench_function("scan", |b| {
        b.iter(|| {
            for data in &data {
                scan(ring, &layout, data, rows, 0..1, &[&tree]);
            }
        });
    });
    group.bench_function("selectors", |b| {
        b.iter(|| ClusterFolds::new(ring, &keys, shape, &choice, 1).unwrap());
    });
    group.bench_function("selectors, scan and fold to 8", |b| {
        b.iter(|| {
            let mut folds = ClusterFolds::new(ring, &keys, shape, &choice, 1).unwrap();
            for run in data.chunks(ClusterFolds::RUN) {
                folds.take(&layout, run, rows, &tree);
            }
            folds.finish()
        });
    });
    group.finish();
}

/// A lookup by key, of one and of ten: two buckets a key, each in a part of its own. 200,000 records of 1 KB are six a bucket,
/// 95 % full.
fn two_places(criterion: &mut Criterion, (ring, key, keys): (&Ring, &RetrievalKey, &SelectorKeys)) {
    let shape = Shape::new([0; 16], 17_544, PAYLOAD_BYTES).unwrap();
    let parts = [0, 1].map(|_| Table::new(ring, shape, content));
    let mut group = criterion.benchmark_group("200000 records of 1024 bytes by key");
    group.sample_size(10);
    for lookups in [1usize, 5] {
        let wanted: Vec<usize> =
            (0..2 * lookups).map(|at| (at * 7919 + 5) % shape.records()).collect();
        let asked = key.ask(ring, &shape, &wanted).unwrap().to_bytes(&shape);
        let query = RetrievalQuery::from_bytes(ring, &asked, &shape).unwrap();
        let answered = answer(ring, keys, &parts, &query).unwrap();
        let opened = key.open(ring, &shape, &wanted, &answered).unwrap();
        for (&record, opened) in wanted.iter().zip(opened) {
            let mut expected = vec![0; PAYLOAD_BYTES];
            content(record, &mut expected);
            assert!(*opened == expected, "bucket {record}");
        }
        let down = answered.to_bytes(&shape).len();
        println!(
            "{} nodes, {} columns: {} bytes up, {down} down",
            shape.nodes(),
            shape.columns(),
            asked.len()
        );
        group.bench_function(format!("{lookups} looked up"), |b| {
            b.iter(|| answer(ring, keys, &parts, &query).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, retrieval);
criterion_main!(benches);
