//! Montgomery bench: products, powers and weighted products of multi-limb residues; beside them the
//! arithmetic roofline, and GMP and OpenSSL where this machine has them.
//!
//! GMP is asked through Python's `gmpy2` (`mpz` products with reduction, `powmod`); OpenSSL by
//! `openssl speed`, whose private RSA operation is two powers of half the length.

mod roofline;

use std::process::Command;
use std::sync::Arc;

use ciphervec_arith::Backend;
use ciphervec_arith::montgomery::{Comb, LANES, PowerModulus, Residues};
use criterion::{Criterion, criterion_group, criterion_main};

/// Bits of `n` and its power: an RSA prime, a number as long as its square, the bases of Paillier
/// at 2048 and 3072.
const SHAPES: [(usize, usize); 5] = [(1024, 1), (1024, 2), (2048, 1), (2048, 2), (3072, 2)];

fn setting(bits: usize, digits: usize) -> (Arc<PowerModulus>, Residues) {
    let mut n: Vec<u64> =
        (1..=bits as u64 / 64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    n[0] |= 1;
    n[bits / 64 - 1] |= 1 << 63;
    let modulus = PowerModulus::new(&n, digits).expect("a modulus");
    let size = modulus.element_words();
    // Below n because the top bit of every digit is clear.
    let words: Vec<u64> = (0..(LANES * size) as u64)
        .map(|i| (i + 3).wrapping_mul(0xd1b5_4a32_d192_ed03) >> 1)
        .collect();
    let residues = Residues::from_digits(&modulus, 1, LANES, &words).expect("residues");
    (modulus, residues)
}

/// Limb products of one multiplication in limbs of 52 bits.
fn products(bits: usize, digits: usize) -> f64 {
    let limbs = (bits as f64 / 52.0).ceil();
    (digits * (digits + 1) / 2 + digits) as f64 * limbs * limbs
}

fn kernels(c: &mut Criterion) {
    let peaks = roofline::peaks();
    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("montgomery/{}", backend.name()));
        group.sample_size(10);
        // A product of limbs takes two instructions with IFMA, three on the floating-point ports
        // without.
        let (operations, peak, why) = match backend {
            Backend::Avx512 => (2.0, peaks.ifma, "52-bit multiply-adds"),
            Backend::Avx512f => (5.0, peaks.fma, "operations on the vector ports"),
            Backend::Avx2 => (3.0, peaks.fma256, "floating-point operations"),
            _ => (1.0, f64::INFINITY, "no floor"),
        };
        backend
            .run(|| {
                for (bits, digits) in SHAPES {
                    let (modulus, x) = setting(bits, digits);
                    let rows = 256;
                    let table = Residues::beside(&vec![&x; rows / LANES]).transposed();
                    let table = Residues::beside(&[&table; LANES]);
                    let floor = operations * products(bits, digits) / peak;
                    let name = format!("{bits}^{digits}, {}", backend.name());

                    let seconds = roofline::best(5, || drop(table.product()));
                    let each = seconds / (rows * LANES) as f64;
                    roofline::report(&format!("product of {name}"), floor, why, each);

                    let exponent = vec![0x5555_5555_5555_5555; 16];
                    let seconds = roofline::best(3, || drop(x.pow(&exponent)));
                    println!(
                        "power of {name}, 1024-bit exponent: {:.3} ms a number, eight at once; \
                         {:.3} ms alone",
                        1e3 * seconds / LANES as f64,
                        1e3 * roofline::best(3, || drop(x.columns_in(0..1).pow(&exponent)))
                    );

                    let comb = Comb::new(&x.columns_in(0..1), 1024);
                    let exponents = exponent.repeat(LANES);
                    let seconds = roofline::best(3, || drop(comb.pow(1, LANES, &exponents)));
                    println!(
                        "fixed base {name}, 1024-bit exponent: {:.3} ms a number, table {:.2} MB",
                        1e3 * seconds / LANES as f64,
                        1e-6 * comb.bytes() as f64
                    );

                    let weights: Vec<i64> =
                        (0..rows as i64).map(|i| i * 977 % 4096 - 2048).collect();
                    let seconds = roofline::best(3, || drop(table.multi_exp_vartime(&weights)));
                    println!(
                        "weighted product of {rows}, {name}: {:.3} ms, {:.2} products a row",
                        1e3 * seconds / LANES as f64,
                        seconds / (rows * LANES) as f64 / each
                    );
                    group.bench_function(format!("{bits}^{digits}/mul"), |b| {
                        let mut y = x.clone();
                        b.iter(|| y.mul_assign(&x));
                    });
                    drop(modulus);
                }
            })
            .expect("available");
        group.finish();
    }
    peers();
}

/// What GMP and OpenSSL take here, one number at a time.
fn peers() {
    let script = "
import gmpy2, time
for bits in (1024, 2048, 4096, 6144):
    n = gmpy2.mpz(2)**bits - 59; x = n // 3; e = gmpy2.mpz(2)**1024 // 3
    t = min((lambda s: (gmpy2.powmod(x, e, n), time.perf_counter() - s)[1])(time.perf_counter()) for _ in range(5))
    s = time.perf_counter(); y = x
    for _ in range(1000): y = y * x % n
    print(f'GMP {gmpy2.mp_version()}: {bits} bits, product {1e3 * (time.perf_counter() - s):.3f} us, '
          f'1024-bit power {1e3 * t:.3f} ms')
";
    for (program, arguments) in [
        ("python3", vec!["-c", script]),
        ("openssl", vec!["speed", "-seconds", "1", "rsa2048", "rsa4096"]),
    ] {
        match Command::new(program).args(&arguments).output() {
            Ok(output) if output.status.success() => {
                print!("{}", String::from_utf8_lossy(&output.stdout));
            }
            _ => println!("{program}: not installed here, or without gmpy2; skipped"),
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(300));
    targets = kernels
}
criterion_main!(benches);
