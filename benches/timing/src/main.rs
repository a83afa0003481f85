//! Dudect's test, for reviewers: whether the time of what touches secrets depends on them. Each bench times one call with a
//! fixed secret (left) or a random one (right) in random order, and compares the two distributions by Welch's t.
//!
//! `cargo run --release`; `CIPHERVEC_BACKEND` forces a back-end. |t| stays below 5 where nothing leaks, and grows with the
//! square root of the samples where something does. `control_*` leak on purpose: a run that misses them says nothing.

use ciphervec_arith::montgomery::{Comb, LANES, PowerModulus, Residues};
use ciphervec_arith::{NttTable, Stream, ntt_primes, wrapping};
use dudect_bencher::rand::{Rng, RngExt};
use dudect_bencher::{BenchRng, Class, CtRunner, ctbench_main};
use std::hint::black_box;

const DEGREE: usize = 2048;

/// Runs `call` on `samples` secrets, of which about half are `fixed`.
fn measure<S: Clone, T>(
    runner: &mut CtRunner,
    rng: &mut BenchRng,
    samples: usize,
    fixed: &S,
    random: impl Fn(&mut BenchRng) -> S,
    call: impl Fn(&S) -> T,
) {
    // All are drawn before some are replaced, so that what lies where is the same for both classes.
    let mut secrets: Vec<(Class, S)> = (0..samples).map(|_| (Class::Right, random(rng))).collect();
    for (class, secret) in &mut secrets {
        if rng.random() {
            *class = Class::Left;
            secret.clone_from(fixed);
        }
    }
    let mut held = fixed.clone();
    for (class, secret) in &secrets {
        // From one place, which is in the cache for both classes.
        held.clone_from(secret);
        runner.run_one(*class, || black_box(call(black_box(&held))));
    }
}

fn bytes(rng: &mut BenchRng) -> [u8; 32] {
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    seed
}

/// Noise of a polynomial, from its seed.
fn gaussian(runner: &mut CtRunner, rng: &mut BenchRng) {
    measure(runner, rng, 20_000, &[0; 32], bytes, |seed| {
        let mut noise = [0; DEGREE];
        Stream::new(seed, 1).gaussian(&mut noise);
        noise
    });
}

fn ternary(rng: &mut BenchRng) -> Vec<i8> {
    (0..DEGREE).map(|_| rng.random_range(-1..=1)).collect()
}

/// A ternary secret to the transform's domain and back, as masks are multiplied with it.
fn transform(runner: &mut CtRunner, rng: &mut BenchRng) {
    let prime = ntt_primes(50, DEGREE, 1).expect("a prime")[0];
    let table = NttTable::new(DEGREE, prime).expect("a table");
    let lifted = |rng: &mut BenchRng| -> Vec<u64> {
        ternary(rng).iter().map(|&s| prime.wrapping_add_signed(s.into()) % prime).collect()
    };
    let fixed = vec![0; DEGREE];
    measure(runner, rng, 20_000, &fixed, lifted, |secret| {
        let mut values = [0; DEGREE];
        values.copy_from_slice(secret);
        table.forward(&mut values);
        table.inverse(&mut values);
        values[0]
    });
}

/// A row of a ternary secret times masks, which takes the noise off possible hits.
fn ternary_products(runner: &mut CtRunner, rng: &mut BenchRng) {
    let mut masks = vec![0; 32 * DEGREE];
    rng.fill_bytes(&mut masks);
    measure(runner, rng, 20_000, &vec![0; DEGREE], ternary, |secret| {
        let mut out = [0; 32];
        wrapping::ternary_products(&masks, &[secret], &mut out);
        out
    });
}

/// Words of the exponents below.
const EXPONENT: usize = 4;

fn exponents(rng: &mut BenchRng) -> Vec<u64> {
    (0..LANES * EXPONENT).map(|_| rng.random()).collect()
}

/// Residues modulo an odd number of 1024 bits.
fn residues(rng: &mut BenchRng) -> Residues {
    let mut n: Vec<u64> = (0..16).map(|_| rng.random()).collect();
    n[0] |= 1;
    n[15] |= 1 << 63;
    let modulus = PowerModulus::new(&n, 1).expect("a modulus");
    let words: Vec<u64> = (0..LANES * 16).map(|_| rng.random::<u64>() >> 1).collect();
    Residues::from_digits(&modulus, 1, LANES, &words).expect("residues")
}

/// Powers with secret exponents of their own.
fn powers(runner: &mut CtRunner, rng: &mut BenchRng) {
    let base = residues(rng);
    let zeros = vec![0; LANES * EXPONENT];
    measure(runner, rng, 20_000, &zeros, exponents, |secret| base.pow_each(secret));
}

fn comb(rng: &mut BenchRng) -> Comb {
    Comb::new(&residues(rng).columns_in(0..1), 64 * EXPONENT as u32)
}

/// Powers of one base by a table, as encryption draws its noise.
fn table_powers(runner: &mut CtRunner, rng: &mut BenchRng) {
    let table = comb(rng);
    let zeros = vec![0; LANES * EXPONENT];
    measure(runner, rng, 20_000, &zeros, exponents, |secret| table.pow(1, LANES, secret));
}

/// The same where exponents are public: the test has to see the difference.
fn control_table_powers_vartime(runner: &mut CtRunner, rng: &mut BenchRng) {
    let table = comb(rng);
    let zeros = vec![0; LANES * EXPONENT];
    measure(runner, rng, 40_000, &zeros, exponents, |secret| table.pow_vartime(1, LANES, secret));
}

/// A comparison that ends at the first difference.
fn control_early_end(runner: &mut CtRunner, rng: &mut BenchRng) {
    let first = ternary(rng);
    measure(runner, rng, 20_000, &first.clone(), ternary, |secret| {
        secret.iter().zip(&first).all(|(ours, theirs)| black_box(ours) == black_box(theirs))
    });
}

ctbench_main!(
    gaussian,
    transform,
    ternary_products,
    powers,
    table_powers,
    control_table_powers_vartime,
    control_early_end
);
