//! Plaintext matrix bench: a matrix times rows of residues, one thread; beside it what its
//! multiply-adds alone would take in both ways of doing them, 52-bit integers and doubles.

mod roofline;

use ciphervec_arith::pcmm::{Weights, multiply};
use ciphervec_arith::{Backend, Modulus, Stream, ntt_primes};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Outputs, inputs, residues in a row, bits of a weight.
const SHAPES: [(usize, usize, usize, u32); 4] =
    [(300, 1024, 4096, 18), (300, 256, 32768, 18), (32, 64, 8192, 20), (300, 256, 8192, 30)];
/// Either way takes two instructions for a residue below `2^50` and a weight of up to 22 bits.
const INSTRUCTIONS: f64 = 2.0;

fn products(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let peaks = roofline::peaks();
    let peak = peaks.ifma.max(peaks.fma).max(peaks.fma256);
    println!(
        "one thread: {:.1} G 52-bit multiply-adds/s, {:.1} G double multiply-adds/s \
         ({:.1} G four at a time)",
        1e-9 * peaks.ifma,
        1e-9 * peaks.fma,
        1e-9 * peaks.fma256
    );
    let m = Modulus::new(ntt_primes(50, 32768, 1).expect("a prime")[0]).expect("a modulus");
    for (rows, columns, length, bits) in SHAPES {
        let inputs: Vec<Vec<u64>> = (0..columns as u64)
            .map(|i| {
                let mut row = vec![0; length];
                Stream::new(&[5; 32], i).uniform(&m, &mut row);
                row
            })
            .collect();
        let inputs: Vec<&[u64]> = inputs.iter().map(Vec::as_slice).collect();
        let values: Vec<i64> = (0..(rows * columns) as i64)
            .map(|i| i * 1_000_003 % (1 << bits) - (1 << (bits - 1)))
            .collect();
        let weights = Weights::new(rows, columns, &values).expect("weights in range");
        let mut outputs = vec![vec![0u64; length]; rows];
        let products = (rows * columns * length) as f64;
        let mut group = c.benchmark_group(format!("pcmm/{rows}x{columns}x{length}/{bits} bits"));
        group.throughput(Throughput::Elements(products as u64)).sample_size(10);
        for backend in Backend::available() {
            // Portable code takes minutes for these, and AVX-512 F alone runs the kernel of AVX2.
            if matches!(backend, Backend::Portable | Backend::Avx512f) {
                continue;
            }
            let mut views: Vec<&mut [u64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            let mut timed = || {
                pool.install(|| backend.run(|| multiply(&weights, &inputs, &mut views, &m)))
                    .expect("available");
            };
            if std::env::args().any(|a| a == "--test") {
                continue;
            }
            let seconds = roofline::best(10, &mut timed);
            println!(
                "{rows} x {columns} x {length}, {bits} bits/{}: {:.1} G multiply-adds/s, \
                 {:.0}% of the better peak",
                backend.name(),
                1e-9 * products / seconds,
                100.0 * products / seconds / peak
            );
            let why = "two instructions a product at the better peak";
            roofline::report(backend.name(), INSTRUCTIONS * products / peak, why, seconds);
            group.bench_function(backend.name(), |b| b.iter(&mut timed));
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = products
}
criterion_main!(benches);
