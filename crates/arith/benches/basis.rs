//! Key-switch bench: what it does beside transforms, at degree 2^15: conversions between bases,
//! inner products with keys, permutations. Beside each the bytes it moves and the time that its
//! multiplications alone would take.

mod roofline;

use std::hint::black_box;

use ciphervec_arith::{Backend, BasisConversion, Modulus, NttTable, Stream, ntt_primes, poly};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DEGREE: usize = 1 << 15;
const DIGITS: usize = 3;

fn random(m: &Modulus, stream: u64) -> Vec<u64> {
    let mut out = vec![0; DEGREE];
    Stream::new(&[6; 32], stream).uniform(m, &mut out);
    out
}

/// 52-bit multiply-adds of a coefficient in a conversion: four for every source, two for every
/// factor of a target (one factor belongs to the multiple of Q) and two for its reduction.
fn conversion_work(sources: usize, targets: usize) -> f64 {
    (4 * sources + targets * (2 * (sources + 1) + 2)) as f64
}

/// Four for every digit, four for the reduction of either sum.
const PAIR_WORK: f64 = (4 * DIGITS + 8) as f64;

fn key_switch(c: &mut Criterion) {
    let primes = ntt_primes(50, DEGREE, 16).expect("primes");
    let moduli: Vec<Modulus> =
        primes.iter().map(|&q| Modulus::new(q).expect("a modulus")).collect();
    let (few, many) = moduli.split_at(4);
    let up = BasisConversion::new(few, many).expect("a conversion");
    let down = BasisConversion::new(many, few).expect("a conversion");
    let limbs: Vec<Vec<u64>> = (0..).zip(&moduli).map(|(i, m)| random(m, i)).collect();
    let views: Vec<&[u64]> = limbs.iter().map(Vec::as_slice).collect();
    let mut outputs = vec![vec![0; DEGREE]; many.len()];

    let m = moduli[0];
    let pairs: Vec<Vec<u64>> = (0..3 * DIGITS as u64).map(|i| random(&m, 100 + i)).collect();
    let pairs: Vec<&[u64]> = pairs.iter().map(Vec::as_slice).collect();
    let (digits, keys0, keys1) =
        (&pairs[..DIGITS], &pairs[DIGITS..2 * DIGITS], &pairs[2 * DIGITS..]);
    let table = NttTable::new(DEGREE, primes[0]).expect("a table");
    let permutation = table.automorphism_permutation(5);
    let (mut x, mut y) = (vec![0; DEGREE], vec![0; DEGREE]);

    let peaks = roofline::peaks();
    println!("{:.1} G 52-bit multiply-adds/s", 1e-9 * peaks.ifma);
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("basis/{}", backend.name()));
        group.sample_size(10);
        let mut kernel = |name: &str, words: usize, work: f64, run: &mut dyn FnMut()| {
            let mut timed = || backend.run(&mut *run).expect("available");
            let bytes = 8 * words * DEGREE;
            let seconds = roofline::best(20, &mut timed);
            let what =
                format!("{name}/{}, {:.1} GB/s", backend.name(), 1e-9 * bytes as f64 / seconds);
            if backend == Backend::Avx512 && work > 0.0 {
                let floor = work * DEGREE as f64 / peaks.ifma;
                roofline::report(&what, floor, "multiply-adds", seconds);
            } else {
                println!("{what}: {:.4} ms", 1e3 * seconds);
            }
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(name, |b| b.iter(&mut timed));
        };
        kernel("4 to 12", 16, conversion_work(4, 12), &mut || {
            let mut out: Vec<&mut [u64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            up.convert(black_box(&views[..4]), &mut out);
        });
        kernel("12 to 4", 16, conversion_work(12, 4), &mut || {
            let mut out: Vec<&mut [u64]> = outputs[..4].iter_mut().map(Vec::as_mut_slice).collect();
            down.convert(black_box(&views[4..]), &mut out);
        });
        kernel("dot_pair", 3 * DIGITS + 2, PAIR_WORK, &mut || {
            poly::dot_pair(&mut x, &mut y, digits, keys0, keys1, &m);
        });
        kernel("dot_pair_permuted", 3 * DIGITS + 2, PAIR_WORK, &mut || {
            poly::dot_pair_permuted(&mut x, &mut y, digits, keys0, keys1, &permutation, &m);
        });
        kernel("permute", 2, 0.0, &mut || poly::permute(&mut x, digits[0], &permutation));
        kernel("sub_scale", 2, 3.0, &mut || {
            poly::sub_scale_assign(&mut x, digits[0], &m.shoup(12345), &m);
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(300));
    targets = key_switch
}
criterion_main!(benches);
