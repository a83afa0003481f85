//! Levels and scales: operands of any two levels meet, what was done is said, and what cannot be
//! done is an error.

use super::support::{Owner, RINGS, numbers, zip};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Evaluator, KeyPlan, Plaintext, Ring,
};
use proptest::prelude::*;

const LEVELS: usize = 4;

#[test]
fn operands_of_any_two_levels_are_added_at_the_lower_one() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let slots = owner.params.max_slots();
        let (x, y) = (numbers(&owner.params, slots, 1), numbers(&owner.params, slots, 2));
        for high in 0..=LEVELS {
            for low in 0..=high {
                let (a, b) = (owner.encrypt(&x, high), owner.encrypt(&y, low));
                for (sum, sign) in
                    [(evaluator.add(&a, &b).unwrap(), 1.0), (evaluator.sub(&a, &b).unwrap(), -1.0)]
                {
                    assert_eq!((sum.level(), sum.scale()), (low, owner.params.scale(low)));
                    owner.check("sum", &sum, &zip(&x, &y, |x, y| x + y.scale(sign)));
                }
                let product = evaluator.multiply(&b, &a);
                if low == 0 {
                    assert!(matches!(product, Err(Error::Level { .. })));
                } else {
                    let product = evaluator.normalise(&product.unwrap()).unwrap();
                    assert_eq!(
                        (product.level(), product.scale()),
                        (low - 1, owner.params.scale(low - 1))
                    );
                    owner.check("product", &product, &zip(&x, &y, |x, y| x * y));
                }
                let matched = evaluator.match_level(&a, low).unwrap();
                assert_eq!((matched.level(), matched.scale()), (low, owner.params.scale(low)));
                owner.check("matched", &matched, &x);
            }
        }
    }
}

#[test]
fn a_product_meets_an_operand_of_its_own_level() {
    let owner = Owner::new(Ring::Standard, LEVELS, 2);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    let slots = owner.params.max_slots();
    let (x, y) = (numbers(&owner.params, slots, 1), numbers(&owner.params, slots, 2));
    let (a, b) = (owner.encrypt(&x, 3), owner.encrypt(&y, 3));
    let product = evaluator.multiply(&a, &b).unwrap();
    assert!(evaluator.is_pending(&product) && !evaluator.is_pending(&a));
    let sum = evaluator.add(&product, &a).unwrap();
    assert_eq!((sum.degree(), sum.level(), sum.scale()), (2, 3, product.scale()));
    let expected = zip(&x, &y, |x, y| x * y + x);
    owner.check("sum", &evaluator.normalise(&sum).unwrap(), &expected);
    let difference = evaluator.sub(&a, &product).unwrap();
    let expected = zip(&x, &y, |x, y| x - x * y);
    owner.check("difference", &evaluator.normalise(&difference).unwrap(), &expected);
    // A factor that is due is rescaled first.
    let relinearised = evaluator.relinearise(&product).unwrap();
    let cube = evaluator.mul(&relinearised, &a).unwrap();
    assert_eq!(cube.level(), 1);
    owner.check("cube", &cube, &zip(&x, &y, |x, y| x * y * x));
    let scaled = evaluator.mul_scalar(&relinearised, 0.5).unwrap();
    owner.check("scaled", &scaled, &zip(&x, &y, |x, y| (x * y).scale(0.5)));
}

#[test]
fn what_alignment_does_is_said() {
    let owner = Owner::new(Ring::Standard, LEVELS, 2);
    let evaluator = Evaluator::without_keys(owner.params.clone());
    let x = numbers(&owner.params, 4, 1);
    let (a, b) = (owner.encrypt(&x, 4), owner.encrypt(&x, 1));
    let said = evaluator.explain_add(&a, &b).unwrap();
    assert!(said.starts_with("first: drop to level 2, multiply by "), "{said}");
    assert!(said.ends_with(", rescale; second: as it is"), "{said}");
    let product = evaluator.multiply(&a, &a).unwrap();
    let said = evaluator.explain_multiply(&product, &a);
    assert!(said.starts_with("first: rescale; second: multiply by 1099"), "{said}");
    assert_eq!(evaluator.explain_add(&a, &a).unwrap(), "first: as it is; second: as it is");
}

#[test]
fn what_cannot_be_done_is_an_error_that_says_what_is_needed() {
    let owner = Owner::new(Ring::Standard, 2, 2);
    let params = &owner.params;
    let x = numbers(params, 4, 1);
    let a = owner.encrypt(&x, 2);
    let bare = Evaluator::without_keys(params.clone());
    let said = |error: Error| error.to_string();

    let bottom = bare.drop_to(&a, 0).unwrap();
    assert!(matches!(bare.rescale(&bottom), Err(Error::Level { .. })));
    assert!(matches!(bare.multiply(&bottom, &bottom), Err(Error::Level { .. })));
    assert!(matches!(bare.multiply_scalar(&bottom, 0.5), Err(Error::Level { .. })));
    assert!(matches!(bare.multiply_values(&bottom, &[0.5]), Err(Error::Level { .. })));
    assert!(matches!(bare.drop_to(&bottom, 1), Err(Error::Range { .. })));
    assert!(matches!(bare.match_level(&bottom, 1), Err(Error::Scale { .. } | Error::Range { .. })));

    let odd = Encoding { scale: Some(1.1 * params.scale(2)), ..Encoding::default() };
    let odd = Plaintext::encode_complex_with(params, &x, &odd).unwrap();
    assert!(matches!(bare.add_plain(&a, &odd), Err(Error::Scale { .. })));
    let odd = owner.key.encrypt(&odd).unwrap();
    let error = bare.add(&a, &odd).unwrap_err();
    assert!(matches!(error, Error::Scale { .. }));
    assert!(said(error).contains("2^40.137503524 at level 2 expected, got 2^40.000000000"));

    let error = said(bare.rotate(&a, 3).unwrap_err());
    assert!(
        error.contains("rotation by 3") && error.contains("KeyPlan::rotations([3])"),
        "{error}"
    );
    let keys = owner.evaluator(&KeyPlan::new().rotations([1]).at_level(1));
    let error = said(keys.rotate(&a, 1).unwrap_err());
    assert!(error.contains("at level 2 (the one here reaches level 1)"), "{error}");
    assert!(matches!(keys.conjugate(&a), Err(Error::MissingKey { .. })));
    let square = bare.square(&a).unwrap();
    assert!(matches!(keys.relinearise(&square), Err(Error::MissingKey { .. })));
    assert!(matches!(bare.multiply(&square, &a), Err(Error::Range { .. })));
    assert!(matches!(bare.rotate(&square, 1), Err(Error::Range { .. })));
    assert!(matches!(bare.inner_sum(&a, 3), Err(Error::Range { .. })));
    assert!(matches!(bare.inner_sum(&a, 8), Err(Error::Range { .. })));

    for bad in [f64::NAN, f64::INFINITY, 1e30] {
        assert!(
            matches!(Plaintext::encode(params, &[bad]), Err(Error::Range { .. })) || bad == 1e30
        );
        assert!(matches!(bare.add_scalar(&bottom, bad), Err(Error::Range { .. })));
    }
    let low = |magnitude, slots| Encoding { level: Some(0), magnitude, slots, scale: None };
    let encode =
        |values: &[f64], encoding: &Encoding| Plaintext::encode_with(params, values, encoding);
    assert!(encode(&[1000.0], &low(None, None)).is_err());
    assert!(encode(&[1.5], &low(Some(1.0), None)).is_err());
    assert!(encode(&[1.0], &low(Some(f64::NAN), None)).is_err());
    assert!(encode(&[1.0; 3], &low(None, Some(2))).is_err());
    assert!(encode(&[1.0; 3], &low(None, Some(3))).is_err());
    assert!(encode(&[0.0; 513], &low(None, None)).is_err());
    let level = Encoding { level: Some(3), ..Encoding::default() };
    assert!(encode(&[1.0], &level).is_err());

    let real = Owner::new(Ring::ConjugateInvariant, 2, 2);
    let i = Complex::new(0.0, 1.0);
    assert!(Plaintext::encode_complex(&real.params, &[i]).is_err());
    let b = real.encrypt(&[Complex::from(1.0)], 2);
    let evaluator = Evaluator::without_keys(real.params.clone());
    assert!(evaluator.conjugate(&b).is_err() && evaluator.multiply_by_i(&b).is_err());
    assert!(evaluator.add_scalar(&b, i).is_err());
    assert!(real.key.evaluation_keys(&KeyPlan::new().conjugate()).is_err());
    assert!(matches!(evaluator.add(&a, &b), Err(Error::Parameters { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Laws of arithmetic, each side computed along its own way.
    #[test]
    fn algebra_holds(seed in 0u8..255, ring in 0..2usize, steps in -20i64..20, levels in [1..=3usize, 1..=3, 1..=3]) {
        let ring = RINGS[ring];
        let owner = Owner::new(ring, 3, 2);
        let plan = KeyPlan::new().relinearise().rotations([steps]);
        let evaluator = owner.evaluator(&plan);
        let slots = 128;
        let x = [0, 1, 2].map(|i| numbers(&owner.params, slots, seed.wrapping_add(i)));
        let c = [0, 1, 2].map(|i| owner.encrypt(&x[i], levels[i]));
        let decrypted = |c: &Ciphertext| owner.key.decrypt(c).unwrap().decode_complex();
        let same = |a: &Ciphertext, b: &Ciphertext| {
            let pairs = decrypted(a).into_iter().zip(decrypted(b));
            pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
        };
        let add = |a: &Ciphertext, b: &Ciphertext| evaluator.add(a, b).unwrap();
        let mul = |a: &Ciphertext, b: &Ciphertext| evaluator.mul(a, b).unwrap();
        let rotate = |a: &Ciphertext| evaluator.rotate(a, steps).unwrap();
        // (a + b) c = a c + b c, (a b) = (b a), rotations of sums and products.
        let left = mul(&add(&c[0], &c[1]), &c[2]);
        let right = add(&mul(&c[0], &c[2]), &mul(&c[1], &c[2]));
        prop_assert!(same(&left, &right) < 1e-6);
        prop_assert!(same(&mul(&c[0], &c[1]), &mul(&c[1], &c[0])) < 1e-6);
        prop_assert!(same(&rotate(&add(&c[0], &c[1])), &add(&rotate(&c[0]), &rotate(&c[1]))) < 1e-6);
        prop_assert!(same(&rotate(&mul(&c[0], &c[1])), &mul(&rotate(&c[0]), &rotate(&c[1]))) < 1e-6);
        let zero = evaluator.sub(&c[0], &c[0]).unwrap();
        prop_assert!(decrypted(&zero).iter().all(|value| value.norm() == 0.0));
    }
}
