//! Transform bench: every degree on every back-end; beside each the time that its multiplications
//! alone would take.

mod roofline;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

use ciphervec_arith::{Backend, NttTable, Stream, ntt_primes};

/// 52-bit multiply-adds in a butterfly, of nine operations in all.
const MULTIPLY_ADDS: f64 = 3.0;

fn transforms(c: &mut Criterion) {
    let peaks = roofline::peaks();
    println!("{:.1} G 52-bit multiply-adds/s", 1e-9 * peaks.ifma);
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("ntt/{}", backend.name()));
        for log in 10..=17 {
            let n = 1usize << log;
            let q = ntt_primes(50, n, 1).expect("a prime")[0];
            let table = NttTable::new(n, q).expect("a table");
            let mut data = vec![0; n];
            Stream::new(&[1; 32], 0).uniform(table.modulus(), &mut data);
            if backend == Backend::Avx512 {
                let butterflies = (n / 2 * log) as f64;
                let calls = (1 << 18) / n;
                let seconds = roofline::best(100, || {
                    (0..calls).for_each(|_| table.forward_with(backend, &mut data));
                });
                let floor = butterflies * MULTIPLY_ADDS / peaks.ifma;
                roofline::report(
                    &format!("forward {n}"),
                    floor,
                    "butterflies",
                    seconds / calls as f64,
                );
            }
            group.bench_function(BenchmarkId::new("forward", n), |b| {
                b.iter(|| table.forward_with(backend, &mut data));
            });
            group.bench_function(BenchmarkId::new("inverse", n), |b| {
                b.iter(|| table.inverse_with(backend, &mut data));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(600));
    targets = transforms
}
criterion_main!(benches);
