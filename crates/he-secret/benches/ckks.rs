//! CKKS on one thread at N = 2^15 with 12 primes, 4 special primes and 3 digits.
//!
//! The floor of a rotation is its transforms: 80 of the time that `ntt forward` takes here
//! (`key_switch.rs`).
#![allow(missing_docs, reason = "criterion makes the entry point")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use ciphervec_he_secret::ckks::{
    Evaluator, KeyPlan, Params, ParamsSpec, Plaintext, Ring, SecretKey,
};
use ciphervec_he_secret::params::Security;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

fn ckks(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    for ring in [Ring::Standard, Ring::ConjugateInvariant] {
        let spec = ParamsSpec {
            log_degree: 15,
            ring,
            base_bits: 50,
            scale_bits: 49,
            levels: 11,
            special_primes: 4,
            special_bits: 50,
            digits: 3,
            security: Security::Classical128,
        };
        let params = Params::new(spec).unwrap();
        let key = SecretKey::generate(&params).unwrap();
        let public = key.public_key().unwrap();
        let plan = KeyPlan::new().relinearise().rotations([1, 5]);
        let keys = Arc::new(key.evaluation_keys(&plan).unwrap());
        let evaluator = Evaluator::new(keys);
        let values: Vec<f64> = (0..params.max_slots()).map(|i| (i as f64).sin()).collect();
        let plain = Plaintext::encode(&params, &values).unwrap();
        let a = key.encrypt(&plain).unwrap();
        let b = public.encrypt(&plain).unwrap();
        let product = evaluator.multiply(&a, &b).unwrap();
        let digits = evaluator.decompose(&a).unwrap();

        let mut group = criterion.benchmark_group(format!("ckks {}", ring.as_str()));
        group.sample_size(10);
        let mut limb = a.parts()[0].limb(0).to_vec();
        group.bench_function("ntt forward", |b| b.iter(|| params.table(0).forward(&mut limb)));
        group.bench_function("ntt inverse", |b| b.iter(|| params.table(0).inverse(&mut limb)));
        group.bench_function("encode", |b| {
            b.iter(|| Plaintext::encode(&params, black_box(&values)).unwrap());
        });
        group.bench_function("encrypt, secret key", |b| b.iter(|| key.encrypt(&plain).unwrap()));
        group.bench_function("encrypt, public key", |b| b.iter(|| public.encrypt(&plain).unwrap()));
        group.bench_function("decrypt", |b| b.iter(|| key.decrypt(&a).unwrap()));
        group.bench_function("decrypt and decode", |b| {
            b.iter(|| key.decrypt(&a).unwrap().decode());
        });
        group.bench_function("add", |b_| b_.iter(|| evaluator.add(&a, &b).unwrap()));
        group.bench_function("multiply", |b_| b_.iter(|| evaluator.multiply(&a, &b).unwrap()));
        group.bench_function("multiply plain", |b| {
            b.iter(|| evaluator.multiply_plain(&a, &plain).unwrap());
        });
        group
            .bench_function("relinearise", |b| b.iter(|| evaluator.relinearise(&product).unwrap()));
        group.bench_function("multiply and relinearise", |b_| {
            b_.iter(|| evaluator.relinearise(&evaluator.multiply(&a, &b).unwrap()).unwrap());
        });
        group.bench_function("multiply, relinearise, rescale", |b_| {
            b_.iter(|| evaluator.mul(&a, &b).unwrap());
        });
        group.bench_function("rescale", |b| b.iter(|| evaluator.rescale(&a).unwrap()));
        group.bench_function("rotate", |b| b.iter(|| evaluator.rotate(&a, 1).unwrap()));
        group.bench_function("decompose", |b| b.iter(|| evaluator.decompose(&a).unwrap()));
        group.bench_function("rotate, hoisted", |b| {
            b.iter(|| evaluator.rotate_hoisted(&digits, &[5]).unwrap());
        });
        group.finish();
    }
}

criterion_group!(benches, ckks);
criterion_main!(benches);
