//! Sampler bench: 65,536 samples at a time; beside them the time that their keystream alone takes.

mod roofline;

use ciphervec_arith::{Backend, Modulus, Stream, ntt_primes};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const COUNT: usize = 1 << 16;

fn samplers(c: &mut Criterion) {
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("a prime")[0]).expect("a modulus");
    let mut bytes = [0u8; 8192];
    let mut stream = Stream::new(&[5; 32], 0);
    let keystream = roofline::best(500, || stream.fill(&mut bytes)) / bytes.len() as f64;
    println!("keystream {:.2} GB/s", 1e-9 / keystream);
    let (mut words, mut errors, mut trits) =
        (vec![0u64; COUNT], vec![0i32; COUNT], vec![0i8; COUNT]);
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("sample/{}", backend.name()));
        group.throughput(Throughput::Elements(COUNT as u64)).sample_size(20);
        let mut kernel = |name: &str, bytes: f64, work: &mut dyn FnMut()| {
            let mut timed = || backend.run(&mut *work).expect("available");
            let floor = bytes * COUNT as f64 * keystream;
            let seconds = roofline::best(100, &mut timed);
            roofline::report(&format!("{name}/{}", backend.name()), floor, "keystream", seconds);
            println!("  {:.0} M samples/s", 1e-6 * COUNT as f64 / seconds);
            group.bench_function(name, |b| b.iter(&mut timed));
        };
        let mut stream = Stream::new(&[5; 32], 1);
        kernel("gaussian", 8.0, &mut || stream.gaussian(&mut errors));
        let mut stream = Stream::new(&[5; 32], 2);
        kernel("uniform", 8.0, &mut || stream.uniform(&m, &mut words));
        let mut stream = Stream::new(&[5; 32], 3);
        kernel("uniform bits", 8.0, &mut || stream.uniform_bits(37, &mut words));
        let mut stream = Stream::new(&[5; 32], 4);
        kernel("ternary", 256.0 / 243.0 / 5.0, &mut || stream.ternary(&mut trits));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(600));
    targets = samplers
}
criterion_main!(benches);
