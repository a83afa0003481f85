//! Polynomial operations against their definitions.

use ciphervec_arith::{Modulus, poly};
use proptest::prelude::*;

const Q: u64 = 1_125_899_906_826_241;

fn m() -> Modulus {
    Modulus::new(Q).expect("a modulus")
}

/// `a X^e` one step at a time: multiplying by X moves everything up and turns the top coefficient
/// around.
fn shifted(a: &[u64], steps: usize) -> Vec<u64> {
    let mut out = a.to_vec();
    for _ in 0..steps {
        out.rotate_right(1);
        out[0] = (Q - out[0]) % Q;
    }
    out
}

#[test]
fn monomials_shift_and_change_sign() {
    let a: Vec<u64> = vec![1, 0, Q - 1, 7, 8, 9, 10, 11];
    for exponent in -40i64..40 {
        let mut out = vec![0; 8];
        poly::mul_monomial(&mut out, &a, exponent, &m());
        assert_eq!(out, shifted(&a, exponent.rem_euclid(16) as usize), "X^{exponent}");
    }
}

#[test]
fn automorphisms_substitute() {
    let a: Vec<u64> = vec![5, 0, Q - 1, 7, 8, 9, 10, 11];
    for galois in [1u64, 3, 5, 7, 9, 15, 17, 1001] {
        // a(X^g) = sum_i a_i (X^g)^i, each term shifted by the definition above.
        let mut expected = vec![0u64; 8];
        for (i, &x) in a.iter().enumerate() {
            let mut term = vec![0; 8];
            term[0] = x;
            let term = shifted(&term, (galois as usize * i) % 16);
            poly::add_assign(&mut expected, &term, &m());
        }
        let mut out = vec![0; 8];
        poly::automorphism(&mut out, &a, galois, &m());
        assert_eq!(out, expected, "X -> X^{galois}");
    }
}

#[test]
#[should_panic(expected = "differ in length")]
fn refuses_polynomials_of_different_lengths() {
    poly::add_assign(&mut [1, 2, 3], &[1, 2], &m());
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_128_bit_integers(
        q in 2u64..1 << 62,
        words in proptest::collection::vec(any::<(u64, u64, u64)>(), 0..50),
        s: u64,
    ) {
        let m = Modulus::new(q).expect("a modulus");
        let column = |f: fn(&(u64, u64, u64)) -> u64| -> Vec<u64> {
            words.iter().map(|w| f(w) % q).collect()
        };
        let (a, b, c) = (column(|w| w.0), column(|w| w.1), column(|w| w.2));
        let check = |actual: &[u64], f: &dyn Fn(u128, u128, u128) -> u128| {
            for (i, &x) in actual.iter().enumerate() {
                let expected = f(a[i].into(), b[i].into(), c[i].into()) % u128::from(q);
                prop_assert_eq!(u128::from(x), expected);
            }
            Ok(())
        };
        let wide = u128::from(q);
        let mut x = a.clone();
        poly::add_assign(&mut x, &b, &m);
        check(&x, &|a, b, _| a + b)?;
        x.copy_from_slice(&a);
        poly::sub_assign(&mut x, &b, &m);
        check(&x, &|a, b, _| a + wide - b)?;
        x.copy_from_slice(&a);
        poly::neg_assign(&mut x, &m);
        check(&x, &|a, _, _| wide - a)?;
        x.copy_from_slice(&a);
        poly::mul_assign(&mut x, &b, &m);
        check(&x, &|a, b, _| a * b)?;
        x.copy_from_slice(&a);
        poly::mul_add_assign(&mut x, &b, &c, &m);
        check(&x, &|a, b, c| a + b * c)?;
        x.copy_from_slice(&a);
        poly::scalar_mul_assign(&mut x, s, &m);
        check(&x, &|a, _, _| a * u128::from(s % q))?;
        poly::dot(&mut x, &[&a, &b, &c], &[&b, &c, &a], &m);
        check(&x, &|a, b, c| a * b % wide + b * c % wide + c * a % wide)?;
        if let (Some(&first), Some(&last)) = (a.first(), b.last()) {
            poly::dot_repeated(&mut x, &[&b, &c], &[&[first], &[last]], &m);
            let [first, last] = [first, last].map(u128::from);
            check(&x, &|_, b, c| b * first % wide + c * last % wide)?;
        }
    }
}
