//! Looking rows up on one thread: each strategy's functions alone, and whole lookups, for a batch of all slots.
//!
//! A time is that of a batch: divide it by the slots that the name states. `docs/lookup.md` says what a strategy's batch sends.
#![allow(missing_docs, reason = "criterion makes the entry point")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use ciphervec_he_secret::ckks::{Ciphertext, Complex, Encoding, Evaluator, Plaintext, SecretKey};
use ciphervec_owner::lookup::{
    BYTES_PER_SECOND, Next, Planner, Recipe, Request, Shape, SmallBatch, Strategy, Weights, embed,
    generate,
};
use criterion::{Criterion, criterion_group, criterion_main};
use std::sync::Arc;

/// Strategy, rows, columns, tables.
const CASES: [(Strategy, usize, usize, usize); 8] = [
    (Strategy::IveDigits, 256, 1, 4),
    (Strategy::IveDigits, 256, 2, 1),
    (Strategy::Ive, 256, 2, 1),
    (Strategy::OneHotDigits, 256, 2, 1),
    (Strategy::IveDigits, 1024, 50, 4),
    (Strategy::IveDigits, 1024, 300, 4),
    (Strategy::Ive, 1024, 300, 1),
    (Strategy::OneHot, 64, 300, 1),
];

fn table(rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|i| (i * 7919 % 4001) as f64 / 2000.0 - 1.0).collect()
}

fn query(recipe: &Recipe, key: &SecretKey) -> Vec<Ciphertext> {
    let slots = recipe.batch();
    let mut columns = vec![vec![Complex::default(); slots]; recipe.entries()];
    let mut written = vec![Complex::default(); recipe.entries()];
    for slot in 0..slots {
        recipe.write(slot % recipe.shape().rows, &mut written).unwrap();
        columns.iter_mut().zip(&written).for_each(|(column, value)| column[slot] = *value);
    }
    let encoding = Encoding { magnitude: Some(1.0), ..Encoding::default() };
    let encrypt = |column: Vec<Complex>| {
        let plain = Plaintext::encode_complex_with(recipe.params(), &column, &encoding).unwrap();
        key.encrypt(&plain).unwrap()
    };
    columns.into_iter().map(encrypt).collect()
}

fn strategies(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    for (strategy, rows, columns, tables) in CASES {
        let shape = Shape { rows, columns, precision_bits: 13, levels: 0 };
        let recipe = Recipe::new(strategy, shape).unwrap();
        let key = SecretKey::generate(recipe.params()).unwrap();
        let keys = key.evaluation_keys(&recipe.key_plan()).unwrap();
        let evaluator = Evaluator::new(Arc::new(keys));
        let query = query(&recipe, &key);
        let values = table(rows, columns);
        let weights = Weights::new(&recipe, &vec![&values[..]; tables]).unwrap();
        let name = format!("{strategy}, {rows} rows of {columns}, {} slots", recipe.batch());
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.bench_function("functions", |b| {
            b.iter(|| generate(&recipe, &evaluator, &query, usize::MAX).unwrap());
        });
        let queries = vec![&query[..]; tables];
        group.bench_function(format!("lookup, {tables} table(s)"), |b| {
            b.iter(|| embed(&recipe, &evaluator, &weights, &queries).unwrap());
        });
        group.finish();
    }
}

/// One document's worth of indices, as soon as may be.
fn small_batch(criterion: &mut Criterion) {
    let layout = SmallBatch::new((4, 256, 2), 8).unwrap();
    let key = SecretKey::generate(layout.params()).unwrap();
    let keys = key.evaluation_keys(&layout.key_plan()).unwrap();
    let evaluator = Evaluator::new(Arc::new(keys));
    let values = table(256, 2);
    let tables = layout.tables(&[&values[..]; 4]).unwrap();
    let slots = layout.write(&[vec![1, 2, 3, 4]]).unwrap();
    let query = key.encrypt(&Plaintext::encode(layout.params(), &slots).unwrap()).unwrap();
    criterion.bench_function("small batch, 4 tables of 256 rows of 2", |b| {
        b.iter(|| layout.embed(&evaluator, &tables, &query).unwrap());
    });
}

fn planner(criterion: &mut Criterion) {
    let request = Request {
        rows: 1024,
        columns: 300,
        tables: 4,
        batch: 1 << 14,
        precision_bits: 13,
        next: Next::Decrypt,
        bytes_per_second: BYTES_PER_SECOND,
        latency: 0.0,
        strategy: None,
        transport: None,
    };
    println!("{}", Planner::new(request).unwrap().explain());
    criterion.bench_function("planner", |b| b.iter(|| Planner::new(request).unwrap()));
}

criterion_group!(benches, strategies, small_batch, planner);
criterion_main!(benches);
