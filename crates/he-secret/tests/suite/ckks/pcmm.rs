//! Plaintext matrices times ciphertexts against double precision, at every level, for ciphertexts
//! of degree 1 and 2.

use super::support::{Owner, RINGS, numbers, zip};
use ciphervec_he_secret::Error;
use ciphervec_he_secret::ckks::{Ciphertext, Complex, KeyPlan, PlainMatrix, Ring};

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
            assert_eq!(weights.scale(0), f64::exp2(f64::from(bits) - 1.0));
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

/// Within the bound, and within four bits of the estimate: that takes all magnitudes for the
/// declared ones.
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

#[test]
fn sums_can_be_continued_and_use_all_of_the_room() {
    let owner = Owner::new(Ring::Standard, 2, 3);
    let evaluator = owner.evaluator(&KeyPlan::new());
    let values = matrix(4, 10);
    let x: Vec<Vec<Complex>> = (0..10).map(|i| numbers(&owner.params, 64, i)).collect();
    let inputs: Vec<Ciphertext> = x.iter().map(|x| owner.encrypt(x, 1)).collect();
    let scales: Vec<f64> = (0..4).map(|k| f64::exp2(20.0 + f64::from(k))).collect();
    let part = |range: std::ops::Range<usize>| {
        let rows: Vec<Vec<f64>> = values.iter().map(|row| row[range.clone()].to_vec()).collect();
        PlainMatrix::with_scales(&rows, &scales).unwrap()
    };
    let mut outputs = Vec::new();
    for range in [0..3, 3..4, 4..10] {
        let inputs = &inputs[range.clone()];
        evaluator.add_matrix_product(&mut outputs, &part(range), inputs, None).unwrap();
    }
    let whole = evaluator.matrix_product(&part(0..10), &inputs).unwrap();
    for ((output, whole), row) in outputs.iter().zip(&whole).zip(&values) {
        assert_eq!(output.parts(), whole.parts());
        assert!((output.magnitude() / whole.magnitude() - 1.0).abs() < 1e-9);
        check(&owner, output, &product(row, &x));
    }
    // At level 0 the modulus has 50 bits, of which the scale takes 40: what the sums of absolute
    // values might reach is refused, what they are known to reach is not.
    let ground: Vec<Ciphertext> = x.iter().map(|x| owner.encrypt(x, 0)).collect();
    let narrow = PlainMatrix::with_scales(&values, &[128.0; 4]).unwrap();
    assert!(matches!(evaluator.matrix_product(&narrow, &ground), Err(Error::Level { .. })));
    let largest = |row| product(row, &x).iter().map(|value| value.norm()).fold(0.0, f64::max);
    let largest: Vec<f64> = values.iter().map(|row| largest(row)).collect();
    let mut outputs = Vec::new();
    evaluator.add_matrix_product(&mut outputs, &narrow, &ground, Some(&largest)).unwrap();
    for (output, row) in outputs.iter().zip(&values) {
        check(&owner, output, &product(row, &x));
    }
    let few = evaluator.add_matrix_product(&mut outputs, &part(0..10), &inputs, None);
    assert!(matches!(few, Err(Error::Range { .. })));
    let none = evaluator.add_matrix_product(&mut outputs, &narrow, &ground, Some(&[1.0]));
    assert!(matches!(none, Err(Error::Range { .. })));
    assert!(PlainMatrix::with_scales(&values, &[1.0]).is_err());
    assert!(PlainMatrix::with_scales(&values, &[0.0; 4]).is_err());
    assert!(PlainMatrix::with_scales(&values, &[f64::exp2(40.0); 4]).is_err());
}
