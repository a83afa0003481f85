//! Canonical embedding: real coefficients of the polynomial with given values in the slots, and
//! back.
//!
//! The canonical embedding of Cheon, Kim, Kim and Song (IACR ePrint 2016/421), slots in the order
//! in which rotations are automorphisms: slot `j` is the value at `ζ^(5^j)`, and `X -> X^(5^r)`
//! rotates by `r`. Nothing is scaled or rounded here.
//!
//! Errors are those of a Fourier transform in doubles: in the Euclidean norm, about `2^-53 log2 N`
//! of the vector's norm. A slot far below the largest one therefore has an error relative to the
//! largest, not to itself.

use std::sync::OnceLock;

use super::Complex;
use super::fft::Fft;
use super::roots_of_unity::root_of_unity;

/// Plans of all sizes up to one, each made when it is first used.
#[derive(Debug)]
struct Plans(Vec<OnceLock<Fft>>);

impl Plans {
    fn new(log: u32) -> Self {
        Plans((0..=log).map(|_| OnceLock::new()).collect())
    }

    fn get(&self, points: usize) -> &Fft {
        let log = points.trailing_zeros();
        self.0[log as usize].get_or_init(|| Fft::new(log))
    }
}

fn check(what: &str, actual: usize, most: usize) {
    assert!(
        actual.is_power_of_two() && actual <= most,
        "expected a power of two up to {most} of {what}, got {actual}"
    );
}

/// The embedding of `Z[X]/(X^N + 1)`: `N/2` complex slots.
#[derive(Debug)]
pub struct Embedding {
    degree: usize,
    plans: Plans,
}

impl Embedding {
    /// For `N = 2^log_degree`.
    ///
    /// # Panics
    /// Unless `log_degree` is in `1..=20`.
    pub fn new(log_degree: u32) -> Self {
        assert!((1..=20).contains(&log_degree), "expected 2^1 to 2^20 coefficients");
        Embedding { degree: 1 << log_degree, plans: Plans::new(log_degree - 1) }
    }

    /// The most slots, `N/2`.
    pub fn max_slots(&self) -> usize {
        self.degree / 2
    }

    /// The `N` coefficients of the polynomial whose `N/2` values are `slots`, repeated where there
    /// are fewer: it then is one in `X^(N/2n)` for `n` slots.
    ///
    /// # Panics
    /// When `slots` is not a power of two of at most `N/2`, or `out` not `N` long.
    pub fn to_coefficients(&self, slots: &[Complex], out: &mut [f64]) {
        check("slots", slots.len(), self.max_slots());
        assert_eq!(out.len(), self.degree, "coefficients");
        let n = slots.len();
        let factor = 1.0 / n as f64;
        let mut values = vec![0.0; 2 * n];
        let (re, im) = values.split_at_mut(n);
        for ((re, im), slot) in re.iter_mut().zip(im).zip(slots) {
            (*re, *im) = (factor * slot.re, factor * slot.im);
        }
        let plan = self.plans.get(n);
        if 2 * n == out.len() {
            return plan.inverse(&mut values, out);
        }
        let mut polynomial = vec![0.0; 2 * n];
        plan.inverse(&mut values, &mut polynomial);
        spread(&polynomial, out);
    }

    /// The values of a polynomial in as many slots as `out` has; of coefficients at other places
    /// than multiples of `N/2n` the `n` slots say nothing, so those are not read.
    ///
    /// # Panics
    /// When `out` is not a power of two of at most `N/2`, or `coefficients` not `N` long.
    pub fn to_slots(&self, coefficients: &[f64], out: &mut [Complex]) {
        check("slots", out.len(), self.max_slots());
        assert_eq!(coefficients.len(), self.degree, "coefficients");
        let n = out.len();
        let mut polynomial = gathered(coefficients, 2 * n);
        let mut values = vec![0.0; 2 * n];
        self.plans.get(n).forward(&mut polynomial, &mut values);
        let (re, im) = values.split_at(n);
        for ((&re, &im), slot) in re.iter().zip(im).zip(out) {
            *slot = Complex::new(re, im);
        }
    }
}

/// Puts coefficients at multiples of a gap and zeros between them.
fn spread(polynomial: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    let gap = out.len() / polynomial.len();
    for (to, &x) in out.iter_mut().step_by(gap).zip(polynomial) {
        *to = x;
    }
}

fn gathered(coefficients: &[f64], count: usize) -> Vec<f64> {
    coefficients.iter().step_by(coefficients.len() / count).copied().collect()
}

/// The embedding of the conjugate-invariant ring of degree `N` (Kim and Song, IACR ePrint
/// 2018/952): `N` real slots.
///
/// A polynomial is `a_0 + Σ a_k (X^k + X^-k)`, `0 < k < N`, modulo `X^(2N) + 1`; slot `j` is its
/// value at `ψ^(5^j)`, `ψ = exp(iπ/2N)`. Those values are real, so two of them share one complex
/// value of a transform of `N/2` points.
#[derive(Debug)]
pub struct RealEmbedding {
    degree: usize,
    plans: Plans,
    /// One for each number of slots, each made when it is first used.
    halvings: Vec<OnceLock<Halving>>,
}

/// What turns `2n` real slots into `n` complex ones.
#[derive(Debug)]
struct Halving {
    /// `ψ^k`, `k < n`.
    first: Vec<Complex>,
    /// `ψ^3k`, `k < n`.
    third: Vec<Complex>,
    /// Where slot `j` lies among `n` real parts and, after them, `n` imaginary ones.
    place: Vec<u32>,
}

impl Halving {
    /// For `slots = 2n` slots.
    ///
    /// Slot `J` belongs to the point `W^M`, `W = exp(2πi/2n)`, with `5^J = 1 + 4M mod 8n`. Value
    /// `m` of the complex transform holds `M = 2m` and `2m + 1`, and it lies at `j` with
    /// `5^j = 1 + 4m mod 4n`.
    fn new(slots: usize) -> Self {
        let n = slots / 2;
        let log_order = slots.trailing_zeros() + 2;
        let powers =
            |count: usize| (0..count).scan(1u64, |p, _| Some((*p, *p = p.wrapping_mul(5)).0));
        let mut at = vec![0u32; n];
        for (j, power) in (0..).zip(powers(n)) {
            at[(power as usize % (4 * n)) / 4] = j;
        }
        let place = powers(slots)
            .map(|power| {
                let m = (power as usize % (8 * n)) / 4;
                at[m / 2] + if m % 2 == 1 { n as u32 } else { 0 }
            })
            .collect();
        Halving {
            first: (0..n as u64).map(|k| root_of_unity(k, log_order)).collect(),
            third: (0..n as u64).map(|k| root_of_unity(3 * k, log_order)).collect(),
            place,
        }
    }

    /// From `2n` coefficients to the `n` complex ones, real parts and then imaginary ones, whose
    /// transform holds the slots.
    ///
    /// In the ring of degree `4n` the polynomial has `A_k = a_k` and `A_(4n-k) = -a_k`; folded at
    /// `X^2n = i` it is `Σ z_k Y^k` with `z_k = a_k - i a_(2n-k)`, `k < 2n`. Its values at `ψ W^M`
    /// are the real transform of `t_k = ψ^k z_k`, and two real values in one are
    /// `g_k = (t_k + t_(k+n)) + i W^k (t_k - t_(k+n))`. With the factor `ψ^-2k` that the points
    /// `ζ^(5^j)`, `ζ = ψ²`, ask for: `ψ^-k (u + v) + i ψ^3k (u - v)` for `u = z_k`,
    /// `v = exp(iπ/4) z_(k+n)`.
    fn fold(&self, a: &[f64]) -> Vec<f64> {
        let n = self.first.len();
        let eighth = root_of_unity(1, 3);
        let mut out = vec![0.0; 2 * n];
        let (re, im) = out.split_at_mut(n);
        for k in 0..n {
            let u = Complex::new(a[k], if k == 0 { 0.0 } else { -a[2 * n - k] });
            let v = Complex::new(a[n + k], -a[n - k]) * eighth;
            let (sum, difference) = (u + v, u - v);
            let times_i = Complex::new(-difference.im, difference.re);
            let z = sum * self.first[k].conj() + times_i * self.third[k];
            (re[k], im[k]) = (z.re, z.im);
        }
        out
    }

    /// The way back. With `c = conj(g_(n-k))`, both as the transform gives them:
    /// `4 z_k = ψ^k (g - ic) - i ψ^-3k (g + ic)`.
    fn unfold(&self, g: &[f64], a: &mut [f64]) {
        let n = self.first.len();
        let (re, im) = g.split_at(n);
        // Both t_0 and t_n are real and come from g_0; z_n = (1 - i) a_n, so t_n = √2 a_n.
        a[0] = 0.5 * (re[0] + im[0]);
        a[n] = 0.5 * (re[0] - im[0]) * std::f64::consts::FRAC_1_SQRT_2;
        for k in 1..n {
            // -i conj(x + iy) = -y - ix.
            let (x, y) = (re[k], im[k]);
            let (p, q) = (re[n - k], im[n - k]);
            let less = Complex::new(x - q, y - p);
            let more = Complex::new(x + q, y + p);
            let times_minus_i = Complex::new(more.im, -more.re);
            let z = less * self.first[k] + times_minus_i * self.third[k].conj();
            a[k] = 0.25 * z.re;
            a[2 * n - k] = -0.25 * z.im;
        }
    }
}

impl RealEmbedding {
    /// For `N = 2^log_degree`.
    ///
    /// # Panics
    /// Unless `log_degree` is in `1..=20`.
    pub fn new(log_degree: u32) -> Self {
        assert!((1..=20).contains(&log_degree), "expected 2^1 to 2^20 coefficients");
        RealEmbedding {
            degree: 1 << log_degree,
            plans: Plans::new(log_degree - 1),
            halvings: (0..=log_degree).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The most slots, `N`.
    pub fn max_slots(&self) -> usize {
        self.degree
    }

    fn halving(&self, slots: usize) -> &Halving {
        self.halvings[slots.trailing_zeros() as usize].get_or_init(|| Halving::new(slots))
    }

    /// The `N` coefficients of the polynomial whose values are `slots`, repeated where there are
    /// fewer than `N`.
    ///
    /// # Panics
    /// When `slots` is not a power of two of at most `N`, or `out` not `N` long.
    pub fn to_coefficients(&self, slots: &[f64], out: &mut [f64]) {
        check("slots", slots.len(), self.max_slots());
        assert_eq!(out.len(), self.degree, "coefficients");
        if let [value] = slots {
            return spread(&[*value], out);
        }
        let n = slots.len() / 2;
        let halving = self.halving(slots.len());
        let factor = 1.0 / n as f64;
        let (mut values, mut folded) = (vec![0.0; 2 * n], vec![0.0; 2 * n]);
        for (&place, &slot) in halving.place.iter().zip(slots) {
            values[place as usize] = factor * slot;
        }
        self.plans.get(n).inverse(&mut values, &mut folded);
        halving.unfold(&folded, &mut values);
        spread(&values, out);
    }

    /// The values of a polynomial in as many slots as `out` has; coefficients at other places than
    /// multiples of `N/n` are not read.
    ///
    /// # Panics
    /// When `out` is not a power of two of at most `N`, or `coefficients` not `N` long.
    pub fn to_slots(&self, coefficients: &[f64], out: &mut [f64]) {
        check("slots", out.len(), self.max_slots());
        assert_eq!(coefficients.len(), self.degree, "coefficients");
        let polynomial = gathered(coefficients, out.len());
        if let [value] = out {
            *value = polynomial[0];
            return;
        }
        let halving = self.halving(out.len());
        let mut folded = halving.fold(&polynomial);
        let mut values = vec![0.0; out.len()];
        self.plans.get(out.len() / 2).forward(&mut folded, &mut values);
        for (slot, &place) in out.iter_mut().zip(&halving.place) {
            *slot = values[place as usize];
        }
    }
}
