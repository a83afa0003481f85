//! Minimax approximation: the odd polynomial that is closest to 1 on an interval.
//!
//! Remez's exchange in the basis `T_1, T_3, …`, which satisfies Haar's condition on intervals of
//! positive numbers: the best of `m` terms is the one whose error reaches its largest value at
//! `m + 1` points with alternating signs. Its derivative has at most `m − 1` positive zeros, so
//! both ends are among those points, and between two zeros of the error there is one extremum.

use core::f64::consts::FRAC_PI_2;

use crate::error::{Error, Result};

/// Exchanges before giving up; half a dozen are usual.
const MOST_EXCHANGES: usize = 20;
/// How far the largest error may be over the one that all reference points share, relative to it.
const LEVELLED: f64 = 1e-4;
/// Errors below this are those of double precision.
const PRECISION: f64 = 4e-13;
/// Points looked at between the neighbours of a point of the reference.
const SAMPLES: usize = 11;
/// Parabolas that the largest of them is refined by, each that much narrower than the one before.
const REFINEMENTS: usize = 2;
/// The same where what an error near 1 leaves of a number counts.
const FINE_REFINEMENTS: usize = 5;
/// How far the largest error may be over the shared one there, relative to what it is below 1.
const FINE_LEVELLED: f64 = 1e-3;
const NARROWER: f64 = 0.125;
/// Points at which the error is evaluated together.
const LANES: usize = 8;

/// An odd polynomial that approximates 1.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Minimax {
    /// Coefficients of `T_1, T_3, …`
    pub coefficients: Vec<f64>,
    /// The largest distance from 1 on the interval.
    pub error: f64,
}

impl Minimax {
    /// The best of odd `degree` on `[low, high]`.
    ///
    /// # Errors
    /// [`Error::Range`] unless `0 < low < high`, both finite, or if the error was not levelled.
    pub fn new(degree: usize, low: f64, high: f64) -> Result<Self> {
        let level = |least: f64, most: f64| most - least <= LEVELLED * most;
        Self::exchanged(degree, low, high, REFINEMENTS, level)
    }

    /// [`Self::new`], levelled relative to what the error is below 1: near 0 that is all that is
    /// left of numbers.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn fine(degree: usize, low: f64, high: f64) -> Result<Self> {
        let level = |least: f64, most: f64| {
            most - least <= (FINE_LEVELLED * (1.0 - most)).min(LEVELLED * most)
        };
        Self::exchanged(degree, low, high, FINE_REFINEMENTS, level)
    }

    fn exchanged(
        degree: usize,
        low: f64,
        high: f64,
        refinements: usize,
        level: impl Fn(f64, f64) -> bool,
    ) -> Result<Self> {
        if !(degree % 2 == 1 && low > 0.0 && low < high && high.is_finite()) {
            return Err(Error::Range {
                what: "an approximation of the sign",
                expected: "of odd degree on an interval of positive numbers".into(),
                actual: format!("degree {degree} on [{low}, {high}]"),
            });
        }
        let terms = degree.div_ceil(2);
        // Extrema of a Chebyshev polynomial in x², which is what a polynomial in x² times x is
        // close to; where the interval begins near zero they are those of T_degree itself.
        let mut reference: Vec<f64> = (0..=terms)
            .map(|k| {
                let sine = (FRAC_PI_2 * k as f64 / terms as f64).sin();
                (low * low + (high * high - low * low) * sine * sine).sqrt()
            })
            .collect();
        for _ in 0..MOST_EXCHANGES {
            let Some(coefficients) = levelled(&reference) else { break };
            let peaks = exchange(&coefficients, &reference, refinements);
            let sizes = peaks.iter().map(|peak| peak.size);
            let (least, most) =
                sizes.fold((f64::INFINITY, 0.0f64), |(a, b), e| (a.min(e), b.max(e)));
            reference = peaks.iter().map(|peak| peak.place).collect();
            if level(least, most) || most <= PRECISION {
                return Ok(Minimax { coefficients, error: most });
            }
        }
        Err(Error::Range {
            what: "the interval of an approximation of the sign",
            expected: format!("one where the error of degree {degree} can be levelled"),
            actual: format!("[{low}, {high}]"),
        })
    }
}

/// The coefficients whose error has one size and alternating signs at the reference.
fn levelled(reference: &[f64]) -> Option<Vec<f64>> {
    let size = reference.len();
    // Rows of T_1, T_3, …, ±1 and the right side, 1.
    let mut rows: Vec<Vec<f64>> = reference
        .iter()
        .enumerate()
        .map(|(place, &x)| {
            let t = 2.0 * (2.0 * x * x - 1.0);
            let mut row = Vec::with_capacity(size + 1);
            let (mut last, mut this) = (x, x);
            for _ in 1..size {
                row.push(this);
                (last, this) = (this, t * this - last);
            }
            row.extend([if place % 2 == 0 { 1.0 } else { -1.0 }, 1.0]);
            row
        })
        .collect();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let (done, below) = rows.split_at_mut(column + 1);
        let top = &done[column];
        if top[column] == 0.0 {
            return None;
        }
        for row in below {
            let factor = row[column] / top[column];
            let pairs = row.iter_mut().zip(top).skip(column);
            pairs.for_each(|(value, top)| *value -= factor * top);
        }
    }
    let mut solution = vec![0.0; size];
    for column in (0..size).rev() {
        let row = &rows[column];
        let known: f64 = (column + 1..size).map(|k| row[k] * solution[k]).sum();
        solution[column] = (row[size] - known) / row[column];
    }
    solution.pop();
    solution.iter().all(|c| c.is_finite()).then_some(solution)
}

/// The errors at many points, a few at a time: one alone waits for every addition.
fn errors(coefficients: &[f64], points: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(points.len());
    for chunk in points.chunks(LANES) {
        let mut x = [0.0; LANES];
        x[..chunk.len()].copy_from_slice(chunk);
        // Clenshaw in T_(2k+3) = 2 T_2 T_(2k+1) − T_(2k−1), with T_(−1) = T_1.
        let t = x.map(|x| 2.0 * (2.0 * x * x - 1.0));
        let (mut b1, mut b2) = ([0.0; LANES], [0.0; LANES]);
        for &c in coefficients.iter().rev() {
            let mut b0 = [0.0; LANES];
            for lane in 0..LANES {
                b0[lane] = t[lane] * b1[lane] - b2[lane] + c;
            }
            (b1, b2) = (b0, b1);
        }
        out.extend((0..chunk.len()).map(|lane| x[lane] * (b1[lane] - b2[lane]) - 1.0));
    }
    out
}

/// A point where the error is looked for its largest value, with that value.
#[derive(Clone, Copy)]
struct Peak {
    place: f64,
    size: f64,
}

/// The extrema of an error that alternates on the reference, one near each point of it; both ends
/// are among them.
fn exchange(coefficients: &[f64], reference: &[f64], refinements: usize) -> Vec<Peak> {
    let values = errors(coefficients, reference);
    let at = |(&place, &error): (&f64, &f64)| Peak { place, size: error.abs() };
    let mut peaks: Vec<Peak> = reference.iter().zip(&values).map(at).collect();
    let inner = 1..reference.len() - 1;
    let signs: Vec<f64> = values.iter().map(|error| error.signum()).collect();
    // Between its neighbours, where the error has the other sign, there is one extremum of its own.
    let width = |k: usize| (reference[k + 1] - reference[k - 1]) / (SAMPLES + 1) as f64;
    let mut steps: Vec<f64> = inner.clone().map(width).collect();
    let places = inner.clone().zip(&steps).flat_map(|(k, step)| {
        (1..=SAMPLES).map(move |sample| reference[k - 1] + step * sample as f64)
    });
    let places: Vec<f64> = places.collect();
    let sampled = errors(coefficients, &places);
    for (k, (places, errors)) in
        inner.clone().zip(places.chunks(SAMPLES).zip(sampled.chunks(SAMPLES)))
    {
        for (&place, error) in places.iter().zip(errors) {
            if error * signs[k] > peaks[k].size {
                peaks[k] = Peak { place, size: error * signs[k] };
            }
        }
    }
    for _ in 0..refinements {
        let middle = peaks[inner.clone()].iter().zip(&steps);
        let sides: Vec<f64> =
            middle.flat_map(|(peak, step)| [peak.place - step, peak.place + step]).collect();
        let sides = errors(coefficients, &sides);
        let parabola = |((k, step), pair): ((usize, &f64), &[f64])| {
            let (before, after) = (pair[0] * signs[k], pair[1] * signs[k]);
            let bend = before - 2.0 * peaks[k].size + after;
            let shift = if bend < 0.0 { 0.5 * (before - after) / bend } else { 0.0 };
            (peaks[k].place + step * shift.clamp(-1.0, 1.0))
                .clamp(reference[k - 1], reference[k + 1])
        };
        let tried: Vec<f64> =
            inner.clone().zip(&steps).zip(sides.chunks(2)).map(parabola).collect();
        for ((k, &place), error) in inner.clone().zip(&tried).zip(errors(coefficients, &tried)) {
            if error * signs[k] > peaks[k].size {
                peaks[k] = Peak { place, size: error * signs[k] };
            }
        }
        steps.iter_mut().for_each(|step| *step *= NARROWER);
    }
    peaks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error at many points that the exchange has not seen.
    fn largest(minimax: &Minimax, low: f64, high: f64) -> f64 {
        let points = (0..=20_000).map(|k| {
            let sine = (FRAC_PI_2 * f64::from(k) / 20_000.0).sin();
            (low * low + (high * high - low * low) * sine * sine).sqrt()
        });
        let errors = errors(&minimax.coefficients, &points.collect::<Vec<_>>());
        errors.iter().fold(0.0, |largest, error| error.abs().max(largest))
    }

    #[test]
    fn errors_alternate_and_none_is_smaller() {
        for degree in (1..=31).step_by(2) {
            for log in [1, 2, 3, 5, 8, 12, 16, 20] {
                let (low, high) = (f64::exp2(-f64::from(log)), 1.0 + f64::exp2(-20.0));
                let minimax = Minimax::new(degree, low, high).unwrap();
                let seen = largest(&minimax, low, high);
                let near = (seen - minimax.error).abs();
                assert!(near <= 1e-3 * seen + 1e-13, "degree {degree} from 2^-{log}: {seen:e}");
                // By de la Vallée Poussin's theorem the best error is at least the smallest of as
                // many errors of alternating signs as there are terms and one more. They are
                // counted here on a grid, peak by peak.
                let mut peaks: Vec<f64> = Vec::new();
                for k in 0..=20_000 {
                    let sine = (FRAC_PI_2 * f64::from(k) / 20_000.0).sin();
                    let x = (low * low + (high * high - low * low) * sine * sine).sqrt();
                    let e = errors(&minimax.coefficients, &[x])[0];
                    match peaks.last_mut() {
                        Some(peak) if peak.signum() == e.signum() => {
                            *peak = if e.abs() > peak.abs() { e } else { *peak };
                        }
                        _ => peaks.push(e),
                    }
                }
                if minimax.error > 1e-12 {
                    assert_eq!(peaks.len(), degree.div_ceil(2) + 1, "degree {degree}, 2^-{log}");
                    let least = peaks.iter().fold(f64::INFINITY, |a, b| a.min(b.abs()));
                    assert!(least >= 0.998 * minimax.error, "degree {degree} from 2^-{log}");
                }
            }
        }
    }

    /// What can be worked out by hand. Degree 1: `c x` is off by as much at both ends, so
    /// `c = 2/(a + b)`. Degree 3: `c x − d x³` peaks at `p² = c/3d`, and its errors at `a`, `p` and
    /// `b` have one size. Those at `a` and `b` are the same if `c = d (a² + ab + b²)`, so that
    /// `p² = (a² + ab + b²)/3`, the value at `a` is `d ab (a + b)`, and at `p` it is `2 d p³`.
    #[test]
    fn low_degrees_are_those_worked_out_by_hand() {
        for (a, b) in [(0.5f64, 1.0f64), (0.01, 1.0), (0.3, 1.7), (1e-5, 1.0)] {
            let line = Minimax::new(1, a, b).unwrap();
            assert!((line.coefficients[0] - 2.0 / (a + b)).abs() < 1e-12);
            assert!((line.error - (b - a) / (b + a)).abs() < 1e-12);
            let cubic = Minimax::new(3, a, b).unwrap();
            let square = (a * a + a * b + b * b) / 3.0;
            let (ends, peak) = (a * b * (a + b), 2.0 * square.powf(1.5));
            assert!((cubic.error - (peak - ends) / (peak + ends)).abs() < 1e-9, "[{a}, {b}]");
            // 4x³ = T_3 + 3 T_1.
            let d = 2.0 / (peak + ends);
            assert!((cubic.coefficients[1] + 0.25 * d).abs() < 1e-5 * d);
            assert!((cubic.coefficients[0] - (3.0 * square - 0.75) * d).abs() < 1e-5 * d);
        }
    }

    #[test]
    fn refuses_what_has_no_best() {
        for (degree, low, high) in
            [(2, 0.5, 1.0), (0, 0.5, 1.0), (3, 0.0, 1.0), (3, 1.0, 0.5), (3, 0.5, f64::NAN)]
        {
            assert!(Minimax::new(degree, low, high).is_err(), "degree {degree} [{low}, {high}]");
        }
    }
}
