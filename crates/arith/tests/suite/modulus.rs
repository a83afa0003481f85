//! Modular arithmetic against 128-bit division, primes against known ones, pairs of primes against
//! 128-bit integers.

use ciphervec_arith::{ArithError, Modulus, NttTable, RnsPair, Stream, is_prime, ntt_primes};
use proptest::prelude::*;

fn modulus(q: u64) -> Modulus {
    Modulus::new(q).expect("a modulus")
}

fn edge_moduli() -> Vec<u64> {
    let powers = (1..62).flat_map(|k| [(1u64 << k) - 1, 1 << k, (1 << k) + 1]);
    powers.chain([(1 << 62) - 1]).filter(|&q| q >= 2).collect()
}

#[test]
fn refuses_moduli_out_of_range() {
    for value in [0, 1, 1 << 62, u64::MAX] {
        assert!(
            matches!(Modulus::new(value), Err(ArithError::Modulus { value: v, .. }) if v == value)
        );
    }
}

#[test]
fn edges_of_every_size_agree_with_division() {
    for q in edge_moduli() {
        let m = modulus(q);
        let edges = [0, 1, q / 2, q - 1, q.saturating_sub(2)];
        for x in [0, 1, q - 1, q, q + 1, 2 * q - 1, u64::MAX, u64::MAX - 1, 1 << 63] {
            assert_eq!(m.reduce(x), x % q, "{x} mod {q}");
            for high in [0, 1, q, u64::MAX] {
                let wide = u128::from(high) << 64 | u128::from(x);
                assert_eq!(u128::from(m.reduce_u128(wide)), wide % u128::from(q), "{wide} mod {q}");
            }
        }
        for a in edges {
            for b in edges {
                let (wide_a, wide_b, wide_q) = (u128::from(a), u128::from(b), u128::from(q));
                let expect = |x: u128| (x % wide_q) as u64;
                assert_eq!(m.mul(a, b), expect(wide_a * wide_b), "{a} * {b} mod {q}");
                assert_eq!(m.add(a, b), expect(wide_a + wide_b), "{a} + {b} mod {q}");
                assert_eq!(m.sub(a, b), expect(wide_a + wide_q - wide_b), "{a} - {b} mod {q}");
                assert_eq!(m.mul_shoup(u64::MAX - a, &m.shoup(b)), {
                    expect(u128::from(u64::MAX - a) * wide_b)
                });
            }
            assert_eq!(m.neg(a), (q - a) % q);
            let centred = m.to_centered(a);
            assert_eq!(i128::from(centred).rem_euclid(i128::from(q)), i128::from(a));
            assert!(
                2 * i128::from(centred) <= i128::from(q)
                    && 2 * i128::from(centred) > -i128::from(q)
            );
        }
        for x in [0, 1, -1, i64::MIN, i64::MAX, -(q as i64), q as i64 - 1] {
            assert_eq!(
                i128::from(m.from_i64(x)),
                i128::from(x).rem_euclid(i128::from(q)),
                "{x} mod {q}"
            );
        }
    }
}

#[test]
fn inverses_exist_exactly_for_units() {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    for q in [2, 9, 12, 97, 1 << 20, (1 << 61) - 1, (1 << 62) - 1] {
        let m = modulus(q);
        for a in (0..40).chain([q - 1, q / 2]) {
            match m.inv(a) {
                Some(inverse) => assert_eq!(m.mul(m.reduce(a), inverse), 1, "1/{a} mod {q}"),
                None => assert_ne!(gcd(a, q), 1, "1/{a} mod {q}"),
            }
        }
    }
    assert_eq!(modulus(97).pow(5, 96), 1);
    assert_eq!(modulus(97).pow(5, 0), 1);
}

#[test]
fn decides_primality() {
    let sieve: Vec<u64> = (2..2000).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    assert_eq!((0..2000).filter(|&n| is_prime(n)).collect::<Vec<_>>(), sieve);
    // Mersenne primes, and the products of their neighbours.
    for exponent in [13, 17, 19, 31, 61] {
        assert!(is_prime((1 << exponent) - 1));
    }
    // 2^59 - 1 = 179951 * ..., strong pseudoprimes to the first bases (Pomerance, Selfridge,
    // Wagstaff; Jaeschke).
    for composite in [(1 << 59) - 1, 3_215_031_751, 3_474_749_660_383, 341_550_071_728_321] {
        assert!(!is_prime(composite), "{composite}");
    }
}

#[test]
fn lists_the_largest_ntt_primes() {
    for (bits, degree) in [(20, 1024), (30, 4096), (50, 4096), (50, 1 << 17)] {
        let primes = ntt_primes(bits, degree, 3).expect("three primes");
        let step = 2 * degree as u64;
        let expected: Vec<u64> = (1..1u64 << bits)
            .rev()
            .skip_while(|n| n % step != 1)
            .step_by(step as usize)
            .filter(|&n| is_prime(n))
            .take(3)
            .collect();
        assert_eq!(primes, expected);
    }
    assert!(matches!(ntt_primes(13, 1024, 1), Err(ArithError::Primes { found: 0, .. })));
    assert!(ntt_primes(50, 1000, 1).is_err());
    assert!(ntt_primes(63, 1024, 1).is_err());
}

#[test]
fn pairs_lift_to_the_centred_integer() {
    let primes = ntt_primes(50, 4096, 2).expect("primes");
    let tables: Vec<NttTable> =
        primes.iter().map(|&p| NttTable::new(4096, p).expect("table")).collect();
    let pair = RnsPair::new(&tables[0], &tables[1]).expect("a pair");
    let product = i128::from(primes[0]) * i128::from(primes[1]);
    let mut words = vec![0u64; 4000];
    Stream::new(&[6; 32], 0).uniform_bits(64, &mut words);
    let mut values: Vec<i128> = words
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&[a, b]| (i128::from(a) << 36 ^ i128::from(b)) % product - product / 2)
        .collect();
    values.extend([0, 1, -1, product / 2, -(product / 2), 1 << 64, -(1 << 64)]);
    let residues = |p: u64| -> Vec<u64> {
        values.iter().map(|x| x.rem_euclid(i128::from(p)) as u64).collect()
    };
    let mut out = vec![0; values.len()];
    pair.lift_wrapping(&residues(primes[0]), &residues(primes[1]), &mut out);
    let expected: Vec<u64> = values.iter().map(|&x| x as u64).collect();
    assert_eq!(out, expected);
    assert!(RnsPair::new(&tables[0], &tables[0]).is_err());
}

proptest! {
    #[test]
    fn random_operands_agree_with_division(
        q in 2u64..1 << 62,
        a: u64,
        b: u64,
        wide: u128,
        exponent in 0u64..64,
    ) {
        let m = modulus(q);
        let (x, y) = (a % q, b % q);
        prop_assert_eq!(m.reduce(a), x);
        prop_assert_eq!(u128::from(m.reduce_u128(wide)), wide % u128::from(q));
        let product = (u128::from(x) * u128::from(y) % u128::from(q)) as u64;
        prop_assert_eq!(m.mul(x, y), product);
        prop_assert_eq!(m.mul_shoup(a, &m.shoup(b)), product);
        prop_assert!(m.mul_shoup_lazy(a, &m.shoup(b)) < 2 * q);
        prop_assert_eq!(m.pow(a, exponent), (0..exponent).fold(1 % q, |acc, _| m.mul(acc, x)));
    }
}
