//! Plaintext matrices times rows of residues against 128-bit integers, on every back-end.

use ciphervec_arith::pcmm::{Weights, multiply};
use ciphervec_arith::{ArithError, Backend, Modulus, Stream, ntt_primes};
use proptest::prelude::*;

fn residues(m: &Modulus, count: usize, length: usize) -> Vec<Vec<u64>> {
    (0..count as u64)
        .map(|i| {
            let mut row = vec![0; length];
            Stream::new(&[6; 32], i).uniform(m, &mut row);
            row
        })
        .collect()
}

/// Signed integers below `2^bits` in magnitude, the two extremes among them.
fn weights(rows: usize, columns: usize, bits: u32) -> Vec<i64> {
    let mut words = vec![[0u8; 8]; rows * columns];
    Stream::new(&[7; 32], u64::from(bits)).fill(words.as_flattened_mut());
    let top = (1i64 << bits) - 1;
    let mut out: Vec<i64> = words.iter().map(|&w| i64::from_le_bytes(w) % (1i64 << bits)).collect();
    for (w, extreme) in out.iter_mut().zip([top, -top]) {
        *w = extreme;
    }
    out
}

fn product(weights: &Weights, inputs: &[Vec<u64>], length: usize, m: &Modulus) -> Vec<Vec<u64>> {
    let inputs: Vec<&[u64]> = inputs.iter().map(Vec::as_slice).collect();
    let mut out = vec![vec![9; length]; weights.rows()];
    let mut views: Vec<&mut [u64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    multiply(weights, &inputs, &mut views, m);
    out
}

fn check(rows: usize, columns: usize, length: usize, bits: u32, m: &Modulus) {
    let values = weights(rows, columns, bits);
    let inputs = residues(m, columns, length);
    let q = i128::from(m.value());
    let expected: Vec<Vec<u64>> = (0..rows)
        .map(|k| {
            (0..length)
                .map(|j| {
                    let terms = (0..columns).map(|i| {
                        i128::from(values[k * columns + i]) * i128::from(inputs[i][j]) % q
                    });
                    terms.sum::<i128>().rem_euclid(q) as u64
                })
                .collect()
        })
        .collect();
    let weights = Weights::new(rows, columns, &values).expect("weights in range");
    for backend in Backend::available() {
        let actual = backend.run(|| product(&weights, &inputs, length, m)).expect("available");
        let what = format!("{rows} x {columns} x {length}, {bits} bits, q = {q}");
        assert!(actual == expected, "{} on {what}", backend.name());
    }
}

#[test]
fn every_shape() {
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("a prime")[0]).expect("a modulus");
    // Around the sizes of tiles, 3 outputs and 4, 8 or 32 coefficients.
    for rows in [0, 1, 2, 3, 4, 7] {
        for columns in [0, 1, 5, 64] {
            for length in [0, 1, 4, 9, 31, 32, 33, 100] {
                check(rows, columns, length, 20, &m);
            }
        }
    }
}

#[test]
fn every_width() {
    // At each width the sums of doubles and of 52-bit halves come as near to their limits as they
    // may; 31 bits cut residues in three, 22 are the last that cut them in two.
    let narrow = [2, 3, 65_537, (1 << 40) - 87].map(|q| Modulus::new(q).expect("a modulus"));
    let wide = [(1 << 50) - 27, (1 << 50) + 1, (1 << 62) - 1].map(|q| Modulus::new(q).expect("q"));
    for m in narrow.iter().chain(&wide) {
        for bits in [1, 16, 20, 21, 22, 23, 24, 31] {
            check(2, 300, 40, bits, m);
        }
    }
}

#[test]
fn sums_at_their_limits() {
    // (q - 1) w for the largest weights, 9000 times: the largest sums that a row can have, in both
    // signs.
    let q = (1u64 << 50) - 27;
    let m = Modulus::new(q).expect("a modulus");
    let columns = 9000;
    let inputs = vec![vec![q - 1; 40]; columns];
    for bits in [20, 22, 23, 31] {
        let top = (1i64 << bits) - 1;
        let values: Vec<i64> = [top, -top].iter().flat_map(|&w| vec![w; columns]).collect();
        let weights = Weights::new(2, columns, &values).expect("weights in range");
        let sum = (columns as i64 * top) as u64 % q;
        for backend in Backend::available() {
            let actual = backend.run(|| product(&weights, &inputs, 40, &m)).expect("available");
            assert_eq!(actual, [vec![q - sum; 40], vec![sum; 40]], "{}", backend.name());
        }
    }
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn many_threads_give_the_same() {
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("a prime")[0]).expect("a modulus");
    let (rows, columns, length) = (5, 33, 5000);
    let weights = Weights::new(rows, columns, &weights(rows, columns, 18)).expect("weights");
    let inputs = residues(&m, columns, length);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| product(&weights, &inputs, length, &m))
    };
    let expected = on(1);
    assert!(on(3) == expected);
    assert!(on(8) == expected);
}

#[test]
fn refuses_what_does_not_fit() {
    assert_eq!(Weights::new(2, 3, &[0; 5]), Err(ArithError::Length { expected: 6, actual: 5 }));
    for value in [1i64 << 31, -(1 << 31), i64::MIN] {
        let error = Weights::new(1, 2, &[1, value]).expect_err("too large");
        assert_eq!(error, ArithError::Weight { index: 1, value });
        assert!(error.to_string().contains("below 2^31"));
    }
    let weights = Weights::new(1, 2, &[(1 << 31) - 1, -1]).expect("the largest");
    assert_eq!((weights.bits(), weights.row(0)), (31, &[i32::MAX, -1][..]));
}

#[test]
#[should_panic(expected = "residues of an input")]
fn refuses_inputs_of_another_length() {
    let weights = Weights::new(1, 2, &[1, 2]).expect("weights");
    let m = Modulus::new(97).expect("a modulus");
    multiply(&weights, &[&[1, 2], &[1]], &mut [&mut [0, 0]], &m);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn agrees_with_integers(
        q in 2u64..1 << 50,
        rows in 1usize..6,
        columns in 1usize..80,
        length in 1usize..80,
        bits in 1u32..=31,
    ) {
        check(rows, columns, length, bits, &Modulus::new(q).expect("a modulus"));
    }
}
