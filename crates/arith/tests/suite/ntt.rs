//! The transform against the schoolbook product, its definition and its stated ranges.

use ciphervec_arith::{Backend, Modulus, NttTable, Stream, ntt_primes, poly};

fn random(m: &Modulus, n: usize, stream: u64) -> Vec<u64> {
    let mut out = vec![0; n];
    Stream::new(&[7; 32], stream).uniform(m, &mut out);
    out
}

/// The product modulo `X^N + 1`, by definition, in plain 128-bit arithmetic.
fn schoolbook(a: &[u64], b: &[u64], q: u64) -> Vec<u64> {
    let n = a.len();
    let mut out = vec![0u64; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let p = (u128::from(x) * u128::from(y) % u128::from(q)) as u64;
            let k = (i + j) % n;
            let term = if i + j < n { p } else { (q - p) % q };
            out[k] = (out[k] + term) % q;
        }
    }
    out
}

#[test]
fn multiplies_like_the_schoolbook() {
    for (n, bits) in [(1 << 10, 50), (1 << 11, 50), (1 << 11, 30), (1 << 10, 14)] {
        let q = ntt_primes(bits, n, 1).expect("prime")[0];
        let table = NttTable::new(n, q).expect("table");
        let m = *table.modulus();
        let (a, b) = (random(&m, n, 1), random(&m, n, 2));
        let expected = schoolbook(&a, &b, q);
        for backend in Backend::available() {
            let (mut x, mut y) = (a.clone(), b.clone());
            table.forward_with(backend, &mut x);
            table.forward_with(backend, &mut y);
            poly::mul_assign(&mut x, &y, &m);
            table.inverse_with(backend, &mut x);
            assert_eq!(x, expected, "{} N = {n} q = {q}", backend.name());
        }
    }
}

#[test]
fn gives_the_coefficients_of_powers_alone() {
    for (n, bits) in [(1 << 10, 14), (1 << 12, 50), (1 << 14, 50)] {
        let table = NttTable::new(n, ntt_primes(bits, n, 1).expect("prime")[0]).expect("table");
        let values = random(table.modulus(), n, 4);
        let mut whole = values.clone();
        table.inverse(&mut whole);
        for count in [1, 2, 16, n / 2, n] {
            let runs = values.chunks(n / count);
            let sum = |run: &[u64]| run.iter().fold(0, |sum, &x| table.modulus().add(sum, x));
            let mut some: Vec<u64> = runs.map(sum).collect();
            table.inverse_of_runs(&mut some);
            let expected: Vec<u64> = whole.iter().step_by(n / count).copied().collect();
            assert_eq!(some, expected, "{count} of {n}");
        }
    }
}

#[test]
fn evaluates_at_odd_powers_of_the_root_in_reversed_order() {
    for log in [10, 12, 13] {
        let n = 1usize << log;
        let q = ntt_primes(50, n, 1).expect("prime")[0];
        let table = NttTable::new(n, q).expect("table");
        let m = *table.modulus();
        assert_eq!(m.pow(table.root(), n as u64), q - 1);
        let f = random(&m, n, 3);
        for backend in Backend::available() {
            let mut values = f.clone();
            table.forward_with(backend, &mut values);
            for i in [0usize, 1, 2, 5, n / 2, n - 1] {
                let exponent = 2 * (i.reverse_bits() >> (usize::BITS - log)) + 1;
                let point = m.pow(table.root(), exponent as u64);
                let value = f.iter().rev().fold(0, |acc, &c| m.add(m.mul(acc, point), c));
                assert_eq!(values[i], value, "{} N = {n} index {i}", backend.name());
            }
        }
    }
}

#[test]
fn inverse_undoes_forward_at_every_degree() {
    for log in 10..=17 {
        let n = 1usize << log;
        for q in [ntt_primes(50, n, 1).expect("prime")[0], ntt_primes(36, n, 1).expect("prime")[0]]
        {
            let table = NttTable::new(n, q).expect("table");
            let mut inputs = vec![vec![0; n], vec![q - 1; n], random(table.modulus(), n, 4)];
            inputs.push((0..n).map(|i| if i % 2 == 0 { q - 1 } else { 0 }).collect());
            for input in inputs {
                let mut expected = input.clone();
                table.forward_with(Backend::Portable, &mut expected);
                for backend in Backend::available() {
                    let mut x = input.clone();
                    table.forward_with(backend, &mut x);
                    assert!(x == expected, "{} forward N = {n} q = {q}", backend.name());
                    table.inverse_with(backend, &mut x);
                    assert!(x == input, "{} inverse N = {n} q = {q}", backend.name());
                }
            }
        }
    }
}

#[test]
fn lazy_transforms_keep_their_ranges_and_classes() {
    for n in [1usize << 10, 1 << 12, 1 << 15] {
        let q = ntt_primes(50, n, 1).expect("prime")[0];
        let table = NttTable::new(n, q).expect("table");
        let residues = random(table.modulus(), n, 5);
        for backend in Backend::available() {
            let mut expected = residues.clone();
            table.forward_with(backend, &mut expected);
            for lift in [0, 1, 2, 3] {
                let mut x: Vec<u64> = residues.iter().map(|r| r + lift * q).collect();
                table.forward_lazy_with(backend, &mut x);
                assert!(x.iter().all(|&r| r < 4 * q), "{} forward range", backend.name());
                assert!(x.iter().zip(&expected).all(|(r, e)| r % q == *e));
            }
            for lift in [0, 1] {
                let mut x: Vec<u64> = expected.iter().map(|r| r + lift * q).collect();
                table.inverse_lazy_with(backend, &mut x);
                assert!(x.iter().all(|&r| r < 2 * q), "{} inverse range", backend.name());
                assert!(x.iter().zip(&residues).all(|(r, e)| r % q == *e));
            }
        }
    }
}

#[test]
fn automorphisms_permute_the_values() {
    let n = 1 << 11;
    let table = NttTable::new(n, ntt_primes(50, n, 1).expect("prime")[0]).expect("table");
    let m = *table.modulus();
    let f = random(&m, n, 6);
    let mut values = f.clone();
    table.forward(&mut values);
    for galois in [1, 3, 5, n as u64 + 1, 2 * n as u64 - 1, 4 * n as u64 + 7] {
        let (mut image, mut permuted) = (vec![0; n], vec![0; n]);
        poly::automorphism(&mut image, &f, galois, &m);
        table.forward(&mut image);
        poly::permute(&mut permuted, &values, &table.automorphism_permutation(galois));
        assert_eq!(image, permuted, "X -> X^{galois}");
    }
}

/// A conjugate-invariant polynomial with all its 2N coefficients: `X^-j = -X^(2N-j)`.
fn written_out(a: &[u64], m: &Modulus) -> Vec<u64> {
    let mut out = vec![0; 2 * a.len()];
    out[..a.len()].copy_from_slice(a);
    for (j, &x) in a.iter().enumerate().skip(1) {
        out[2 * a.len() - j] = m.neg(x);
    }
    out
}

#[test]
fn conjugate_invariant_polynomials_multiply_as_in_the_big_ring() {
    let n = 1 << 10;
    for bits in [50, 30] {
        let q = ntt_primes(bits, 2 * n, 1).expect("prime")[0];
        let table = NttTable::conjugate_invariant(n, q).expect("table");
        let m = *table.modulus();
        assert!(table.is_conjugate_invariant());
        let (a, b) = (random(&m, n, 11), random(&m, n, 12));
        let product = schoolbook(&written_out(&a, &m), &written_out(&b, &m), q);
        assert_eq!(product, written_out(&product[..n], &m));
        for backend in Backend::available() {
            let (mut x, mut y) = (a.clone(), b.clone());
            table.forward_with(backend, &mut x);
            table.forward_with(backend, &mut y);
            poly::mul_assign(&mut x, &y, &m);
            table.inverse_with(backend, &mut x);
            assert_eq!(x, product[..n], "{} q = {q}", backend.name());
        }
    }
}

#[test]
fn conjugate_invariant_values_are_those_of_the_big_ring() {
    for log in [10, 11, 13] {
        let n = 1usize << log;
        let q = ntt_primes(50, 2 * n, 1).expect("prime")[0];
        let table = NttTable::conjugate_invariant(n, q).expect("table");
        let m = *table.modulus();
        assert_eq!(m.pow(table.root(), 2 * n as u64), q - 1);
        let f = random(&m, n, 13);
        let big = written_out(&f, &m);
        for backend in Backend::available() {
            let mut values = f.clone();
            table.forward_with(backend, &mut values);
            for i in [0usize, 1, 2, 5, n / 2, n - 1] {
                let exponent = 4 * (i.reverse_bits() >> (usize::BITS - log)) + 1;
                let point = m.pow(table.root(), exponent as u64);
                let value = big.iter().rev().fold(0, |acc, &c| m.add(m.mul(acc, point), c));
                assert_eq!(values[i], value, "{} N = {n} index {i}", backend.name());
            }
        }
    }
}

#[test]
fn conjugate_invariant_transforms_agree_at_every_degree() {
    for log in 10..=17 {
        let n = 1usize << log;
        let q = ntt_primes(50, 2 * n, 1).expect("prime")[0];
        let table = NttTable::conjugate_invariant(n, q).expect("table");
        for input in [vec![q - 1; n], random(table.modulus(), n, 14)] {
            let mut expected = input.clone();
            table.forward_with(Backend::Portable, &mut expected);
            for backend in Backend::available() {
                let mut x = input.clone();
                table.forward_with(backend, &mut x);
                assert!(x == expected, "{} forward N = {n}", backend.name());
                table.inverse_with(backend, &mut x);
                assert!(x == input, "{} inverse N = {n}", backend.name());
                // The lazy ones, from the top of their ranges.
                let mut x: Vec<u64> = input.iter().map(|r| r + 3 * q).collect();
                table.forward_lazy_with(backend, &mut x);
                assert!(x.iter().zip(&expected).all(|(r, e)| *r < 4 * q && r % q == *e));
                let mut x: Vec<u64> = expected.iter().map(|r| r + q).collect();
                table.inverse_lazy_with(backend, &mut x);
                assert!(x.iter().zip(&input).all(|(r, e)| *r < 2 * q && r % q == *e));
            }
        }
    }
}

#[test]
fn automorphisms_permute_conjugate_invariant_values() {
    let n = 1 << 10;
    let q = ntt_primes(50, 2 * n, 1).expect("prime")[0];
    let table = NttTable::conjugate_invariant(n, q).expect("table");
    let m = *table.modulus();
    let f = random(&m, n, 15);
    let mut values = f.clone();
    table.forward(&mut values);
    let order = 4 * n as u64;
    for galois in [1, 3, 5, 25, 2 * n as u64 + 1, order - 1, order - 5, order + 3] {
        let mut image = vec![0; 2 * n];
        poly::automorphism(&mut image, &written_out(&f, &m), galois, &m);
        assert_eq!(image, written_out(&image[..n], &m));
        let mut image = image[..n].to_vec();
        table.forward(&mut image);
        let perm = table.automorphism_permutation(galois);
        assert_eq!(perm, table.automorphism_permutation(order - galois % order));
        let mut permuted = vec![0; n];
        poly::permute(&mut permuted, &values, &perm);
        assert_eq!(image, permuted, "X -> X^{galois}");
    }
}

#[test]
fn refuses_what_it_cannot_transform() {
    let q = ntt_primes(50, 1 << 12, 1).expect("prime")[0];
    for degree in [0, 512, 1 << 18, 3000] {
        assert!(NttTable::new(degree, q).is_err());
    }
    // Not prime, too large, prime but not 1 modulo 2N.
    for modulus in [q - 2, ntt_primes(51, 1 << 12, 1).expect("prime")[0], 1_000_003] {
        assert!(NttTable::new(1 << 12, modulus).is_err());
    }
    // 1 modulo 2N but not modulo 4N.
    let odd = ntt_primes(40, 1 << 12, 20).expect("primes").into_iter().find(|q| q % (1 << 14) != 1);
    assert!(NttTable::conjugate_invariant(1 << 12, odd.expect("one of twenty")).is_err());
}
