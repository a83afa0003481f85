//! Pointwise bench: polynomials of degree 4096; beside each the time that moving the words through
//! the cache takes.

mod roofline;

use std::hint::black_box;

use ciphervec_arith::{Backend, Modulus, NttTable, Stream, ntt_primes, poly};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DEGREE: usize = 4096;
const TERMS: usize = 16;
/// How often in a row each word of a repeated factor stands.
const REPEATED: usize = 16;
/// Calls in one timing, so that the clock's resolution does not matter.
const CALLS: usize = 200;

fn pointwise(c: &mut Criterion) {
    let q = ntt_primes(50, DEGREE, 1).expect("a prime")[0];
    let m = Modulus::new(q).expect("a modulus");
    let polys: Vec<Vec<u64>> = (0..2 * TERMS as u64)
        .map(|i| {
            let mut p = vec![0; DEGREE];
            Stream::new(&[8; 32], i).uniform(&m, &mut p);
            p
        })
        .collect();
    let (a, b) = (&polys[0], &polys[1]);
    let views: Vec<&[u64]> = polys.iter().map(Vec::as_slice).collect();
    let (left, right) = views.split_at(TERMS);
    let few: Vec<&[u64]> = right.iter().map(|p| &p[..DEGREE / REPEATED]).collect();
    let few = few.as_slice();
    let permutation = NttTable::new(DEGREE, q).expect("a table").automorphism_permutation(5);
    let mut out = vec![0u64; DEGREE];
    let copy = roofline::best(50, || {
        for _ in 0..CALLS {
            out.copy_from_slice(black_box(a));
        }
    }) / CALLS as f64;
    let peaks = roofline::peaks();
    println!(
        "copying a polynomial: {:.3} us; {:.1} G double multiply-adds/s",
        1e6 * copy,
        1e-9 * peaks.fma
    );
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("poly/{}", backend.name()));
        group.throughput(Throughput::Elements(DEGREE as u64)).sample_size(20);
        let mut kernel = |name: &str, copies: f64, work: &mut dyn FnMut()| {
            let mut timed = || backend.run(&mut *work).expect("available");
            let seconds = roofline::best(50, || (0..CALLS).for_each(|_| timed())) / CALLS as f64;
            roofline::report(
                &format!("{name}/{}", backend.name()),
                copies * copy,
                "copying",
                seconds,
            );
            group.bench_function(name, |b| b.iter(&mut timed));
        };
        kernel("add", 1.5, &mut || poly::add_assign(&mut out, a, &m));
        kernel("mul", 1.5, &mut || poly::mul(&mut out, a, b, &m));
        kernel("mul_add", 2.0, &mut || poly::mul_add_assign(&mut out, a, b, &m));
        kernel("scalar_mul", 1.0, &mut || poly::scalar_mul_assign(&mut out, 12345, &m));
        kernel("dot of 16", 16.5, &mut || poly::dot(&mut out, left, right, &m));
        kernel("dot of 16, repeated", 8.5, &mut || poly::dot_repeated(&mut out, left, few, &m));
        kernel("permute", 1.0, &mut || poly::permute(&mut out, a, &permutation));
        kernel("automorphism", 1.0, &mut || poly::automorphism(&mut out, a, 5, &m));
        kernel("mul_monomial", 1.0, &mut || poly::mul_monomial(&mut out, a, -77, &m));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(300));
    targets = pointwise
}
criterion_main!(benches);
