//! Transforms at every degree on every back-end; beside them the time that their multiplications alone would take.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

use ciphervec_arith::{Backend, NttTable, Stream, ntt_primes};

fn transforms(c: &mut Criterion) {
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("ntt/{}", backend.name()));
        for log in 10..=17 {
            let n = 1usize << log;
            let q = ntt_primes(50, n, 1).expect("a prime")[0];
            let table = NttTable::new(n, q).expect("a table");
            let mut data = vec![0; n];
            Stream::new(&[1; 32], 0).uniform(table.modulus(), &mut data);
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
