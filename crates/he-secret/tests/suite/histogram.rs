//! The histogram scheme end to end, against exact sums of integers.

use crate::rows::Rows;
use ciphervec_arith::ntt_primes;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::histogram::{
    self, DEGREE, HINT_BITS, Hint, Histogram, Masks, Opener,
};

const SEED: [u8; 32] = [4; 32];

/// Pseudorandom integers of magnitude up to `most`.
fn integers(seed: u8, count: usize, most: i64) -> Vec<i64> {
    let mut words = vec![0; count];
    Stream::new(&[seed; 32], 0).uniform_bits(32, &mut words);
    words.into_iter().map(|word| word as i64 % (2 * most + 1) - most).collect()
}

#[test]
fn sums_are_right_up_to_the_noise() {
    for word_bytes in [4, 5, 6] {
        let scheme = Histogram::new(word_bytes).unwrap();
        let master = MasterKey::from_bytes([3; 32]);
        for (rows, dimension, outputs) in
            [(1, 1, 1), (1, 1024, 1), (3, 7, 2), (65, 2048, 1), (130, 2049, 3), (5, 4096, 2)]
        {
            let masks = Masks::new(&scheme, &SEED, dimension);
            let weights = integers(1, outputs * dimension, 1000);
            // Sums of the largest magnitude that a word has room for.
            let most = (scheme.capacity() / 1000.0 / dimension as f64) as i64;
            let values = integers(2, rows * dimension, most);
            let plain = Rows { values: values.clone(), dimension };
            let (id, words) =
                histogram::seal(&scheme, &masks, &master, b"binding", &plain).unwrap();
            assert_eq!(words.len(), rows * dimension * word_bytes);

            let sums = scheme.scan(&words, rows, dimension, &weights);
            let hint = Hint::new(&scheme, &masks, &weights);
            let opened = Opener::derive(&scheme, &master, b"binding", id).open(&hint, &sums);

            let mut squares = 0.0;
            for (row, opened) in opened.chunks_exact(outputs).enumerate() {
                for (weights, opened) in weights.chunks_exact(dimension).zip(opened) {
                    let values = &values[row * dimension..][..dimension];
                    let exact: i64 = weights.iter().zip(values).map(|(w, x)| w * x).sum();
                    let norm = weights.iter().map(|w| (w * w) as f64).sum::<f64>().sqrt();
                    let error = (opened - exact) as f64 / scheme.sum_noise(norm);
                    assert!(error.abs() < 6.0, "{word_bytes} bytes, {dimension} counts: {error}");
                    squares += error * error;
                }
            }
            // The deviation of m normal numbers is off by 1/√(2m): nonces are drawn anew in every run, and six of those
            // are exceeded in one of 10^8.
            let deviation = (squares / opened.len() as f64).sqrt();
            let spread = 6.0 / (2.0 * opened.len() as f64).sqrt();
            assert!((deviation - 1.0).abs() < spread.max(0.2), "deviation {deviation}");
        }
    }
}

/// `h_j = Σ_i w_i a_(i−j)`, `a_(k−N) = −a_k`, by its definition.
#[test]
fn the_hint_is_the_transposed_product() {
    let scheme = Histogram::new(5).unwrap();
    let q = ntt_primes(50, DEGREE, 1).unwrap()[0];
    let table = ciphervec_arith::NttTable::new(DEGREE, q).unwrap();
    let mut mask = vec![0; DEGREE];
    Stream::new(&SEED, 0).uniform(table.modulus(), &mut mask);
    table.inverse(&mut mask);
    let weights = integers(7, 300, 1 << 20);
    let hint = Hint::new(&scheme, &Masks::new(&scheme, &SEED, 300), &weights);
    assert_eq!((hint.outputs(), hint.values().len()), (1, DEGREE));
    for (j, got) in hint.values().iter().enumerate() {
        let term = |(i, w): (usize, &i64)| {
            let a = i128::from(mask[(i + DEGREE - j) % DEGREE]);
            i128::from(*w) * if i < j { -a } else { a }
        };
        let sum = weights.iter().enumerate().map(term).sum::<i128>().rem_euclid(q.into());
        let exact = sum as f64 / q as f64 * f64::exp2(HINT_BITS.into());
        let error = (f64::from(*got) - exact).rem_euclid(f64::exp2(HINT_BITS.into()));
        assert!(error.min(f64::exp2(HINT_BITS.into()) - error) <= 0.5 + 1e-3, "{j}: {error}");
    }
}

/// The same document twice, and two documents of one call: other words each time, and none that
/// tell a count.
#[test]
fn equal_documents_are_sealed_under_different_secrets() {
    let scheme = Histogram::new(4).unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let masks = Masks::new(&scheme, &SEED, DEGREE);
    let plain = Rows { values: vec![0; 2 * DEGREE], dimension: DEGREE };
    let seal = || histogram::seal(&scheme, &masks, &master, b"binding", &plain).unwrap();
    let ((one, first), (other, second)) = (seal(), seal());
    assert_ne!(one, other);
    let words = |bytes: &[u8], row: usize| -> Vec<u32> {
        let all = bytes.as_chunks::<4>().0;
        all[row..].iter().step_by(2).map(|word| u32::from_le_bytes(*word)).collect()
    };
    let all = [words(&first, 0), words(&first, 1), words(&second, 0), words(&second, 1)];
    for (at, a) in all.iter().enumerate() {
        // Uniform words have a mean of half their range, up to 0.29/√N of it.
        let mean = a.iter().map(|&word| f64::from(word)).sum::<f64>() / DEGREE as f64;
        assert!((mean / f64::exp2(32.0) - 0.5).abs() < 0.05, "{mean}");
        for b in &all[..at] {
            let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!(same < 3, "{same} equal words");
            // Differences are uniform too: a secret used twice would leave only the noise.
            let near = a.iter().zip(b).filter(|(a, b)| (a.wrapping_sub(**b) as i32).abs() < 64);
            assert!(near.count() < 3);
        }
    }
}

#[test]
fn words_of_another_length_and_other_keys_are_told_apart() {
    assert!(Histogram::new(3).is_err() && Histogram::new(7).is_err());
    let ids: Vec<_> = [4, 5, 6].map(|bytes| Histogram::new(bytes).unwrap().param_id()).into();
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    assert_eq!(Hint::from_values(vec![0; DEGREE], 2), None);
    let scheme = Histogram::new(4).unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let masks = Masks::new(&scheme, &SEED, 64);
    let plain = Rows { values: vec![1 << 10; 64], dimension: 64 };
    let (id, words) = histogram::seal(&scheme, &masks, &master, b"binding", &plain).unwrap();
    let weights = vec![1; 64];
    let (hint, sums) = (Hint::new(&scheme, &masks, &weights), scheme.scan(&words, 1, 64, &weights));
    let open = |master: &MasterKey, binding: &[u8]| {
        Opener::derive(&scheme, master, binding, id).open(&hint, &sums)[0] - (64 << 10)
    };
    assert!(open(&master, b"binding").abs() < 1000);
    assert!(open(&MasterKey::from_bytes([5; 32]), b"binding").abs() > 1000);
    assert!(open(&master, b"another").abs() > 1000);
}
