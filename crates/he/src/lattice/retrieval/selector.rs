//! Selectors: gadget encryptions of bits, the external product, and the tree of columns that folds by it. Server
//! only.
//!
//! A selector of a bit m has rows that encrypt `m · 2^p` and `m · t · 2^p` under t. With the digits of a
//! ciphertext (u, v) it gives a ciphertext of m times its message: external product, `m ⊡ (u, v)`.

use super::SelectorKeys;
use crate::lattice::ring::{Buffer, DEGREE, Expanded, Ring, STRIDE, Scratch, Sums, times_secret};
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
    /// Of nodes of an expanded query from `first` on, one a digit.
    pub fn new(
        ring: &Ring,
        keys: &SelectorKeys,
        query: &Expanded,
        first: usize,
        scratch: &mut Scratch,
    ) -> Self {
        let mut rows = Buffer::take(2 * ROWS * DEGREE);
        let [mut constant, mut linear] = [Buffer::take(DEGREE), Buffer::take(DEGREE)];
        let (constants, linears) = rows.split_at_mut(ROWS * DEGREE);
        for digit in 0..GADGET.count as usize {
            query.node(first + digit, &mut constant, &mut linear);
            let lower = row(UPPER.count as usize + digit);
            let out = [&mut constants[lower.clone()], &mut linears[lower]];
            times_secret(ring, keys.square(), [&constant, &linear], out, scratch);
            if digit >= LOWER {
                constants[row(digit - LOWER)].copy_from_slice(&constant);
                linears[row(digit - LOWER)].copy_from_slice(&linear);
            }
        }
        Selector { rows }
    }

    /// x + m ⊡ (y − x), the message of x if m is 0 and of y if it is 1. NTT form; y is overwritten.
    fn choose(&self, ring: &Ring, x: [&mut [u64]; 2], y: [&mut [u64]; 2], work: &mut Products) {
        let (table, q) = (ring.tables()[0], ring.modulus());
        let (upper, lower) = work.digits.split_at_mut(UPPER.count as usize * DEGREE);
        for ((digits, gadget), (x, y)) in
            [(upper, UPPER), (lower, GADGET)].into_iter().zip(x.iter().zip(y))
        {
            poly::sub_assign(y, x, q);
            table.inverse(y);
            for (index, digit) in digits.chunks_exact_mut(DEGREE).enumerate() {
                gadget.cut(index as u32, digit, y, q);
                table.forward(digit);
            }
        }
        let rows = |polys| -> [&[u64]; ROWS] {
            core::array::from_fn(|at| &<[u64]>::as_ref(polys)[row(at)])
        };
        let (constants, linears) = self.rows.split_at(ROWS * DEGREE);
        let [digits, constants, linears] = [&work.digits, constants, linears].map(rows);
        let (u, v) = work.sums.split_at_mut(DEGREE);
        poly::dot_pair(u, v, &digits, &constants, &linears, q);
        for (x, product) in x.into_iter().zip([u, v]) {
            poly::add_assign(x, product, q);
        }
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
}

/// Folds columns in NTT form in pairs, as the bits of the wanted one's number say, and leaves that in the first column. What
/// stands alone passes: no number has a bit that would choose what is not there.
pub(super) fn fold(ring: &Ring, selectors: &[Selector], columns: &mut Sums) {
    for (level, selector) in selectors.iter().enumerate() {
        let half = STRIDE << level;
        let [u, v] = columns.parts_mut();
        let pairs = u.par_chunks_mut(2 * half).zip(v.par_chunks_mut(2 * half));
        pairs.for_each_init(Products::new, |work, (u, v)| {
            if u.len() <= half {
                return;
            }
            let ((x_u, y_u), (x_v, y_v)) = (u.split_at_mut(half), v.split_at_mut(half));
            let x = [&mut x_u[..DEGREE], &mut x_v[..DEGREE]];
            selector.choose(ring, x, [&mut y_u[..DEGREE], &mut y_v[..DEGREE]], work);
        });
    }
}
