//! The embeddings against their definition, evaluated term by term in twice the precision of a
//! double.

use ciphervec_he_secret::ckks::{Complex, Embedding, RealEmbedding};

/// An unevaluated sum of two doubles, about 106 bits (Dekker's and Knuth's error-free steps).
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

fn sum(a: f64, b: f64) -> Double {
    let high = a + b;
    let part = high - a;
    Double { high, low: (a - (high - part)) + (b - part) }
}

impl Double {
    fn from(x: f64) -> Self {
        Double { high: x, low: 0.0 }
    }

    fn neg(self) -> Self {
        Double { high: -self.high, low: -self.low }
    }

    fn add(self, other: Self) -> Self {
        let top = sum(self.high, other.high);
        let rest = sum(self.low, other.low);
        let first = sum(top.high, top.low + rest.high);
        sum(first.high, first.low + rest.low)
    }

    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        sum(high, low + (self.high * other.low + self.low * other.high))
    }

    /// The double's root, improved by one Newton step.
    fn sqrt(self) -> Self {
        let root = Double::from(self.high.sqrt());
        let rest = self.add(root.mul(root).neg());
        root.add(Double::from(rest.high / (2.0 * root.high)))
    }
}

#[derive(Clone, Copy)]
struct Point(Double, Double);

impl Point {
    fn mul(self, other: Self) -> Self {
        let (Point(a, b), Point(c, d)) = (self, other);
        Point(a.mul(c).add(b.mul(d).neg()), a.mul(d).add(b.mul(c)))
    }
}

/// `exp(2πi k / 2^log)` for all `k`: the quarter turn halved often enough by half-angle formulas,
/// then its powers.
fn circle(log: u32) -> Vec<Point> {
    let (one, half) = (Double::from(1.0), Double::from(0.5));
    let mut powers_of_two = vec![Point(Double::from(0.0), one)];
    for _ in 2..log {
        let Point(cosine, _) = powers_of_two[powers_of_two.len() - 1];
        powers_of_two
            .push(Point(one.add(cosine).mul(half).sqrt(), one.add(cosine.neg()).mul(half).sqrt()));
    }
    powers_of_two.reverse();
    let minus = Point(Double::from(-1.0), Double::from(0.0));
    (0..1usize << log)
        .map(|k| {
            let mut point = Point(one, Double::from(0.0));
            for (bit, &factor) in powers_of_two.iter().chain([&minus]).enumerate() {
                if k >> bit & 1 == 1 {
                    point = point.mul(factor);
                }
            }
            point
        })
        .collect()
}

/// `Σ_k a_k ζ^(5^j k)` for `j < slots`, `ζ` of order `2N`.
fn evaluate(coefficients: &[f64], slots: usize) -> Vec<Complex> {
    let order = 2 * coefficients.len();
    let circle = circle(order.trailing_zeros());
    let mut exponent = 1;
    (0..slots)
        .map(|_| {
            let mut value = (Double::from(0.0), Double::from(0.0));
            for (k, &a) in coefficients.iter().enumerate() {
                let Point(re, im) = circle[exponent * k % order];
                value.0 = value.0.add(Double::from(a).mul(re));
                value.1 = value.1.add(Double::from(a).mul(im));
            }
            exponent = exponent * 5 % order;
            Complex::new(value.0.high, value.1.high)
        })
        .collect()
}

/// The element of the ring of degree `2N` that a conjugate-invariant polynomial is:
/// `a_0 + Σ a_k (X^k + X^-k)`.
fn unfolded(a: &[f64]) -> Vec<f64> {
    let n = a.len();
    let mut out = vec![0.0; 2 * n];
    for (k, &x) in a.iter().enumerate() {
        out[k] = x;
        if k > 0 {
            out[2 * n - k] = -x;
        }
    }
    out
}

/// Doubles in (-1, 1) from a fixed sequence.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

fn pairs(x: &[f64]) -> Vec<Complex> {
    x.as_chunks::<2>().0.iter().map(|&[re, im]| Complex::new(re, im)).collect()
}

fn norm(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

fn distance(a: &[Complex], b: &[Complex]) -> f64 {
    norm(a.iter().zip(b).flat_map(|(a, b)| [a.re - b.re, a.im - b.im]))
}

fn length(a: &[Complex]) -> f64 {
    norm(a.iter().flat_map(|a| [a.re, a.im]))
}

/// Relative error in the Euclidean norm: a level multiplies by a root (its own error and two
/// roundings of products and one of sums, below 2.3 units each way round) and adds (one unit):
/// below 4 · 2^-53 a level, and four more for folding.
fn bound(degree: usize) -> f64 {
    4.0 * f64::from(degree.trailing_zeros() + 4) * 2f64.powi(-53)
}

#[test]
fn values_are_the_definition() {
    for log in 1..=11 {
        let degree = 1usize << log;
        let embedding = Embedding::new(log);
        let coefficients = numbers(degree, 7 + u64::from(log));
        let expected = evaluate(&coefficients, degree / 2);
        let mut slots = vec![Complex::default(); degree / 2];
        embedding.to_slots(&coefficients, &mut slots);
        assert!(distance(&slots, &expected) < bound(degree) * length(&expected), "N = {degree}");
        let mut back = vec![0.0; degree];
        embedding.to_coefficients(&expected, &mut back);
        let error = norm(back.iter().zip(&coefficients).map(|(a, b)| a - b));
        assert!(error < bound(degree) * norm(coefficients.iter().copied()), "N = {degree}, back");
    }
}

#[test]
fn real_values_are_the_definition() {
    for log in 1..=11 {
        let degree = 1usize << log;
        let embedding = RealEmbedding::new(log);
        let coefficients = numbers(degree, 70 + u64::from(log));
        let expected = evaluate(&unfolded(&coefficients), degree);
        // The definition's imaginary parts vanish: the slots of this ring are real.
        assert!(expected.iter().all(|z| z.im.abs() < 1e-12));
        let expected: Vec<f64> = expected.iter().map(|z| z.re).collect();
        let mut slots = vec![0.0; degree];
        embedding.to_slots(&coefficients, &mut slots);
        let error = norm(slots.iter().zip(&expected).map(|(a, b)| a - b));
        assert!(error < bound(degree) * norm(expected.iter().copied()), "N = {degree}");
        let mut back = vec![0.0; degree];
        embedding.to_coefficients(&expected, &mut back);
        let error = norm(back.iter().zip(&coefficients).map(|(a, b)| a - b));
        // a_0 weighs half as much as the others in the norm of the slots, hence the root of two.
        let size = 2f64.sqrt() * norm(coefficients.iter().copied());
        assert!(error < bound(degree) * size, "N = {degree}, back");
    }
}

#[test]
fn few_slots_repeat() {
    let (log, degree) = (10, 1024);
    for n in [1, 2, 4, 64, 256, 512] {
        let values = pairs(&numbers(2 * n, 11));
        let mut coefficients = vec![f64::NAN; degree];
        let embedding = Embedding::new(log);
        embedding.to_coefficients(&values, &mut coefficients);
        let gap = degree / (2 * n);
        assert!(coefficients.iter().enumerate().all(|(k, &a)| k % gap == 0 || a == 0.0));
        let expected: Vec<Complex> = values.iter().copied().cycle().take(degree / 2).collect();
        let error = distance(&evaluate(&coefficients, degree / 2), &expected);
        assert!(error < bound(degree) * length(&expected), "{n} slots");
        // What lies between the multiples of the gap belongs to other slots and is left out.
        coefficients
            .iter_mut()
            .enumerate()
            .filter(|(k, _)| k % gap != 0)
            .for_each(|(_, a)| *a = 1e9);
        let mut slots = vec![Complex::default(); n];
        embedding.to_slots(&coefficients, &mut slots);
        assert!(distance(&slots, &values) < bound(degree) * length(&values), "{n} slots back");
    }
}

#[test]
fn few_real_slots_repeat() {
    let (log, degree) = (9, 512);
    for n in [1, 2, 4, 64, 256, 512] {
        let values = numbers(n, 13);
        let mut coefficients = vec![f64::NAN; degree];
        let embedding = RealEmbedding::new(log);
        embedding.to_coefficients(&values, &mut coefficients);
        let gap = degree / n;
        assert!(coefficients.iter().enumerate().all(|(k, &a)| k % gap == 0 || a == 0.0));
        let expected: Vec<Complex> =
            values.iter().map(|&x| Complex::from(x)).cycle().take(degree).collect();
        let error = distance(&evaluate(&unfolded(&coefficients), degree), &expected);
        assert!(error < bound(degree) * length(&expected), "{n} slots");
        let mut slots = vec![0.0; n];
        embedding.to_slots(&coefficients, &mut slots);
        let error = norm(slots.iter().zip(&values).map(|(a, b)| a - b));
        assert!(error < bound(degree) * norm(values.iter().copied()), "{n} slots back");
    }
}

/// `X -> X^5` rotates the slots by one: what rotations of ciphertexts rely on.
#[test]
fn automorphisms_rotate() {
    let degree = 256usize;
    let coefficients = numbers(degree, 17);
    let mut turned = vec![0.0; degree];
    for (k, &a) in coefficients.iter().enumerate() {
        let to = 5 * k % (2 * degree);
        turned[to % degree] = if to >= degree { -a } else { a };
    }
    let embedding = Embedding::new(8);
    let (mut slots, mut rotated) = (vec![Complex::default(); 128], vec![Complex::default(); 128]);
    embedding.to_slots(&coefficients, &mut slots);
    embedding.to_slots(&turned, &mut rotated);
    slots.rotate_left(1);
    assert!(distance(&slots, &rotated) < bound(degree) * length(&slots));
}

#[test]
fn there_and_back() {
    for log in [12, 15, 16, 17] {
        let degree = 1usize << log;
        // One slot of 2^40 among small ones: their errors are relative to it, and no worse than
        // that.
        for huge in [1.0, 2f64.powi(40)] {
            let mut values = pairs(&numbers(degree, 19));
            values[degree / 3] = Complex::new(huge, -huge);
            let embedding = Embedding::new(log);
            let mut coefficients = vec![0.0; degree];
            embedding.to_coefficients(&values, &mut coefficients);
            let mut slots = vec![Complex::default(); degree / 2];
            embedding.to_slots(&coefficients, &mut slots);
            assert!(distance(&slots, &values) < 2.0 * bound(degree) * length(&values));

            let mut values = numbers(degree, 23);
            values[degree / 3] = huge;
            let embedding = RealEmbedding::new(log);
            embedding.to_coefficients(&values, &mut coefficients);
            let mut slots = vec![0.0; degree];
            embedding.to_slots(&coefficients, &mut slots);
            let error = norm(slots.iter().zip(&values).map(|(a, b)| a - b));
            assert!(error < 2.0 * bound(degree) * norm(values.iter().copied()));
        }
    }
}

#[test]
#[should_panic(expected = "expected a power of two up to 512 of slots, got 48")]
fn refuses_slots_that_do_not_divide() {
    Embedding::new(10).to_coefficients(&[Complex::default(); 48], &mut [0.0; 1024]);
}
