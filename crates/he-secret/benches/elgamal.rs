//! ElGamal on one thread: encryption, dot products of 512 dimensions with 12-bit weights, and
//! logarithms.
//!
//! The floor of a dot product is its additions: 1.9 for each of 512 rows and two points a row, at
//! the time that `addition` takes here.
#![allow(missing_docs, reason = "criterion makes the entry point")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use ciphervec_he_secret::additive::{Decrypt, Evaluate, Messages};
use ciphervec_he_secret::elgamal::shared_noise::SharedNoiseKey;
use ciphervec_he_secret::elgamal::{DiscreteLog, SecretKey};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use curve25519_dalek::Scalar;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use std::hint::black_box;

const ROWS: usize = 512;
const COLUMNS: usize = 32;

/// Bell-shaped integers below `2^(bits - 1)`, as coordinates of embeddings are.
fn bell(count: usize, bits: u32, seed: u64) -> Vec<i64> {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as i64 % (1 << (bits - 3)) - (1 << (bits - 4))
    };
    (0..count).map(|_| (0..8).map(|_| draw()).sum()).collect()
}

fn elgamal(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let key = SecretKey::generate().unwrap();
    let public = key.public();
    let messages = Messages::from_i64(&bell(ROWS * COLUMNS, 12, 1));
    let weights = bell(ROWS, 12, 2);
    let table = key.encrypt(ROWS, COLUMNS, &messages).unwrap();
    let one = key.encrypt(1, ROWS, &Messages::from_i64(&bell(ROWS, 12, 3))).unwrap();
    let sums = public.weighted_sum_vartime(&table, &weights).unwrap();
    let mut group = criterion.benchmark_group("elgamal");
    group.sample_size(10);
    group.bench_function("addition", |b| {
        let mut sum = G;
        b.iter(|| sum += black_box(G));
    });
    group.throughput(Throughput::Elements(COLUMNS as u64));
    group.bench_function("dot products", |b| {
        b.iter(|| public.weighted_sum_vartime(&table, &weights).unwrap());
    });
    group.bench_function("decrypt scores", |b| b.iter(|| key.decrypt(&sums, 26).unwrap()));
    let shared = SharedNoiseKey::generate(ROWS).unwrap();
    let embeddings = shared.encrypt(COLUMNS, &messages).unwrap();
    group.bench_function("dot products, shared noise", |b| {
        b.iter(|| embeddings.weighted_sum_vartime(&weights).unwrap());
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("dot product alone", |b| {
        b.iter(|| public.weighted_sum_along_vartime(&one, &weights).unwrap());
    });
    let embedding = Messages::from_i64(&bell(ROWS, 12, 4));
    group.bench_function("encrypt 512, public key", |b| {
        b.iter(|| public.encrypt(ROWS, 1, &embedding).unwrap());
    });
    group.bench_function("encrypt 512, owner", |b| {
        b.iter(|| key.encrypt(ROWS, 1, &embedding).unwrap());
    });
    group.bench_function("re-randomise 512", |b| {
        b.iter_batched(
            || one.clone(),
            |mut table| public.rerandomise(&mut table).unwrap(),
            BatchSize::LargeInput,
        );
    });
    let bytes = one.to_bytes();
    group.bench_function("read 512", |b| b.iter(|| public.table_from_bytes(&bytes).unwrap()));
    group.bench_function("write 512", |b| b.iter(|| one.to_bytes()));
    let point = G * Scalar::from(12_345_678u64);
    group.bench_function("logarithm, 26 bits", |b| {
        b.iter(|| DiscreteLog::shared().of(&point, 26).unwrap());
    });
    group.finish();
}

criterion_group!(benches, elgamal);
criterion_main!(benches);
