//! Plaintext matrices times ciphertexts against double precision, at every level, for ciphertexts of degree 1 and 2.

use super::support::{Owner, RINGS, numbers, zip};
use ciphervec_he::Error;
use ciphervec_he::ckks::{Ciphertext, Complex, KeyPlan, PlainMatrix, Ring};

fn matrix(rows: usize, columns: usize) -> Vec<Vec<f64>> {
    let entry = |k: usize, i: usize| ((k * 29 + i * 41 + 3) % 37) as f64 / 18.0 - 1.0;
    (0..rows).map(|k| (0..columns).map(|i| entry(k, i)).collect()).collect()
}

fn product(matrix: &[f64], inputs: &[Vec<Complex>]) -> Vec<Complex> {
    let zero = vec![Complex::default(); inputs[0].len()];
    matrix.iter().zip(inputs).fold(zero, |sum, (w, x)| zip(&sum, x, |a, b| a + b.scale(*w)))
}

#[test]
fn sums_are_weighted_at_every_level() {
    for ring in RINGS {
        let owner = Owner::new(ring, 3, 2);
        let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
        let (rows, columns) = (5, 12);
        let slots = owner.params.max_slots();
        let x: Vec<Vec<Complex>> =
            (0..columns).map(|i| numbers(&owner.params, slots, i as u8)).collect();
        let values = matrix(rows, columns);
        for bits in [6, 14, 18, 22, 31] {
            let weights = PlainMatrix::new(&values, bits).unwrap();
            // 2^(bits - 1): the largest number is 1, which 2^bits would exceed by one.
            assert_eq!(weights.scale(), f64::exp2(f64::from(bits) - 1.0));
            for level in 1..=3 {
                let inputs: Vec<Ciphertext> = x.iter().map(|x| owner.encrypt(x, level)).collect();
                let outputs = evaluator.matrix_product(&weights, &inputs).unwrap();
                assert_eq!(outputs.len(), rows);
                for (output, row) in outputs.iter().zip(&values) {
                    assert_eq!(output.level(), level);
                    check(&owner, output, &product(row, &x));
                    if bits <= 18 {
                        let lower = evaluator.match_level(output, level - 1).unwrap();
                        assert_eq!(lower.scale(), owner.params.scale(level - 1));
                        check(&owner, &lower, &product(row, &x));
                    }
                }
            }
        }
        // Products that were not relinearised: sums first, then one key switch an output.
        let inputs: Vec<Ciphertext> =
            x.iter().map(|x| evaluator.square(&owner.encrypt(x, 3)).unwrap()).collect();
        let squares: Vec<Vec<Complex>> = x.iter().map(|x| zip(x, x, |a, b| a * b)).collect();
        let weights = PlainMatrix::new(&values, 18).unwrap();
        let outputs = evaluator.matrix_product(&weights, &inputs).unwrap();
        for (output, row) in outputs.iter().zip(&values) {
            assert_eq!(output.degree(), 2);
            check(&owner, &evaluator.relinearise(output).unwrap(), &product(row, &squares));
        }
    }
}

/// Within the bound, and within four bits of the estimate: that takes all magnitudes for the declared ones.
fn check(owner: &Owner, actual: &Ciphertext, expected: &[Complex]) {
    let values = owner.key.decrypt(actual).unwrap().decode_complex();
    let errors: Vec<f64> = values.iter().zip(expected).map(|(a, b)| (*a - *b).norm()).collect();
    let largest = errors.iter().fold(0.0f64, |a, b| a.max(*b));
    assert!(largest <= actual.noise().bound / actual.scale());
    let square = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
    let (measured, estimated) = (square.sqrt().log2(), actual.error_bits() + 0.5);
    assert!((-4.0..2.0).contains(&(measured - estimated)), "2^{measured} where 2^{estimated}");
}

#[test]
fn refuses_what_does_not_fit() {
    let owner = Owner::new(Ring::Standard, 2, 3);
    let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
    let x = numbers(&owner.params, 64, 1);
    let weights = PlainMatrix::new(&matrix(2, 3), 18).unwrap();
    let [high, low] = [2, 1].map(|level| owner.encrypt(&x, level));
    let other = Owner::new(Ring::Standard, 2, 3).encrypt(&x, 2);
    let with = |third: &Ciphertext| {
        evaluator.matrix_product(&weights, &[high.clone(), high.clone(), third.clone()])
    };
    assert!(with(&high).is_ok());
    let error = with(&low).unwrap_err().to_string();
    assert!(error.contains("level 2") && error.contains("level 1"), "{error}");
    let square = evaluator.square(&high).unwrap();
    assert!(with(&square).unwrap_err().to_string().contains("degree 2"));
    assert!(with(&owner.encrypt(&x[..32], 2)).unwrap_err().to_string().contains("32 slots"));
    assert!(matches!(with(&other), Err(Error::WrongKey { .. })));
    assert!(evaluator.matrix_product(&weights, std::slice::from_ref(&high)).is_err());
    // 2^40 times 2^17 is more than the first prime holds.
    let ground = owner.encrypt(&x, 0);
    let error = evaluator.matrix_product(&weights, &[ground.clone(), ground.clone(), ground]);
    assert!(matches!(error, Err(Error::Level { .. })));
    for rows in [vec![], vec![vec![]], vec![vec![0.0; 3]], vec![vec![1.0], vec![1.0, 2.0]]] {
        assert!(PlainMatrix::new(&rows, 18).is_err(), "{rows:?}");
    }
    for value in [f64::NAN, f64::INFINITY] {
        assert!(PlainMatrix::new(&[vec![1.0, value, 2.0]], 18).is_err());
    }
    assert!(PlainMatrix::new(&matrix(2, 3), 0).is_err());
    assert!(PlainMatrix::new(&matrix(2, 3), 32).is_err());
}
