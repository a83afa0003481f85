//! Number-theoretic transform, two stages at a time, on signed words of up to four times the
//! modulus; `residue.rs` says why not on vectors.

use super::residue::{Prime, Root, read, write};
use crate::backend::operands::ntt::NttPlan;
use crate::backend::portable;

/// Powers of psi in tree order.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    forward: Vec<Root>,
    inverse: Vec<Root>,
    /// `N^-1`, or `(2N)^-1` before an unfolding, and that times the twiddle of the last inverse
    /// stage, which absorbs the scaling.
    scale: Root,
    scaled_last: Root,
}

pub(crate) fn roots(plan: &NttPlan) -> Roots {
    let (forward, inverse) = plan.powers();
    let (q, scale) = (&plan.modulus, plan.scale());
    Roots {
        scaled_last: Root::new(q, q.mul(scale, inverse[1])),
        scale: Root::new(q, scale),
        forward: forward.into_iter().map(|w| Root::new(q, w)).collect(),
        inverse: inverse.into_iter().map(|w| Root::new(q, w)).collect(),
    }
}

/// The roots of a node and of its two children.
type Family = [Root; 3];

#[inline(always)]
fn family(tree: &[Root], node: usize) -> Family {
    [tree[node], tree[2 * node], tree[2 * node + 1]]
}

/// Four words of one node, or one of each of its quarters, as `step` leaves them.
#[inline(always)]
fn replace(words: [&mut i64; 4], step: impl FnOnce([i64; 4]) -> [i64; 4]) {
    let [a, b, c, d] = words;
    let values = step([read(a), read(b), read(c), read(d)]);
    write(a, values[0]);
    write(b, values[1]);
    write(c, values[2]);
    write(d, values[3]);
}

/// Every node of a depth with its quarters.
#[inline(always)]
fn for_quarters(data: &mut [i64], quarter: usize, mut pass: impl FnMut(usize, [&mut [i64]; 4])) {
    for (index, block) in data.chunks_exact_mut(4 * quarter).enumerate() {
        let (low, high) = block.split_at_mut(2 * quarter);
        let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
        pass(index, [a, b, c, d]);
    }
}

/// `[0, q)`, or `[0, 4q)` if `LAZY`, to `[0, q)`.
pub(crate) fn forward<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
    if let Some(fold) = &plan.fold {
        portable::ntt::fold_halves(&plan.modulus, data, &fold.forward);
    }
    let (p, tree) = (Prime::new(&plan.modulus), &roots.forward[..]);
    let data: &mut [i64] = bytemuck::cast_slice_mut(data);
    let (mut nodes, mut size) = (1, data.len());
    if size.trailing_zeros() % 2 == 1 {
        let (low, high) = data.split_at_mut(size / 2);
        for (x, y) in low.iter_mut().zip(high) {
            let (sum, difference) = split(p, p.halve(read(x), 2), read(y), tree[1]);
            write(x, sum);
            write(y, difference);
        }
        (nodes, size) = (2, size / 2);
    }
    while size > 4 {
        for_quarters(data, size / 4, |index, [a, b, c, d]| {
            let w = family(tree, nodes + index);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                replace([a, b, c, d], |x| forward4(p, x, w));
            }
        });
        (nodes, size) = (4 * nodes, size / 4);
    }
    let (parents, children) = (&tree[nodes..2 * nodes], tree[2 * nodes..].as_chunks::<2>().0);
    let blocks = data.as_chunks_mut::<4>().0;
    for ((block, &parent), &[left, right]) in blocks.iter_mut().zip(parents).zip(children) {
        let w = [parent, left, right];
        replace(block.each_mut(), |x| forward4(p, x, w).map(|x| p.finish(x) as i64));
    }
}

/// Cooley-Tukey: `(x + w y, x - w y)`.
#[inline(always)]
fn split(p: Prime, x: i64, y: i64, w: Root) -> (i64, i64) {
    let t = p.times(y, w);
    (x + t, x - t)
}

/// Two stages. All below `4q` in size, before and after: from `2q` or `4q` for the factors it is `3q`
/// in between, and below `3.9q` then.
#[inline(always)]
fn forward4(p: Prime, [a, b, c, d]: [i64; 4], w: Family) -> [i64; 4] {
    let (a, c) = split(p, p.halve(a, 2), c, w[0]);
    let (b, d) = split(p, p.halve(b, 2), d, w[0]);
    let (a, b) = split(p, a, b, w[1]);
    let (c, d) = split(p, c, d, w[2]);
    [a, b, c, d]
}

/// `[0, q)`, or `[0, 2q)` if `LAZY`, to `[0, q)`, scaled by `N^-1`.
pub(crate) fn inverse<const LAZY: bool>(plan: &NttPlan, roots: &Roots, data: &mut [u64]) {
    let (p, tree) = (Prime::new(&plan.modulus), &roots.inverse[..]);
    let values: &mut [i64] = bytemuck::cast_slice_mut(data);
    let mut nodes = values.len() / 4;
    let (parents, children) = (&tree[nodes..2 * nodes], tree[2 * nodes..].as_chunks::<2>().0);
    let blocks = values.as_chunks_mut::<4>().0;
    for ((block, &parent), &[left, right]) in blocks.iter_mut().zip(parents).zip(children) {
        let w = [parent, left, right];
        replace(block.each_mut(), |x| {
            inverse4(p, if LAZY { x.map(|x| p.centre_lazy(x)) } else { x }, w)
        });
    }
    while nodes > 4 {
        nodes /= 4;
        let quarter = values.len() / nodes / 4;
        for_quarters(values, quarter, |index, [a, b, c, d]| {
            let w = family(tree, nodes + index);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                replace([a, b, c, d], |x| inverse4(p, x, w));
            }
        });
    }
    let quarter = values.len() / 4;
    if nodes == 2 {
        let (low, high) = values.split_at_mut(2 * quarter);
        for (x, y) in low.iter_mut().zip(high) {
            let (sum, difference) = (read(x) + read(y), read(x) - read(y));
            write(x, p.canonical(p.times(sum, roots.scale)) as i64);
            write(y, p.canonical(p.times(difference, roots.scaled_last)) as i64);
        }
    } else {
        let (w, last) = (family(tree, 1), [roots.scale, roots.scaled_last]);
        for_quarters(values, quarter, |_, [a, b, c, d]| {
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                replace([a, b, c, d], |x| {
                    inverse4_last(p, x, [w[1], w[2]], last).map(|x| p.canonical(x) as i64)
                });
            }
        });
    }
    if let Some(fold) = &plan.fold {
        portable::ntt::fold_halves(&plan.modulus, data, &fold.inverse);
        data[0] += data[0];
        portable::ntt::canonical(&plan.modulus, data);
    }
}

/// Gentleman-Sande: `(x + y, (x - y) w)`.
#[inline(always)]
fn join(p: Prime, x: i64, y: i64, w: Root) -> (i64, i64) {
    (x + y, p.times(x - y, w))
}

/// Two stages. All up to `q` in size, before and after.
#[inline(always)]
fn inverse4(p: Prime, [a, b, c, d]: [i64; 4], w: Family) -> [i64; 4] {
    let (a, b) = join(p, a, b, w[1]);
    let (c, d) = join(p, c, d, w[2]);
    let (a, c) = join(p, a, c, w[0]);
    let (b, d) = join(p, b, d, w[0]);
    [p.reduce(a), p.halve(b, 1), c, d]
}

/// The last two stages, scaled: up to `q` in size, and less than that after.
#[inline(always)]
fn inverse4_last(p: Prime, [a, b, c, d]: [i64; 4], w: [Root; 2], last: [Root; 2]) -> [i64; 4] {
    let (a, b) = join(p, a, b, w[0]);
    let (c, d) = join(p, c, d, w[1]);
    [
        p.times(a + c, last[0]),
        p.times(b + d, last[0]),
        p.times(a - c, last[1]),
        p.times(b - d, last[1]),
    ]
}
