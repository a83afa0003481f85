//! One `sealed` query over 200,000 rows of 512 dimensions, part by part on one thread, and its scan for eight queries at once.
//!
//! The floors: of a scan, its rows at the memory's rate, and for eight queries two products a residue and query; of a tree,
//! its transforms, six a step, and nine where the step's key has two digits.
#![allow(missing_docs, reason = "criterion makes the entry point")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

#[path = "../tests/suite/rows.rs"]
mod rows;

use ciphervec_arith::Backend;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::ring::{
    self, AnswerCheck, AskedLevel, Binding, CheckWeights, Expanded, Layout, MaskSums, Masks,
    OpenedRows, QueryKey, QueryOpener, Ring, RowSigns, ScoreNoise, SegmentKey, Vectors,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rows::Rows;

const ROWS: usize = 200_000;
const DIMENSION: usize = 512;
/// At which a collection of this size is sealed.
const LEVEL: u8 = 8;
const QUERIES: usize = 8;

fn search(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let (ring, master) = (Ring::new().unwrap(), MasterKey::from_bytes([1; 32]));
    let key = QueryKey::derive(&ring, &master, b"bench", 0);
    let binding = Binding { index: [0; 8], mask_seed: [2; 32] };
    let keys = key.evaluation_keys(&ring, &master, b"bench", binding, DIMENSION);
    let masks = Masks::new(binding.mask_seed, DIMENSION);
    let layout = Layout::new(DIMENSION, LEVEL).unwrap();
    let scales = ring.scales(f64::exp2(18.0), LEVEL);
    let (plain, _) = Rows::random_unit(ROWS, DIMENSION, scales.vector, 1);
    let packed = ring::seal(&ring, &masks, &master, b"bench", &layout, &plain, scales).unwrap();
    let (id, data) = (packed.id, &packed.words[..]);
    let (query, _) = Rows::random_unit(1, DIMENSION, scales.query, 2);
    let words = Ring::answer_words(&layout, Vectors::Sealed, scales);

    let mut group = criterion.benchmark_group(format!("sealed, {}", Backend::current().name()));
    group.sample_size(20);
    let asked = key.encrypt(&ring, &layout, &query.values, &[3; 32], &[4; 32], 0);
    group.bench_function("encrypt", |b| {
        b.iter(|| key.encrypt(&ring, &layout, &query.values, &[3; 32], &[4; 32], 0));
    });
    let tree = ring::expand(&ring, &keys, &asked, &[layout]).unwrap().remove(0);
    group.bench_function("expand", |b| {
        b.iter(|| ring::expand(&ring, &keys, &asked, &[layout]).unwrap());
    });
    group.throughput(Throughput::Bytes(data.len() as u64));
    let mut answer = vec![0; words.answer_len(&layout, ROWS)];
    let mut scan = |trees: &[&Expanded]| {
        for blocks in layout.ranges(ROWS, trees.len()) {
            for sums in ring::scan(&ring, &layout, data, ROWS, blocks.clone(), trees) {
                ring::write_answer(&ring, &layout, words, blocks.clone(), &sums, &mut answer);
            }
        }
    };
    group.bench_function(format!("scan for {QUERIES}"), |b| b.iter(|| scan(&[&tree; QUERIES])));
    group.bench_function("scan", |b| b.iter(|| scan(&[&tree])));
    // What is opened below is an answer, whichever parts are measured.
    scan(&[&tree]);
    group.throughput(Throughput::Elements(ROWS as u64));

    // The owner's: what it sums of a tree while the server scans, and then its answer.
    group.bench_function("owner: sums of masks", |b| {
        b.iter(|| MaskSums::compute(&ring, &masks, &layout, &[&tree]));
    });
    group.bench_function("owner: all of a tree", |b| {
        b.iter(|| AskedLevel::of(&ring, &key, Some(&masks), &tree));
    });
    let of_tree = AskedLevel::of(&ring, &key, Some(&masks), &tree);
    let secret = SegmentKey::derive(&ring, &master, b"bench", id, &layout, ROWS);
    let weights = CheckWeights::derive(&master, b"bench", id, &layout);
    let check = AnswerCheck::new(weights, &layout, ROWS, &packed.sums, 0..layout.blocks(ROWS));
    let signs = RowSigns::of(id, ROWS);
    let check = check.unwrap();
    let rows =
        OpenedRows { layout: &layout, key: Some(&secret), signs: &signs, check: Some(&check) };
    let noise = ScoreNoise::of(&layout, Vectors::Sealed, scales, words, false);
    let mut out = vec![0.0; ROWS];
    group.bench_function("owner: open", |b| {
        b.iter(|| {
            let opener = QueryOpener::new(&ring, &key, &of_tree, words);
            assert!(opener.open(&rows, &noise, &query.values, (0, &answer), &mut out));
        });
    });
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
