//! Every operation at every level of a chain, in both rings, against double precision; each
//! result's error is compared with the ciphertext's own estimate and bound.

use super::support::{Owner, RINGS, numbers, rotated, zip};
use ciphervec_he_secret::ckks::{
    BilinearForm, Complex, Encoding, KeyPlan, PlainMatrix, Plaintext, Ring,
};

const LEVELS: usize = 4;

#[test]
fn fresh_ciphertexts_decrypt_under_both_keys() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let public = owner.key.public_key().unwrap();
        for slots in [1, 2, 64, owner.params.max_slots()] {
            let values = numbers(&owner.params, slots, 1);
            for level in 0..=LEVELS {
                owner.check("secret", &owner.encrypt(&values, level), &values);
                let encoding = Encoding { level: Some(level), ..Encoding::default() };
                let plain =
                    Plaintext::encode_complex_with(&owner.params, &values, &encoding).unwrap();
                owner.check("public", &public.encrypt(&plain).unwrap(), &values);
                let seeded = owner.key.encrypt_seeded(&plain).unwrap();
                owner.check("seeded", &seeded.expand(), &values);
            }
        }
    }
}

#[test]
fn sums_need_no_keys() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = ciphervec_he_secret::ckks::Evaluator::without_keys(owner.params.clone());
        let slots = owner.params.max_slots();
        let (x, y) = (numbers(&owner.params, slots, 1), numbers(&owner.params, slots, 2));
        for level in 0..=LEVELS {
            let (a, b) = (owner.encrypt(&x, level), owner.encrypt(&y, level));
            let sum = evaluator.add(&a, &b).unwrap();
            owner.check("sum", &sum, &zip(&x, &y, |x, y| x + y));
            let difference = evaluator.sub(&a, &b).unwrap();
            owner.check("difference", &difference, &zip(&x, &y, |x, y| x - y));
            owner.check("negation", &evaluator.negate(&a), &zip(&x, &y, |x, _| -x));
            let encoding = Encoding { level: Some(level), ..Encoding::default() };
            let plain = Plaintext::encode_complex_with(&owner.params, &y, &encoding).unwrap();
            let sum = evaluator.add_plain(&a, &plain).unwrap();
            owner.check("plain sum", &sum, &zip(&x, &y, |x, y| x + y));
            let difference = evaluator.sub_plain(&a, &plain).unwrap();
            owner.check("plain difference", &difference, &zip(&x, &y, |x, y| x - y));
            let sum = evaluator.add_scalar(&a, -0.75).unwrap();
            owner.check("scalar sum", &sum, &zip(&x, &y, |x, _| x + Complex::from(-0.75)));
            let triple = evaluator.multiply_integer(&a, -3).unwrap();
            owner.check("integer", &triple, &zip(&x, &y, |x, _| x.scale(-3.0)));
            if ring == Ring::Standard {
                let sum = evaluator.add_scalar(&a, Complex::new(0.5, -2.0)).unwrap();
                let expected = zip(&x, &y, |x, _| x + Complex::new(0.5, -2.0));
                owner.check("complex sum", &sum, &expected);
                let product = evaluator.multiply_gaussian(&a, 2, -1).unwrap();
                let expected = zip(&x, &y, |x, _| x * Complex::new(2.0, -1.0));
                owner.check("Gaussian integer", &product, &expected);
                let product = evaluator.multiply_by_i(&a).unwrap();
                owner.check("i", &product, &zip(&x, &y, |x, _| x * Complex::new(0.0, 1.0)));
            }
        }
    }
}

#[test]
fn products_take_one_level_each() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let slots = owner.params.max_slots();
        let (x, y) = (numbers(&owner.params, slots, 1), numbers(&owner.params, slots, 2));
        for level in 1..=LEVELS {
            let (a, b) = (owner.encrypt(&x, level), owner.encrypt(&y, level));
            let expected = zip(&x, &y, |x, y| x * y);
            let product = evaluator.multiply(&a, &b).unwrap();
            assert_eq!((product.degree(), product.level()), (2, level));
            owner.check("degree 2", &product, &expected);
            let relinearised = evaluator.relinearise(&product).unwrap();
            assert_eq!((relinearised.degree(), relinearised.level()), (1, level));
            owner.check("relinearised", &relinearised, &expected);
            let rescaled = evaluator.rescale(&product).unwrap();
            owner.check("degree 2, rescaled", &rescaled, &expected);
            let all = evaluator.mul(&a, &b).unwrap();
            assert_eq!((all.degree(), all.level()), (1, level - 1));
            assert_eq!(all.scale(), owner.params.scale(level - 1));
            owner.check("product", &all, &expected);
            let square = evaluator.normalise(&evaluator.square(&a).unwrap()).unwrap();
            owner.check("square", &square, &zip(&x, &x, |x, y| x * y));
            let twice = evaluator.add(&product, &evaluator.square(&b).unwrap()).unwrap();
            let expected = zip(&x, &y, |x, y| x * y + y * y);
            owner.check("sum of products", &evaluator.normalise(&twice).unwrap(), &expected);
            let plain = evaluator.multiply_complex_values(&a, &y).unwrap();
            owner.check("plain product", &plain, &zip(&x, &y, |x, y| x * y));
            let plain = evaluator.rescale(&plain).unwrap();
            let relative = plain.scale() / owner.params.scale(level - 1) - 1.0;
            assert!(relative.abs() < 1e-14);
            owner.check("plain product, rescaled", &plain, &zip(&x, &y, |x, y| x * y));
            let scaled = evaluator.mul_scalar(&a, -0.3).unwrap();
            owner.check("scalar", &scaled, &zip(&x, &y, |x, _| x.scale(-0.3)));
        }
    }
}

#[test]
fn rotations_move_slots_at_every_level() {
    for ring in RINGS {
        for digits in [1, 2, 3, 5] {
            let owner = Owner::new(ring, LEVELS, digits);
            let steps = [1, -1, 3, 100, -37];
            let mut plan = KeyPlan::new().rotations(steps);
            if ring == Ring::Standard {
                plan = plan.conjugate();
            }
            let evaluator = owner.evaluator(&plan);
            let x = numbers(&owner.params, owner.params.max_slots(), 1);
            for level in 0..=LEVELS {
                let a = owner.encrypt(&x, level);
                let digits = evaluator.decompose(&a).unwrap();
                let hoisted = evaluator.rotate_hoisted(&digits, &steps).unwrap();
                for (steps, hoisted) in steps.into_iter().zip(hoisted) {
                    let expected = rotated(&x, steps);
                    let plain = evaluator.rotate(&a, steps).unwrap();
                    owner.check("rotation", &plain, &expected);
                    assert_eq!(plain, hoisted);
                }
                if ring == Ring::Standard {
                    let conjugate = evaluator.conjugate(&a).unwrap();
                    owner.check("conjugate", &conjugate, &zip(&x, &x, |x, _| x.conj()));
                }
            }
        }
    }
}

#[test]
fn sparse_slots_rotate_among_themselves_and_sum_up() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let slots = 64;
        let evaluator = owner.evaluator(&KeyPlan::new().inner_sum(slots));
        let x = numbers(&owner.params, slots, 1);
        let a = owner.encrypt(&x, 2);
        owner.check("rotation", &evaluator.rotate(&a, 4 - 64).unwrap(), &rotated(&x, 4));
        let sum = evaluator.inner_sum(&a, 16).unwrap();
        let expected: Vec<Complex> = (0..64)
            .map(|j| (0..16).fold(Complex::default(), |sum, k| sum + x[(j + k) % 64]))
            .collect();
        owner.check("sum", &sum, &expected);
    }
}

#[test]
fn inner_products_are_reduced_once() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let slots = owner.params.max_slots();
        let x: Vec<_> = (0..9).map(|i| numbers(&owner.params, slots, i)).collect();
        let y: Vec<_> = (0..9).map(|i| numbers(&owner.params, slots, 20 + i)).collect();
        let products = x.iter().zip(&y).map(|(x, y)| zip(x, y, |x, y| x * y));
        let expected = products.reduce(|a, b| zip(&a, &b, |a, b| a + b)).unwrap();
        for level in 1..=LEVELS {
            let a: Vec<_> = x.iter().map(|x| owner.encrypt(x, level)).collect();
            let b: Vec<_> = y.iter().map(|y| owner.encrypt(y, level)).collect();
            let sum = evaluator.inner_product(&a, &b, 9.0).unwrap();
            assert_eq!((sum.degree(), sum.level(), sum.magnitude()), (2, level, 9.0));
            owner.check("inner product", &sum, &expected);
            owner.check("normalised", &evaluator.normalise(&sum).unwrap(), &expected);
            let low = evaluator.drop_to(&a[0], level - 1).unwrap();
            assert!(evaluator.inner_product(&[low], &b[..1], 1.0).is_err());
            assert!(evaluator.inner_product(&a[..2], &b[..1], 1.0).is_err());
            assert!(evaluator.inner_product(&[], &[], 1.0).is_err());
            assert!(evaluator.inner_product(&[sum], &b[..1], 1.0).is_err());
        }
        let a = [owner.encrypt(&x[0], 0)];
        assert!(evaluator.inner_product(&a, &a, 1.0).is_err());
    }
}

#[test]
fn bilinear_forms_are_products_of_products() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let slots = owner.params.max_slots();
        let x: Vec<_> = (0..4).map(|i| numbers(&owner.params, slots, i)).collect();
        let y: Vec<_> = (0..6).map(|i| numbers(&owner.params, slots, 20 + i)).collect();
        let one = vec![Complex::new(1.0, 0.0); slots];
        for (level, lone) in [(1, 0), (2, 1), (LEVELS, 1)] {
            let form = |k: usize| {
                let weight =
                    |a: usize, b: usize| ((k * 13 + a * 5 + b * 3) % 11) as f64 / 8.0 - 0.6;
                let rows: Vec<Vec<f64>> =
                    (0..4 + lone).map(|a| (0..6).map(|b| weight(a, b)).collect()).collect();
                let constants: Vec<f64> = (0..4 + lone).map(|a| weight(a, 7)).collect();
                let inner = rows.iter().zip(&constants).map(|(row, constant)| {
                    let start = one.iter().map(|one| one.scale(*constant)).collect::<Vec<_>>();
                    row.iter()
                        .zip(&y)
                        .fold(start, |sum, (w, y)| zip(&sum, y, |s, y| s + y.scale(*w)))
                });
                let factors = (0..lone).map(|_| &one).chain(&x);
                let products = factors.zip(inner).map(|(x, inner)| zip(x, &inner, |x, s| x * s));
                let expected = products.reduce(|a, b| zip(&a, &b, |a, b| a + b)).unwrap();
                let scales = vec![f64::exp2(8.0); rows.len()];
                let matrix = PlainMatrix::with_scales(&rows, &scales).unwrap();
                (BilinearForm { matrix, constants, magnitude: 32.0 }, expected)
            };
            let (forms, expected): (Vec<_>, Vec<_>) = (0..3).map(form).unzip();
            let a: Vec<_> = x.iter().map(|x| owner.encrypt(x, level)).collect();
            let b: Vec<_> = y.iter().map(|y| owner.encrypt(y, level)).collect();
            let mut sums = Vec::new();
            // Level 1 has 90 bits, of which this takes all but the sign.
            if level == 1 {
                let wide = BilinearForm { magnitude: 64.0, ..forms[0].clone() };
                assert!(evaluator.add_bilinear(&mut sums, &[wide], &a, &b).is_err());
                continue;
            }
            evaluator.add_bilinear(&mut sums, &forms, &a, &b).unwrap();
            for (sum, expected) in sums.iter().zip(&expected) {
                assert_eq!((sum.degree(), sum.level(), sum.magnitude()), (2, level, 32.0));
                owner.check("bilinear form", sum, expected);
            }
            evaluator.add_bilinear(&mut sums, &forms, &a, &b).unwrap();
            for (sum, expected) in sums.iter().zip(&expected) {
                let twice: Vec<Complex> = expected.iter().map(|value| value.scale(2.0)).collect();
                owner.check("twice", &evaluator.normalise(sum).unwrap(), &twice);
            }
            assert!(evaluator.add_bilinear(&mut sums, &forms, &a, &b[..5]).is_err());
            assert!(evaluator.add_bilinear(&mut sums, &forms, &a[..2], &b).is_err());
            assert!(evaluator.add_bilinear(&mut sums, &forms[..2], &a, &b).is_err());
            assert!(evaluator.add_bilinear(&mut sums, &forms, &[], &b).is_err());
            let low: Vec<_> = b.iter().map(|b| evaluator.drop_to(b, level - 1).unwrap()).collect();
            assert!(evaluator.add_bilinear(&mut Vec::new(), &forms, &a, &low).is_err());
        }
    }
}

#[test]
fn twice_a_product_less_something() {
    for ring in RINGS {
        let owner = Owner::new(ring, LEVELS, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let slots = owner.params.max_slots();
        let [x, y, z] = [1, 2, 3].map(|seed| numbers(&owner.params, slots, seed));
        let twice = zip(&x, &y, |x, y| (x * y).scale(2.0));
        for level in 1..=LEVELS {
            let [a, b] = [&x, &y].map(|values| owner.encrypt(values, level));
            let one = evaluator.double_product(&a, &b, None).unwrap();
            owner.check("2ab - 1", &one, &zip(&twice, &z, |t, _| t - Complex::from(1.0)));
            for above in level..=LEVELS {
                let c = owner.encrypt(&z, above);
                let less = evaluator.double_product(&a, &b, Some(&c)).unwrap();
                assert_eq!((less.degree(), less.level()), (2, level));
                let expected = zip(&twice, &z, |t, z| t - z);
                owner.check("2ab - c", &less, &expected);
                owner.check("rescaled", &evaluator.normalise(&less).unwrap(), &expected);
            }
            let low = owner.encrypt(&z, level - 1);
            assert!(evaluator.double_product(&a, &b, Some(&low)).is_err());
            assert!(evaluator.double_product(&one, &b, None).is_err());
            assert!(evaluator.double_product(&a, &b, Some(&one)).is_err());
        }
    }
}
