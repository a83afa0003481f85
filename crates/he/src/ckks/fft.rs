//! Fourier transform: values of a polynomial with complex coefficients at `ζ^(5^j)`, and back.
//!
//! With `n` a power of two and `ζ = exp(iπ/2n)`, the points `ζ^(5^j)`, `j < n`, are the roots of
//! `Y^n - i`. A node at depth `d` of a binary tree holds the points with `j ≡ r mod 2^d`; it is the
//! ring modulo `Y^(n/2^d) - w²` with `w = T_d[r] = exp(iπ 5^r / 2^(d+2))`, and splits into the
//! rings modulo `Y^(n/2^(d+1)) ∓ w`. Two levels at a time: `T_(d+1)[r]² = T_d[r]`, and the right
//! child's root is `-i` times the left one's (`+i` at the root of the tree).
//!
//! The first half of the levels walks the coefficients in order: long runs, one root each. Then the
//! array is put in bit-reversed order, once, and the other half runs over neighbouring `r` with
//! neighbouring roots. So every inner loop is over consecutive doubles, real parts apart from
//! imaginary ones, and the slots come out in order.

use super::roots_of_unity::root_of_unity;

/// Neighbouring runs of real or imaginary parts.
type Runs<'a, const R: usize> = [&'a mut [f64]; R];

/// The plan of one size.
#[derive(Debug)]
pub(crate) struct Fft {
    log: u32,
    /// Roots of two levels each, `r` in bit-reversed order as the nodes lie, for the levels before
    /// the reversal.
    coarse: Vec<Roots>,
    /// The same with `r` in order, for the levels after it.
    fine: Vec<Roots>,
}

/// For every node of a level its root `w`, its left child's root `v`, and `wv`, real parts and
/// imaginary parts apart.
#[derive(Debug)]
struct Roots {
    level: u32,
    parts: [Vec<f64>; 6],
}

impl Roots {
    fn new(level: u32, order: impl Fn(u64) -> u64) -> Self {
        let mut parts = [const { Vec::new() }; 6];
        for i in 0..1u64 << level {
            let power = 5u64.wrapping_pow(order(i) as u32);
            // exp(iπ 5^r / 2^(level + 2)); one level further down; and three times that angle.
            let roots = [
                root_of_unity(power, level + 3),
                root_of_unity(power, level + 4),
                root_of_unity(power.wrapping_mul(3), level + 4),
            ];
            for (parts, z) in parts.as_chunks_mut::<2>().0.iter_mut().zip(roots) {
                parts[0].push(z.re);
                parts[1].push(z.im);
            }
        }
        Roots { level, parts }
    }

    /// The roots from node `first` on.
    fn from(&self, first: usize) -> [&[f64]; 6] {
        self.parts.each_ref().map(|part| &part[first..])
    }
}

/// The lowest `bits` bits of `i` in reverse.
pub(crate) fn reversed(i: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { i.reverse_bits() >> (64 - bits) }
}

/// `(a + bi)(c + di)`.
#[inline(always)]
fn times(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
    (a * c - b * d, a * d + b * c)
}

/// `(a + bi)(c - di)`.
#[inline(always)]
fn times_conjugate(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
    (a * c + b * d, b * c - a * d)
}

impl Fft {
    /// The plan for `2^log` points.
    pub(crate) fn new(log: u32) -> Self {
        // An odd level comes first, alone; what is left is split evenly between the two orders.
        let odd = log % 2;
        let coarse = (log / 2).div_ceil(2);
        Fft {
            log,
            coarse: (0..coarse)
                .map(|k| odd + 2 * k)
                .map(|level| Roots::new(level, |p| reversed(p, level)))
                .collect(),
            fine: (coarse..log / 2)
                .map(|k| odd + 2 * k)
                .map(|level| Roots::new(level, |r| r))
                .collect(),
        }
    }

    /// Points.
    pub(crate) fn len(&self) -> usize {
        1 << self.log
    }

    /// Values at the points, in `out`, of the polynomial in `work`; both hold `n` real parts, then
    /// `n` imaginary ones. `work` is overwritten.
    pub(crate) fn forward(&self, work: &mut [f64], out: &mut [f64]) {
        let (re, im) = work.split_at_mut(self.len());
        if self.log % 2 == 1 {
            first_level::<false>(re, im);
        }
        self.coarse.iter().for_each(|roots| walk_nodes::<false>(re, im, roots));
        self.reverse(work, out);
        let (re, im) = out.split_at_mut(self.len());
        self.fine.iter().for_each(|roots| walk_neighbours::<false>(re, im, roots));
    }

    /// `n` times the polynomial, in `out`, whose values at the points are in `work`, which is
    /// overwritten.
    pub(crate) fn inverse(&self, work: &mut [f64], out: &mut [f64]) {
        let (re, im) = work.split_at_mut(self.len());
        self.fine.iter().rev().for_each(|roots| walk_neighbours::<true>(re, im, roots));
        self.reverse(work, out);
        let (re, im) = out.split_at_mut(self.len());
        self.coarse.iter().rev().for_each(|roots| walk_nodes::<true>(re, im, roots));
        if self.log % 2 == 1 {
            first_level::<true>(re, im);
        }
    }

    fn reverse(&self, from: &[f64], to: &mut [f64]) {
        for (from, to) in from.chunks_exact(self.len()).zip(to.chunks_exact_mut(self.len())) {
            bit_reverse(from, to, self.log);
        }
    }
}

/// `to[i]` is `from` at `i` with its bits reversed, in blocks of 8 × 8 so that every cache line is
/// used whole.
fn bit_reverse(from: &[f64], to: &mut [f64], log: u32) {
    const BITS: u32 = 3;
    const SIDE: usize = 1 << BITS;
    if log < 2 * BITS {
        for (i, x) in to.iter_mut().enumerate() {
            *x = from[reversed(i as u64, log) as usize];
        }
        return;
    }
    let row = to.len() / SIDE;
    let back = [0usize, 4, 2, 6, 1, 5, 3, 7];
    for middle in 0..row / SIDE {
        let source = reversed(middle as u64, log - 2 * BITS) as usize * SIDE;
        let mut block = [[0.0; SIDE]; SIDE];
        for (i, line) in block.iter_mut().enumerate() {
            line.copy_from_slice(&from[i * row + source..][..SIDE]);
        }
        for (i, target) in to.chunks_exact_mut(row).enumerate() {
            let target = &mut target[middle * SIDE..][..SIDE];
            for (x, &k) in target.iter_mut().zip(&back) {
                *x = block[k][back[i]];
            }
        }
    }
}

fn halves(run: &mut [f64]) -> Runs<'_, 2> {
    let (a, b) = run.split_at_mut(run.len() / 2);
    [a, b]
}

fn quarters(run: &mut [f64]) -> Runs<'_, 4> {
    let [a, b] = halves(run);
    let ([a, b], [c, d]) = (halves(a), halves(b));
    [a, b, c, d]
}

/// The level that an odd number leaves over: the root of the tree, whose own root is `exp(iπ/4)`.
fn first_level<const BACK: bool>(re: &mut [f64], im: &mut [f64]) {
    let root = root_of_unity(1, 3);
    let ([x0, x1], [y0, y1]) = (halves(re), halves(im));
    for ((x0, y0), (x1, y1)) in x0.iter_mut().zip(y0).zip(x1.iter_mut().zip(y1)) {
        if BACK {
            let (t, u) = (*x0 - *x1, *y0 - *y1);
            (*x0, *y0) = (*x0 + *x1, *y0 + *y1);
            (*x1, *y1) = times_conjugate(t, u, root.re, root.im);
        } else {
            let (t, u) = times(*x1, *y1, root.re, root.im);
            (*x1, *y1) = (*x0 - t, *y0 - u);
            (*x0, *y0) = (*x0 + t, *y0 + u);
        }
    }
}

/// Two levels before the reversal: a node is a run, its children are its halves.
fn walk_nodes<const BACK: bool>(re: &mut [f64], im: &mut [f64], roots: &Roots) {
    let size = re.len() >> roots.level;
    for (node, (re, im)) in re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)).enumerate() {
        // +i instead of -i at the root of the tree.
        let sign = if roots.level == 0 { -1.0 } else { 1.0 };
        sweep::<false, BACK>(quarters(re), quarters(im), roots.from(node), sign);
    }
}

/// Two levels after it: the nodes of a level are neighbours, halves of a child are two runs apart.
fn walk_neighbours<const BACK: bool>(re: &mut [f64], im: &mut [f64], roots: &Roots) {
    let size = 4 << roots.level;
    for (re, im) in re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)) {
        let ([x0, x2, x1, x3], [y0, y2, y1, y3]) = (quarters(re), quarters(im));
        sweep::<true, BACK>([x0, x1, x2, x3], [y0, y1, y2, y3], roots.from(0), 1.0);
    }
}

/// Two levels over four runs a quarter of the node apart, one root for all (`NEIGHBOURS` false) or
/// one for each place.
///
/// Down: with `a ± c = x0 ± w x2` and `b ± e = v x1 ± wv x3` the values are `a ± b` in the places
/// of `x0` and `x1`, and `c ∓ ie` in those of `x2` and `x3`, `±` for a `sign` of -1. Back: the same
/// undone, without the quarter.
#[inline(always)]
fn sweep<const NEIGHBOURS: bool, const BACK: bool>(
    [x0, x1, x2, x3]: Runs<'_, 4>,
    [y0, y1, y2, y3]: Runs<'_, 4>,
    roots: [&[f64]; 6],
    sign: f64,
) {
    let n = x0.len();
    let (x1, x2, x3) = (&mut x1[..n], &mut x2[..n], &mut x3[..n]);
    let (y0, y1, y2, y3) = (&mut y0[..n], &mut y1[..n], &mut y2[..n], &mut y3[..n]);
    let [w, w_im, v, v_im, wv, wv_im] = roots.map(|z| &z[..if NEIGHBOURS { n } else { 1 }]);
    for i in 0..n {
        let k = if NEIGHBOURS { i } else { 0 };
        if BACK {
            let ((a, a_im), (b, b_im)) =
                ((x0[i] + x1[i], y0[i] + y1[i]), (x0[i] - x1[i], y0[i] - y1[i]));
            let ((c, c_im), (e, e_im)) =
                ((x2[i] + x3[i], y2[i] + y3[i]), (sign * (y3[i] - y2[i]), sign * (x2[i] - x3[i])));
            (x0[i], y0[i]) = (a + c, a_im + c_im);
            (x1[i], y1[i]) = times_conjugate(b + e, b_im + e_im, v[k], v_im[k]);
            (x2[i], y2[i]) = times_conjugate(a - c, a_im - c_im, w[k], w_im[k]);
            (x3[i], y3[i]) = times_conjugate(b - e, b_im - e_im, wv[k], wv_im[k]);
        } else {
            let (p, q) = times(x2[i], y2[i], w[k], w_im[k]);
            let (s, t) = times(x1[i], y1[i], v[k], v_im[k]);
            let (f, g) = times(x3[i], y3[i], wv[k], wv_im[k]);
            let ((a, a_im), (c, c_im)) = ((x0[i] + p, y0[i] + q), (x0[i] - p, y0[i] - q));
            let ((b, b_im), (e, e_im)) = ((s + f, t + g), (sign * (s - f), sign * (t - g)));
            (x0[i], y0[i]) = (a + b, a_im + b_im);
            (x1[i], y1[i]) = (a - b, a_im - b_im);
            (x2[i], y2[i]) = (c + e_im, c_im - e);
            (x3[i], y3[i]) = (c - e_im, c_im + e);
        }
    }
}
