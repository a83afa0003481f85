//! The smallest odd polynomial with slope 1 at given points.
//!
//! To take integers away, a polynomial has to be right near integers only. Its derivatives there
//! leave some coefficients of an odd one free, of which the least in sum of squares are taken: then
//! it swings between the integers little more than a sine does (docs/ckks.md, section 10.4).

/// Derivatives that are given at each point, from the value on: up to the curvature, beyond which a
/// sine is as good; or up to the fourth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contact {
    Sine,
    Straight,
}

impl Contact {
    fn derivatives(self) -> usize {
        match self {
            Contact::Sine => 3,
            Contact::Straight => 5,
        }
    }

    /// Conditions at the integers from 0 to `last`: at 0 an odd polynomial meets every other one.
    pub fn conditions(self, last: usize) -> usize {
        self.derivatives() * last + self.derivatives() / 2
    }
}

/// The odd one of 2 `unknowns` − 1 in Chebyshev polynomials of u that at u = k/`divisor`, for the
/// integers k up to `last`, has the slope `slope` by x = `divisor` u and no other derivative:
/// coefficients by degree.
pub(super) fn odd_polynomial(
    contact: Contact,
    last: usize,
    divisor: f64,
    slope: f64,
    unknowns: usize,
) -> Vec<f64> {
    let mut rows = Vec::with_capacity(contact.conditions(last));
    for k in 0..=last {
        let derivatives = chebyshev(k as f64 / divisor, contact.derivatives(), unknowns);
        for (order, row) in derivatives.into_iter().enumerate() {
            if k > 0 || order % 2 == 1 {
                rows.push((row, if order == 1 { slope * divisor } else { 0.0 }));
            }
        }
    }
    let mut out = vec![0.0; 2 * unknowns];
    for (k, coefficient) in least_norm(rows).into_iter().enumerate() {
        out[2 * k + 1] = coefficient;
    }
    out
}

/// T_k(u) for k = 1, 3, 5, …, and derivatives up to as many in all.
fn chebyshev(u: f64, derivatives: usize, count: usize) -> Vec<Vec<f64>> {
    let mut out = vec![Vec::with_capacity(count); derivatives];
    let start = |value: f64, slope: f64| {
        let mut start = vec![0.0; derivatives];
        (start[0], start[1]) = (value, slope);
        start
    };
    let (mut before, mut now) = (start(1.0, 0.0), start(u, 1.0));
    for k in 1..2 * count {
        if k % 2 == 1 {
            out.iter_mut().zip(&now).for_each(|(out, value)| out.push(*value));
        }
        // T_(k+1) = 2u T_k − T_(k−1), and the derivatives of that.
        let next = (0..derivatives).map(|d| {
            let lower = d.checked_sub(1).map_or(0.0, |lower| 2.0 * d as f64 * now[lower]);
            lower + 2.0 * u * now[d] - before[d]
        });
        let next = next.collect();
        (before, now) = (now, next);
    }
    out
}

/// The solution of fewest squares of equations `(row, right side)`, fewer than there are unknowns: a
/// sum of the rows, made orthonormal by Gram and Schmidt. Done twice, that loses no digits.
fn least_norm(rows: Vec<(Vec<f64>, f64)>) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut basis: Vec<(Vec<f64>, f64)> = Vec::with_capacity(rows.len());
    let mut solution = vec![0.0; rows.first().map_or(0, |(row, _)| row.len())];
    for (mut row, mut right) in rows {
        // Rows are of very different lengths.
        let length = dot(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= length);
        right /= length;
        for _ in 0..2 {
            for (other, value) in &basis {
                let share = dot(&row, other);
                row.iter_mut().zip(other).for_each(|(x, y)| *x -= share * y);
                right -= share * value;
            }
        }
        let rest = dot(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= rest);
        right /= rest;
        solution.iter_mut().zip(&row).for_each(|(x, y)| *x += right * y);
        basis.push((row, right));
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::super::super::polynomial::Polynomial;
    use super::*;

    #[test]
    fn polynomials_are_straight_at_the_integers() {
        let small = f64::exp2(-8.0);
        for (contact, unknowns, bits) in
            [(Contact::Sine, 64, -12.0), (Contact::Straight, 128, -18.0)]
        {
            let coefficients = odd_polynomial(contact, 16, 16.5, 1.0, unknowns);
            assert_eq!(coefficients.len(), 2 * unknowns);
            let largest = coefficients.iter().fold(0.0f64, |most, c| most.max(c.abs()));
            assert!(largest < 0.1, "{largest}");
            let polynomial = Polynomial::chebyshev(-1.0, 1.0, &coefficients).unwrap();
            let at = |x: f64| polynomial.evaluate(x / 16.5);
            for k in -14..=14 {
                let x = f64::from(k);
                assert!(at(x).abs() < f64::exp2(-40.0), "{k}: {:e}", at(x));
                let [left, right] = [at(x - small), at(x + small)];
                let slope = (right - left) / (2.0 * small);
                assert!((slope - 1.0).abs() < f64::exp2(bits + 1.0), "{k}: slope {slope}");
                let curvature = (right + left) / (2.0 * small);
                assert!(curvature.abs() < f64::exp2(bits), "{k}: curvature {curvature:e}");
            }
        }
    }

    #[test]
    fn the_smallest_solution_is_found() {
        // x + y + z = 3 and x − y = 1: (3/2, 1/2, 1) plus nothing along (1, 1, −2).
        let rows = vec![(vec![1.0, 1.0, 1.0], 3.0), (vec![1.0, -1.0, 0.0], 1.0)];
        let expected = [1.5, 0.5, 1.0];
        for (actual, expected) in least_norm(rows).into_iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-14);
        }
    }
}
