//! Matrices, polynomials and inverses of encrypted numbers against double precision; the levels
//! that each of them spends.

use super::support::{Owner, RINGS, numbers, rotated};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Inverse, InverseSquareRoot, KeyPlan, LinearTransform, Polynomial, Ring,
    Sign,
};

/// Decrypts and compares: `allowed` for what the method itself is off by, and the ciphertext's own
/// bound and estimate.
fn close(owner: &Owner, what: &str, actual: &Ciphertext, expected: &[Complex], allowed: f64) {
    let bound = actual.noise().bound / actual.scale() + allowed;
    let values = owner.key.decrypt(actual).unwrap().decode_complex();
    assert_eq!(values.len(), expected.len(), "{what}: slots");
    let errors: Vec<f64> = values.iter().zip(expected).map(|(a, b)| (*a - *b).norm()).collect();
    let largest = errors.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!(largest <= bound, "{what}: an error of {largest:e} is over the bound {bound:e}");
    let square = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
    // Two bits for the estimate, half a bit for both parts of complex numbers.
    let estimate = f64::exp2(actual.error_bits() + 2.5) + allowed;
    assert!(
        square.sqrt() <= estimate,
        "{what}: {:e} where {estimate:e} was estimated",
        square.sqrt()
    );
    // A bound that allows everything would prove nothing.
    assert!(estimate < 1e-4, "{what}: an estimate of {estimate:e}");
}

/// Real numbers in [low, high], both ends among them.
fn between(owner: &Owner, low: f64, high: f64) -> Vec<Complex> {
    let mut values: Vec<Complex> = numbers(&owner.params, owner.params.max_slots(), 5)
        .iter()
        .map(|z| Complex::from((low + (high - low) * (0.5 + 0.5 * z.re)).clamp(low, high)))
        .collect();
    (values[0], values[1]) = (Complex::from(low), Complex::from(high));
    values
}

fn mapped(x: &[Complex], f: impl Fn(f64) -> f64) -> Vec<Complex> {
    x.iter().map(|z| Complex::from(f(z.re))).collect()
}

/// A polynomial of this degree with coefficients of both signs.
fn coefficients(degree: usize) -> Vec<f64> {
    (0..=degree).map(|k| ((7 * k + 3) % 11) as f64 / 8.0 - 0.6).collect()
}

#[test]
fn matrices_multiply_vectors() {
    for ring in RINGS {
        let owner = Owner::new(ring, 3, 2);
        let slots = 64;
        let x = numbers(&owner.params, slots, 1);
        // Dense; a few diagonals; rows and columns that need padding.
        let dense: Vec<Vec<f64>> = (0..slots)
            .map(|j| (0..slots).map(|i| ((j * 31 + i * 17) % 23) as f64 / 23.0 - 0.5).collect())
            .collect();
        let wide: Vec<Vec<f64>> = dense[..5].iter().map(|row| row[..50].to_vec()).collect();
        for rows in [&dense, &wide] {
            for level in [1, 3] {
                let transform = LinearTransform::from_rows(&owner.params, rows, level).unwrap();
                // 64 diagonals as 8 × 8, not one rotation each.
                assert_eq!(transform.rotations().len(), 14);
                let evaluator = owner.evaluator(&transform.key_plan());
                let y = evaluator.transform(&owner.encrypt(&x, 3), &transform).unwrap();
                assert_eq!(y.level(), level - 1);
                let expected: Vec<Complex> = (0..slots)
                    .map(|j| {
                        let row = rows.get(j).map_or(&[][..], Vec::as_slice);
                        let terms = row.iter().zip(&x).map(|(m, x)| x.scale(*m));
                        terms.fold(Complex::default(), |a, b| a + b)
                    })
                    .collect();
                close(&owner, "a matrix", &y, &expected, 0.0);
            }
        }
    }
}

#[test]
fn diagonals_may_be_complex_and_few() {
    let owner = Owner::new(Ring::Standard, 2, 3);
    let slots = owner.params.max_slots();
    let x = numbers(&owner.params, slots, 1);
    let diagonals: Vec<(i64, Vec<Complex>)> =
        [0, 1, -1, 100].map(|k| (k, numbers(&owner.params, slots, (k + 2) as u8))).to_vec();
    let transform = LinearTransform::from_diagonals(&owner.params, slots, &diagonals, 2).unwrap();
    assert!(transform.rotations().len() <= 4);
    let evaluator = owner.evaluator(&transform.key_plan());
    let y = evaluator.transform(&owner.encrypt(&x, 2), &transform).unwrap();
    let mut expected = vec![Complex::default(); slots];
    for (k, diagonal) in &diagonals {
        for ((sum, d), x) in expected.iter_mut().zip(diagonal).zip(rotated(&x, *k)) {
            *sum += *d * x;
        }
    }
    close(&owner, "four diagonals", &y, &expected, 0.0);

    let low = evaluator.transform(&owner.encrypt(&x, 1), &transform).unwrap_err();
    assert!(matches!(low, Error::Level { .. }), "{low}");
    let few = evaluator.transform(&owner.encrypt(&x[..64], 2), &transform).unwrap_err();
    assert!(few.to_string().contains("512"), "{few}");
    let keyless = owner.evaluator(&KeyPlan::new().rotations([1]));
    let missing = keyless.transform(&owner.encrypt(&x, 2), &transform).unwrap_err();
    assert!(matches!(missing, Error::MissingKey { .. }), "{missing}");
    let build = |diagonals: &[(i64, Vec<Complex>)], level| {
        LinearTransform::from_diagonals(&owner.params, slots, diagonals, level)
    };
    assert!(matches!(build(&diagonals, 0), Err(Error::Level { .. })));
    assert!(build(&[], 1).is_err());
    assert!(build(&[(1, vec![Complex::default(); slots])], 1).is_err());
    assert!(build(&[(1, vec![Complex::from(1.0); 5])], 1).is_err());
    assert!(build(&[(1, x.clone()), (1 - slots as i64, x)], 1).is_err());
}

#[test]
fn polynomials_spend_the_least_levels() {
    for ring in RINGS {
        let owner = Owner::new(ring, 6, 3);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let x = between(&owner, -1.0, 1.0);
        let a = owner.encrypt(&x, 6);
        for degree in [1, 2, 3, 4, 5, 7, 8, 15, 31, 45, 63] {
            let depth = (degree as f64 + 1.0).log2().ceil() as usize;
            for polynomial in [
                Polynomial::power(&coefficients(degree)).unwrap(),
                Polynomial::chebyshev(-1.0, 1.0, &coefficients(degree)).unwrap(),
            ] {
                assert_eq!(polynomial.depth(), depth);
                let y = evaluator.polynomial(&a, &polynomial).unwrap();
                assert_eq!((y.level(), y.degree()), (6 - depth, 1), "degree {degree}");
                assert!((y.scale() / owner.params.scale(y.level()) - 1.0).abs() < 1e-12);
                let expected = mapped(&x, |x| polynomial.evaluate(x));
                close(&owner, &format!("degree {degree}"), &y, &expected, 0.0);
            }
        }
        let constant = Polynomial::power(&[0.75]).unwrap();
        let y = evaluator.polynomial(&a, &constant).unwrap();
        assert_eq!(y.level(), 6);
        close(&owner, "a constant", &y, &mapped(&x, |_| 0.75), 0.0);
    }
}

#[test]
fn sparse_and_odd_polynomials() {
    let owner = Owner::new(Ring::Standard, 5, 2);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    let x = between(&owner, -1.0, 1.0);
    let a = owner.encrypt(&x, 5);
    let with = |entries: &[(usize, f64)]| {
        let mut c = vec![0.0; 32];
        entries.iter().for_each(|&(k, value)| c[k] = value);
        c
    };
    for c in [
        with(&[(16, 1.0)]),
        with(&[(31, -0.5)]),
        with(&[(1, 0.3), (3, -0.2), (7, 0.1), (15, 0.4)]),
        with(&[(0, 2.0), (8, 1.0), (24, -1.0)]),
        with(&[(0, 1.0), (17, 1.0), (16, 1.0)]),
    ] {
        for polynomial in
            [Polynomial::power(&c).unwrap(), Polynomial::chebyshev(-1.0, 1.0, &c).unwrap()]
        {
            let y = evaluator.polynomial(&a, &polynomial).unwrap();
            assert_eq!(y.level(), 5 - polynomial.depth());
            close(&owner, "sparse", &y, &mapped(&x, |x| polynomial.evaluate(x)), 0.0);
        }
    }
}

#[test]
fn functions_on_intervals() {
    let owner = Owner::new(Ring::ConjugateInvariant, 6, 3);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    // An integer factor takes [0, 2] to [-1, 1], nothing but a level takes [-4, 4].
    for (low, high, depth) in [(0.0, 2.0, 5), (-4.0, 4.0, 6)] {
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let polynomial = Polynomial::interpolate(logistic, low, high, 31).unwrap();
        let off = polynomial.largest_error(logistic, low, high);
        assert!(off < 1e-6);
        let x = between(&owner, low, high);
        let y = evaluator.polynomial(&owner.encrypt(&x, 6), &polynomial).unwrap();
        assert_eq!(y.level(), 6 - depth);
        close(&owner, "logistic", &y, &mapped(&x, logistic), off);
    }
}

#[test]
fn pending_operands_and_missing_levels() {
    let owner = Owner::new(Ring::Standard, 3, 2);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    let x = between(&owner, -1.0, 1.0);
    let a = owner.encrypt(&x, 3);
    let square = evaluator.square(&a).unwrap();
    let polynomial = Polynomial::power(&coefficients(3)).unwrap();
    let y = evaluator.polynomial(&square, &polynomial).unwrap();
    assert_eq!(y.level(), 0);
    close(&owner, "of a product", &y, &mapped(&x, |x| polynomial.evaluate(x * x)), 0.0);
    let deep = Polynomial::power(&coefficients(8)).unwrap();
    let error = evaluator.polynomial(&a, &deep).unwrap_err();
    assert!(error.to_string().contains("4 levels"), "{error}");
    let keyless = owner.evaluator(&KeyPlan::new().rotations([1]));
    assert!(matches!(keyless.polynomial(&a, &polynomial), Err(Error::MissingKey { .. })));
    assert!(Polynomial::power(&[1.0, f64::NAN]).is_err());
    assert!(Polynomial::chebyshev(1.0, 1.0, &[1.0]).is_err());
    assert!(Polynomial::chebyshev(0.0, f64::INFINITY, &[1.0]).is_err());
}

#[test]
fn inverses_on_an_interval() {
    for ring in RINGS {
        let owner = Owner::new(ring, 10, 5);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        for (low, high, bits) in [(0.25, 1.0, 18), (0.5, 20.0, 16)] {
            let x = between(&owner, low, high);
            let a = owner.encrypt(&x, 10);
            let inverse = Inverse::new(low, high, bits).unwrap();
            let y = evaluator.inverse(&a, &inverse).unwrap();
            assert_eq!(y.level(), 10 - inverse.depth());
            let off = inverse.relative_error() / low;
            assert!(inverse.relative_error() <= f64::exp2(-f64::from(bits)));
            close(&owner, "inverse", &y, &mapped(&x, |x| 1.0 / x), off);
            let root = InverseSquareRoot::new(low, high, bits).unwrap();
            let y = evaluator.inverse_square_root(&a, &root).unwrap();
            assert_eq!(y.level(), 10 - root.depth());
            let off = root.relative_error() / low.sqrt();
            close(&owner, "inverse square root", &y, &mapped(&x, |x| 1.0 / x.sqrt()), off);
        }
    }
}

#[test]
fn inverses_refuse_what_they_can_detect() {
    let owner = Owner::new(Ring::Standard, 3, 2);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    let a = owner.encrypt(&between(&owner, 0.5, 1.0), 3);
    // Declared at most 1: none of it can lie in [2, 4].
    let error = evaluator.inverse(&a, &Inverse::new(2.0, 4.0, 4).unwrap()).unwrap_err();
    assert!(error.to_string().contains("at least 2"), "{error}");
    let deep = InverseSquareRoot::new(0.01, 1.0, 30).unwrap();
    let error = evaluator.inverse_square_root(&a, &deep).unwrap_err();
    assert!(matches!(error, Error::Level { .. }), "{error}");
    // Outside of the interval, undetectably: the result decrypts, and is wrong.
    let inverse = Inverse::new(0.5, 1.0, 2).unwrap();
    let outside = owner.encrypt(&between(&owner, -0.5, 0.0), 3);
    let y = owner.key.decrypt(&evaluator.inverse(&outside, &inverse).unwrap()).unwrap();
    assert!((y.decode()[0] + 2.0).abs() > 0.5);
}

#[test]
fn signs_of_encrypted_numbers() {
    for ring in RINGS {
        let sign = Sign::with_noise(f64::exp2(-6.0), 14.0, f64::exp2(-12.0)).unwrap();
        let owner = Owner::new(ring, sign.depth() + 1, 4);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        // Both sides of the gap, with both ends.
        let mut x = between(&owner, sign.gap(), 1.0);
        x.iter_mut().step_by(2).for_each(|x| *x = -*x);
        let a = owner.encrypt(&x, owner.params.max_level());
        let y = evaluator.sign(&a, &sign).unwrap();
        assert_eq!((y.level(), y.degree()), (1, 1));
        close(&owner, "a sign", &y, &mapped(&x, |x| sign.evaluate(x)), 0.0);
        close(&owner, "a sign", &y, &mapped(&x, f64::signum), sign.error());
        assert_eq!(y.magnitude(), 1.0 + sign.error());
        // In the gap: something of [-1, 1].
        let inside: Vec<Complex> = x.iter().map(|x| x.scale(f64::exp2(-7.0))).collect();
        let values = owner.key.decrypt(
            &evaluator.sign(&owner.encrypt(&inside, owner.params.max_level()), &sign).unwrap(),
        );
        assert!(values.unwrap().decode().iter().all(|y| y.abs() <= 1.001));

        let low = evaluator.drop_to(&a, sign.depth() - 1).unwrap();
        let low = evaluator.sign(&low, &sign).unwrap_err();
        assert!(low.to_string().contains(&format!("{} levels", sign.depth())), "{low}");
        let wide = a.clone().with_magnitude(2.0).unwrap();
        let wide = evaluator.sign(&wide, &sign).unwrap_err();
        assert!(wide.to_string().contains("with_magnitude"), "{wide}");
        let fine = Sign::with_noise(f64::exp2(-6.0), 8.0, f64::exp2(-30.0)).unwrap();
        let noisy = evaluator.sign(&a, &fine).unwrap_err();
        assert!(noisy.to_string().contains("with_noise"), "{noisy}");
        let keyless = owner.evaluator(&KeyPlan::new().rotations([1]));
        assert!(matches!(keyless.sign(&a, &sign), Err(Error::MissingKey { .. })));
    }
}
