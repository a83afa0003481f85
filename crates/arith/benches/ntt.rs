//! Transforms at every degree on every back-end; beside them the time that their multiplications alone would take.

mod floor;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

use ciphervec_arith::{Backend, NttTable, Stream, ntt_primes};

/// Operations on a vector of doubles in a butterfly; half of them are multiplications or fused, half additions.
const OPERATIONS: f64 = 8.0;

fn transforms(c: &mut Criterion) {
    let peaks = floor::peaks();
    println!("{:.1} G double multiply-adds/s", 1e-9 * peaks.fma);
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("ntt/{}", backend.name()));
        for log in 10..=17 {
            let n = 1usize << log;
            let q = ntt_primes(50, n, 1).expect("a prime")[0];
            let table = NttTable::new(n, q).expect("a table");
            let mut data = vec![0; n];
            Stream::new(&[1; 32], 0).uniform(table.modulus(), &mut data);
            if backend == Backend::Avx512 {
                // Multiplications and additions have two ports each and go on side by side.
                let butterflies = (n / 2 * log) as f64;
                let calls = (1 << 18) / n;
                let seconds = floor::best(100, || {
                    (0..calls).for_each(|_| table.forward_with(backend, &mut data));
                });
                let floor = butterflies * OPERATIONS / 2.0 / peaks.fma;
                floor::report(
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
