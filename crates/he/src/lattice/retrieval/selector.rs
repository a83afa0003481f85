//! Selectors: gadget encryptions of bits, the external product, and the tree of columns that folds by it. Server
//! only.
//!
//! A selector of a bit m has rows that encrypt `m · 2^p` and `m · t · 2^p` under t. With the digits of a
//! ciphertext (u, v) it gives a ciphertext of m times its message: external product, `m ⊡ (u, v)`.

use crate::lattice::ring::inner::SwitchingKey;
use crate::lattice::ring::{Buffer, DEGREE, Ring, STRIDE, Scratch, Sums, times_secret};
use ciphervec_arith::convert::SignedDigits;
use ciphervec_arith::modulus::Modulus;
use ciphervec_arith::parallel::*;
use ciphervec_arith::poly;
use core::ops::Range;

/// Digits of v, whose rounding t multiplies.
pub const GADGET: SignedDigits = SignedDigits { bits: 7, count: 4 };
/// Digits of u: the upper ones of the same places, as its rounding stands alone.
const UPPER: SignedDigits = SignedDigits { bits: 7, count: 3 };
/// Rows of a selector.
const ROWS: usize = (UPPER.count + GADGET.count) as usize;
/// Rows of v that u has none beside.
const LOWER: usize = (GADGET.count - UPPER.count) as usize;

/// 2^p / 2^k modulo q, what a query encrypts for digit `index` of a one: k steps of the tree double it k times.
pub fn first_message(q: &Modulus, index: u32, steps: u8) -> u64 {
    let half = q.value().div_ceil(2);
    q.mul(q.reduce(1 << GADGET.place(index)), q.pow(half, u64::from(steps)))
}

/// A gadget encryption of one bit, NTT form.
pub(super) struct Selector {
    /// c0 of the rows for u, then of those for v; then c1.
    rows: Buffer,
}

impl Selector {
    /// Bytes of one.
    pub const BYTES: usize = 2 * ROWS * DEGREE * size_of::<u64>();

    /// Of what encrypts each digit of the bit: `node` writes both components. `square` switches t² to t.
    pub fn new(
        ring: &Ring,
        square: &[SwitchingKey],
        node: impl Fn(usize, &mut [u64], &mut [u64]),
        scratch: &mut Scratch,
    ) -> Self {
        let mut rows = Buffer::take(2 * ROWS * DEGREE);
        let [mut constant, mut linear] = [Buffer::take(DEGREE), Buffer::take(DEGREE)];
        let (constants, linears) = rows.split_at_mut(ROWS * DEGREE);
        for digit in 0..GADGET.count as usize {
            node(digit, &mut constant, &mut linear);
            let lower = row(UPPER.count as usize + digit);
            let out = [&mut constants[lower.clone()], &mut linears[lower]];
            times_secret(ring, square, [&constant, &linear], out, scratch);
            if digit >= LOWER {
                constants[row(digit - LOWER)].copy_from_slice(&constant);
                linears[row(digit - LOWER)].copy_from_slice(&linear);
            }
        }
        Selector { rows }
    }

    /// x + m ⊡ (y − x), the message of x if m is 0 and of y if it is 1. NTT form; y is overwritten.
    fn choose(&self, ring: &Ring, x: [&mut [u64]; 2], y: [&mut [u64]; 2], work: &mut Products) {
        work.cut(ring, [&*x[0], &*x[1]], y);
        let products = self.products(ring, work);
        for (x, product) in x.into_iter().zip(products) {
            poly::add_assign(x, product, ring.modulus());
        }
    }

    /// The external product with what was cut.
    fn products<'a>(&self, ring: &Ring, work: &'a mut Products) -> [&'a [u64]; 2] {
        let rows = |polys| -> [&[u64]; ROWS] {
            core::array::from_fn(|at| &<[u64]>::as_ref(polys)[row(at)])
        };
        let (constants, linears) = self.rows.split_at(ROWS * DEGREE);
        let [digits, constants, linears] = [&work.digits, constants, linears].map(rows);
        let (u, v) = work.sums.split_at_mut(DEGREE);
        poly::dot_pair(u, v, &digits, &constants, &linears, ring.modulus());
        [u, v]
    }
}

/// Where a row's words are among those of a component.
fn row(index: usize) -> Range<usize> {
    index * DEGREE..(index + 1) * DEGREE
}

/// What one thread needs for an external product.
struct Products {
    digits: Buffer,
    sums: Buffer,
}

impl Products {
    fn new() -> Self {
        Products { digits: Buffer::take(ROWS * DEGREE), sums: Buffer::take(2 * DEGREE) }
    }

    /// Cuts y − x into digits. NTT form; y is overwritten.
    fn cut(&mut self, ring: &Ring, x: [&[u64]; 2], y: [&mut [u64]; 2]) {
        let (table, q) = (ring.tables()[0], ring.modulus());
        let (upper, lower) = self.digits.split_at_mut(UPPER.count as usize * DEGREE);
        for ((digits, gadget), (x, y)) in
            [(upper, UPPER), (lower, GADGET)].into_iter().zip(x.into_iter().zip(y))
        {
            poly::sub_assign(y, x, q);
            table.inverse(y);
            for (index, digit) in digits.chunks_exact_mut(DEGREE).enumerate() {
                gadget.cut(index as u32, digit, y, q);
                table.forward(digit);
            }
        }
    }
}

/// Folds columns of so many blocks, in NTT form, in pairs, as the bits of the wanted one's number say, and leaves that in the first
/// column. What stands alone passes: no number has a bit that would choose what is not there.
pub(super) fn fold(ring: &Ring, selectors: &[Selector], columns: &mut Sums, blocks: usize) {
    for (level, selector) in selectors.iter().enumerate() {
        let half = (blocks * STRIDE) << level;
        let [u, v] = columns.parts_mut();
        let pairs = u.par_chunks_mut(2 * half).zip(v.par_chunks_mut(2 * half));
        pairs.for_each_init(Products::new, |work, (u, v)| {
            let [(x_u, y_u), (x_v, y_v)] =
                [u, v].map(|part| part.split_at_mut(half.min(part.len())));
            for ([x_u, x_v], [y_u, y_v]) in polys([x_u, x_v]).zip(polys([y_u, y_v])).take(blocks) {
                selector.choose(ring, [x_u, x_v], [y_u, y_v], work);
            }
        });
    }
}

/// The lowest bit of [`fold`] for several wanted columns, each with its selector: what is left of the columns for each of them. Their
/// digits are shared.
pub(super) fn fold_together(
    ring: &Ring,
    selectors: &[&Selector],
    columns: &mut Sums,
    blocks: usize,
) -> Vec<Sums> {
    let half = blocks * STRIDE;
    let [u, v] = columns.parts_mut();
    let pairs = u.len().div_ceil(2 * half);
    let mut folded: Vec<Sums> = selectors.iter().map(|_| Sums::take(pairs * blocks)).collect();
    let mut outs: Vec<Vec<_>> = (0..pairs).map(|_| Vec::with_capacity(selectors.len())).collect();
    for sums in &mut folded {
        let [u, v] = sums.parts_mut();
        let parts = u.chunks_mut(half).zip(v.chunks_mut(half));
        outs.iter_mut().zip(parts).for_each(|(outs, (u, v))| outs.push(polys([u, v])));
    }
    let pairs = u.par_chunks_mut(2 * half).zip(v.par_chunks_mut(2 * half)).zip(outs);
    pairs.for_each_init(Products::new, |work, ((u, v), mut outs)| {
        let [(x_u, y_u), (x_v, y_v)] = [u, v].map(|part| part.split_at_mut(half.min(part.len())));
        let mut others = polys([y_u, y_v]);
        for x in polys([x_u, x_v]) {
            let other = others.next();
            let alone = other.is_none();
            if let Some(y) = other {
                work.cut(ring, [&*x[0], &*x[1]], y);
            }
            for (selector, outs) in selectors.iter().zip(&mut outs) {
                let Some(mut out) = outs.next() else { continue };
                out.iter_mut().zip(&x).for_each(|(out, x)| out.copy_from_slice(x));
                if alone {
                    continue;
                }
                let products = selector.products(ring, work);
                for (out, product) in out.into_iter().zip(products) {
                    poly::add_assign(out, product, ring.modulus());
                }
            }
        }
    });
    folded
}

/// U and V of each block.
fn polys(parts: [&mut [u64]; 2]) -> impl Iterator<Item = [&mut [u64]; 2]> {
    let [u, v] = parts.map(|part| part.chunks_exact_mut(STRIDE).map(|poly| &mut poly[..DEGREE]));
    u.zip(v).map(|(u, v)| [u, v])
}
