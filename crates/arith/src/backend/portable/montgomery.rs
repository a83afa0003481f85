//! Montgomery products, one residue at a time, on signed limbs in base `2^60`.
//!
//! Limbs lie in `[-2^59, 2^59)`. A column sums at most 511 products, each at most `2^118`, in 128
//! bits.

const WIDTH: usize = 1;
const RADIX: u32 = 60;
const TILE: usize = 2;
pub(crate) const FORMAT: LimbFormat =
    LimbFormat { radix: RADIX, width: WIDTH, tile: TILE, signed: true, encode, decode };

type V = i64;
type Acc = i128;

/// How a limb is stored.
fn encode(limb: i64) -> u64 {
    limb as u64
}

/// [`encode`], undone.
fn decode(word: u64) -> i64 {
    word as i64
}

#[inline]
fn zero() -> Acc {
    0
}

#[inline]
fn load(limbs: &Limbs) -> V {
    limbs[0] as i64
}

#[inline]
fn store(limbs: &mut Limbs, limb: V) {
    limbs[0] = limb as u64;
}

#[inline]
fn splat(word: u64) -> V {
    word as i64
}

#[inline]
fn multiply(acc: &mut Acc, a: V, b: V) {
    *acc += i128::from(a) * i128::from(b);
}

#[inline]
fn unbias(_: &mut Acc, _: u64) {}

#[inline]
fn double(acc: &mut Acc) {
    *acc <<= 1;
}

#[inline]
fn join(acc: &mut Acc, other: &Acc) {
    *acc += other;
}

#[inline]
fn subtract(acc: &mut Acc, limb: V) {
    *acc -= i128::from(limb);
}

#[inline]
fn add_word(acc: &mut Acc, word: u64) {
    *acc += i128::from(word);
}

#[inline]
fn low(word: i64) -> V {
    word << (64 - RADIX) >> (64 - RADIX)
}

/// The limb of a column and what it passes to the next one.
#[inline]
fn carry(acc: Acc) -> (V, Acc) {
    let limb = low(acc as i64);
    (limb, (acc - i128::from(limb)) >> RADIX)
}

#[inline]
fn pass(acc: &mut Acc, carry: Acc) {
    *acc += carry;
}

#[inline]
fn digit(acc: &Acc, inverse: V) -> V {
    low((*acc as i64).wrapping_mul(inverse))
}

/// No limb chosen yet.
#[inline]
fn nothing() -> u64 {
    0
}

#[inline]
fn bits(limbs: &Limbs) -> u64 {
    limbs[0]
}

#[inline]
fn same(word: u64) -> u64 {
    word
}

/// All ones if the index is that of the entry, without a branch.
#[inline]
fn equal(index: &Limbs, entry: u64) -> u64 {
    let difference = index[0] ^ entry;
    // Hidden from the optimiser, which otherwise turns the mask into a branch: `benches/timing` sees that.
    core::hint::black_box(((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1))
}

/// `x` where the mask is set.
#[inline]
fn merge(chosen: u64, mask: u64, x: u64) -> u64 {
    chosen | (x & mask)
}

#[inline]
fn keep(limbs: &mut Limbs, chosen: u64) {
    limbs[0] = chosen;
}

crate::backend::montgomery_products::montgomery_products!();
