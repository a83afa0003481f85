//! Checks of answers, ring form. Owner only: what a server sends is held against secret sums of what
//! was sealed, before anything of it is ranked (`docs/sealed.md`, section 4.5).
//!
//! With secret weights ρ_i and H_i = Σ_v ρ_iv (D^(v) + e^(v)) of a group of rows, kept in the
//! sidecar, an honest answer leaves
//!
//! ```text
//! R_i = Σ_v ρ_iv z_v − ⟨m, H_i⟩
//! ```
//!
//! of noise alone, m being the query as the tree's nodes hold it. Σ R_i² is tested. A group of few
//! rows has the rows themselves as sums: its scores are computed here, and what came is not looked at.
//!
//! Bytes, block by block and group by group. Rows: 32-bit words, little-endian, a word a dimension. Sums:
//! see [`super::stored_sums`], behind their length as u32; and a block that has some begins with the BLAKE3
//! of its packed words, because sums that were rounded say nothing of the last bits.
//!
//! # False alarms
//!
//! Given ρ, the signs and the rows, R is Gaussian. With k independent sums Σ R_i² would be χ² of 48
//! degrees; sums over n rows have a covariance with the eigenvalues of a Wishart matrix. By Chernoff's
//! bound these are passed with 2⁻⁵⁰:
//!
//! |rows of the group|∞|1,000|500|200|129|
//! |---|---:|---:|---:|---:|---:|
//! |exceeded with 2⁻⁵⁰|181|195|204|240|262|
//! |limit|230|242|254|290|323|
//!
//! The quarter beyond is for T², an average over an epoch's evaluation keys, and for equal rows, whose
//! noise has hundreds of independent parts in place of thousands
//! (`crates/he-secret/tests/suite/ring_check.rs`: at most 112 in 1,800 groups).
//!
//! # Groups, weights and signs
//!
//! A group is a block's rows, or those of a half where a block has more than 2,048. At most 128 rows have d words of 32 bits
//! each; a larger group has 48 sums a dimension. Weights are a byte each of the stream under the key derived as `answer-check`:
//! twice its three lowest bits, less 7. The sign of row v is bit v of the stream under BLAKE3's `derive_key` of the segment id,
//! context `ciphervec v1 row-signs`; that of dimension i bit i under the mask seed, `ciphervec v1 dimension-signs`, where the
//! index has an incarnation. A set bit negates. Segments without a witness have no signs.
//!
//! # What is compared, and what passes
//!
//! **The tree at the owner.** The owner expands its query as the server does (`docs/sealed.md`, section 2.1), with the same evaluation keys,
//! and takes
//!
//! - S0 = Σ a_r c0_r and S1 = Σ a_r c1_r of every level that occurs;
//! - m_i, the coefficient of c0_r + t c1_r that holds dimension i: 2^k q_i with the tree's noise at that place.
//!
//! Evaluation keys that the store has are compared with the owner's authenticated state. An answer to another query was
//! computed from another c1: in `sealed` it decrypts to uniform integers, in `sealed-query`, where rows have no masks, to
//! that query's scores.
//!
//! **Signs.** Row v of a segment is sealed as s_v x_v, and dimension i of rows and queries as σ_i x_i. Both signs are
//! public, drawn from names (the segment's id, the mask seed), and cancel in every score. They make the noise of a block's
//! scores, D * e', white, whatever the rows.
//!
//! **Sums.** A group has at most 2,048 rows of one block. For k = 48 secret vectors ρ of odd integers between −7 and 7,
//! derived from the segment's root key, the sealer stores
//!
//! ```text
//! H_i = Σ_v ρ_iv (D^(v) + e^(v))        d sums for each i, rounded, in the encrypted row index.
//! ```
//!
//! e^(v) is the row's own noise, which repeats in every query and so cancels. From an answer that decrypts to integers z_v
//! the owner forms
//!
//! ```text
//! R_i = Σ_v ρ_iv z_v − Σ_j m_j H_ij        over the integers, from centred z_v,
//! ```
//!
//! after comparing each |z_v| with the largest that a unit vector gives, with 12 deviations. (Modulo q a change of (q −
//! 1)/2 would pass with probability ½.) In an honest answer R_i is the weighted sum of what the tree's noise, less the
//! coefficients in m, and the rounding of the answer add to the scores. Its variance is E ρ² = 21 times n times
//!
//! ```text
//! N_b Δx² T² + m N σ² T² + rounding of U and V        with the names of `bound.rs` of `ciphervec-he`, N_b the other rows of the block,
//! ```
//!
//! plus what rounding the sums adds. The answer is refused if Σ R_i² is more than 230 + 12,000/n such variances.
//!
//! **A group of at most 128 rows has its rows themselves as sums.** The owner computes their scores exactly and ignores
//! what came, so neither results nor failures depend on the answer. Comparing it with the rows would give a lying server
//! the query key: in a group of one row a monomial in V shifts the score by a multiple of one coefficient of t, U shifts it
//! back by the server's guess, and the owner's state names the groups that failed.
//!
//! **What passes.** ΔV, chosen without t, adds t ΔV to all scores of a block. If its size is x deviations of a score's
//! noise, R has the variance 1 + 2x²/3, and the answer passes with the chance that χ² of 48 is below the limit over that.
//! The figures of `docs/sealed.md`, section 4.5, include the spread of Σ t_j² over the group's rows, and of the noise's
//! size. Without an incarnation dimensions have no signs and the limit is eight times as high. A known shift of one row by
//! δ adds 48 δ²/(n σ²) on average, less where the row's weights are small; the page's figures are over all weights and
//! noises.

use super::stored_sums::{CHECKS, ENERGY, SumSizes, unpack};
use super::{AskedLevel, Layout, Ring, ScoreNoise};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::SegmentId;
use ciphervec_arith::sample::{GAUSSIAN_BOUND, Stream};
use ciphervec_arith::wrapping;
use core::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// Rows of a group, at most: what a shift of one row has to rise above.
const GROUP: usize = 2048;
/// Rows up to which a group has a check a row.
const FEW: usize = 128;
/// Bytes of a word.
const WORD: usize = 4;
/// Σ R_i² over the variance of one R_i, beyond which an answer is refused, and what more of it a group
/// of n rows is granted, n times: the R_i of a small group are less independent.
///
/// By Chernoff's bound 181 is passed with 2⁻⁵⁰ by 48 independent ones, and 195, 204, 240 and 262 in
/// groups of 1,000, 500, 200 and 129 rows; a quarter more is granted (above).
const LIMIT: [f64; 2] = [230.0, 12_000.0];
/// How much more is granted where dimensions have no signs: smooth rows then share few frequencies.
const UNSIGNED: f64 = 8.0;
/// Deviations of its noise that one score may be off by.
const ROW_DEVIATIONS: f64 = 12.0;

/// The groups of a block with so many rows.
fn check_groups(layout: &Layout, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let full = check_rows(layout);
    (0..rows).step_by(full).map(move |first| first..rows.min(first + full))
}

/// Rows of a full group: a block's, or an equal part of them.
fn check_rows(layout: &Layout) -> usize {
    let block = layout.vectors_per_block();
    block.div_ceil(block.div_ceil(GROUP).next_power_of_two())
}

/// Whether a block with so many rows has sums.
fn has_sums(layout: &Layout, rows: usize) -> bool {
    check_groups(layout, rows).any(|group| group.len() > FEW)
}

/// Checks of a group of so many rows.
fn checks(rows: usize) -> usize {
    if rows <= FEW { rows } else { CHECKS }
}

/// The weights of a segment's checks: those of one full group, which serve all. Wiped on drop.
pub struct CheckWeights {
    words: Vec<u64>,
    /// The same modulo 2³²: what is stored of sums needs no more.
    short: Vec<u32>,
    rows: usize,
}

impl core::fmt::Debug for CheckWeights {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CheckWeights({} rows, redacted)", self.rows)
    }
}

impl Drop for CheckWeights {
    fn drop(&mut self) {
        self.words.zeroize();
        self.short.zeroize();
    }
}

impl CheckWeights {
    /// The weights of segment `id`.
    pub fn derive(master: &MasterKey, collection: &[u8], id: SegmentId, layout: &Layout) -> Self {
        let level = [layout.level()];
        let parts: [&[u8]; 5] = [collection, b"ring", &Ring::param_id().0, &id.0, &level];
        let seed = master.derive(Purpose::AnswerCheck, &parts);
        let rows = check_rows(layout);
        let mut bytes = Zeroizing::new(vec![0u8; CHECKS * rows]);
        Stream::new(seed.expose(), 0).fill(&mut bytes);
        let weights = || bytes.iter().map(|byte| 2 * i64::from(byte & 7) - 7);
        let short = weights().map(|weight| weight as u32).collect();
        CheckWeights { words: weights().map(|weight| weight as u64).collect(), short, rows }
    }

    /// Σ_v ρ_iv x_v for each check of a group with these numbers, modulo 2⁶⁴.
    fn sums(&self, numbers: &[u64]) -> [u64; CHECKS] {
        sums(numbers, &self.words, self.rows, wrapping::dots_u64)
    }

    /// The same modulo 2³².
    fn short_sums(&self, numbers: &[u32]) -> [u32; CHECKS] {
        sums(numbers, &self.short, self.rows, wrapping::dots_u32)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.words[..]) + size_of_val(&self.short[..])
    }
}

/// The sums that `dots` forms of a group's numbers, with weights for `rows` of them.
fn sums<Word: Default + Copy>(
    numbers: &[Word],
    weights: &[Word],
    rows: usize,
    dots: impl Fn(&[Word], &[Word], &mut [Word]),
) -> [Word; CHECKS] {
    let mut sums = [Word::default(); CHECKS];
    if numbers.len() == rows {
        dots(numbers, weights, &mut sums);
        return sums;
    }
    for (weights, sum) in weights.chunks_exact(rows).zip(&mut sums) {
        dots(numbers, &weights[..numbers.len()], core::slice::from_mut(sum));
    }
    sums
}

/// The sums of a block that is being sealed.
pub(super) struct BlockSums<'a> {
    weights: &'a CheckWeights,
    layout: Layout,
    rows: usize,
    /// Group by group: a row of `dimension` words for each check.
    sums: Zeroizing<Vec<i32>>,
}

impl<'a> BlockSums<'a> {
    /// Of a block with so many rows.
    pub fn new(weights: &'a CheckWeights, layout: &Layout, rows: usize) -> Self {
        let count: usize = check_groups(layout, rows).map(|group| checks(group.len())).sum();
        let sums = Zeroizing::new(vec![0; count * layout.dimension()]);
        BlockSums { weights, layout: *layout, rows, sums }
    }

    /// Takes in one dimension: the `noisy` numbers of all rows as they are sealed, modulo 2³², and
    /// without their noise.
    pub fn column(&mut self, dim: usize, noisy: &[u32], exact: impl Fn(usize) -> i64) {
        let (dimension, mut first) = (self.layout.dimension(), 0);
        for group in check_groups(&self.layout, self.rows) {
            let count = checks(group.len());
            let out = self.sums[first * dimension..].iter_mut().skip(dim).step_by(dimension);
            if group.len() <= FEW {
                group.zip(out).for_each(|(row, out)| *out = exact(row) as i32);
            } else {
                let sums = self.weights.short_sums(&noisy[group]);
                out.zip(sums).for_each(|(out, sum)| *out = sum as i32);
            }
            first += count;
        }
    }

    /// Bytes that those of a block with so many rows take.
    pub fn stored_len(layout: &Layout, sizes: &SumSizes, rows: usize) -> usize {
        let group = |group: Range<usize>| match checks(group.len()) {
            CHECKS if group.len() > FEW => 4 + sizes.len(group.len(), rows),
            count => count * layout.dimension() * WORD,
        };
        let hash = if has_sums(layout, rows) { blake3::OUT_LEN } else { 0 };
        hash + check_groups(layout, rows).map(group).sum::<usize>()
    }

    /// Writes them, of a block with these packed words.
    pub fn append(&self, packed: &[u8], sizes: &SumSizes, bytes: &mut Vec<u8>) {
        if has_sums(&self.layout, self.rows) {
            bytes.extend_from_slice(blake3::hash(packed).as_bytes());
        }
        let mut rest = &self.sums[..];
        for group in check_groups(&self.layout, self.rows) {
            let words;
            (words, rest) = rest.split_at(checks(group.len()) * self.layout.dimension());
            if group.len() <= FEW {
                words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            } else {
                let length = sizes.len(group.len(), self.rows) as u32;
                bytes.extend_from_slice(&length.to_le_bytes());
                sizes.append(words, group.len(), self.rows, bytes);
            }
        }
    }
}

/// The weights of a segment with what they have to give. Wiped on drop.
pub struct AnswerCheck {
    weights: CheckWeights,
    /// The block that the first ones are of.
    first: usize,
    blocks: Vec<Block>,
}

/// What a block is held against.
struct Block {
    /// BLAKE3 of its packed words, where there are sums.
    words: Option<blake3::Hash>,
    groups: Vec<Group>,
}

/// What a group is held against.
enum Group {
    /// Its rows.
    Rows(Vec<i32>),
    /// H of each check, and the bits that were rounded off.
    Sums(Vec<i32>, u8),
}

impl core::fmt::Debug for AnswerCheck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AnswerCheck({} blocks, redacted)", self.blocks.len())
    }
}

impl Drop for AnswerCheck {
    fn drop(&mut self) {
        let groups = self.blocks.iter_mut().flat_map(|block| &mut block.groups);
        groups.for_each(|group| match group {
            Group::Rows(words) | Group::Sums(words, _) => words.zeroize(),
        });
    }
}

impl AnswerCheck {
    /// The check of some `blocks` of a segment of `rows` rows, from what is stored of all; `None` where that
    /// is none of such a segment.
    pub fn new(
        weights: CheckWeights,
        layout: &Layout,
        rows: usize,
        stored: &[u8],
        blocks: Range<usize>,
    ) -> Option<Self> {
        let (first, dimension) = (blocks.start, layout.dimension());
        let mut found = Vec::with_capacity(blocks.len());
        let mut rest = stored;
        let mut take = |length: usize| {
            let bytes;
            (bytes, rest) = rest.split_at_checked(length)?;
            Some(bytes)
        };
        for block in 0..layout.blocks(rows) {
            let count = layout.rows_in_block(rows, block);
            let words = if has_sums(layout, count) {
                Some(blake3::Hash::from_slice(take(blake3::OUT_LEN)?).ok()?)
            } else {
                None
            };
            let mut groups = Vec::new();
            for group in check_groups(layout, count) {
                let few = group.len() <= FEW;
                let length = if few {
                    checks(group.len()) * dimension * WORD
                } else {
                    u32::from_le_bytes(*take(4)?.first_chunk()?) as usize
                };
                let bytes = take(length)?;
                if !blocks.contains(&block) {
                    continue;
                }
                groups.push(if few {
                    let words = bytes.as_chunks().0.iter();
                    Group::Rows(words.map(|word| i32::from_le_bytes(*word)).collect())
                } else {
                    let (sums, rounded) = unpack(bytes, dimension)?;
                    Group::Sums(sums, rounded)
                });
            }
            if blocks.contains(&block) {
                found.push(Block { words, groups });
            }
        }
        rest.is_empty().then_some(AnswerCheck { weights, first, blocks: found })
    }

    fn groups(&self, block: usize) -> &[Group] {
        &self.blocks[block - self.first].groups
    }

    /// Whether these are the packed words of a block, as far as it has sums.
    pub(super) fn holds_words(&self, block: usize, words: &blake3::Hasher) -> bool {
        let sealed = &self.blocks[block - self.first].words;
        sealed.is_none_or(|sealed| sealed == words.finalize())
    }

    /// Takes in one dimension of a block as its stored words decrypt, with noise: whether that is what
    /// was sealed, in small groups; their numbers are replaced by those without noise. For others see
    /// [`Self::holds_words`].
    pub(super) fn holds(
        &self,
        layout: &Layout,
        block: usize,
        dim: usize,
        noisy: &mut [i64],
    ) -> bool {
        let dimension = layout.dimension();
        check_groups(layout, noisy.len()).zip(self.groups(block)).all(|(range, group)| {
            let noisy = &mut noisy[range];
            match group {
                Group::Rows(words) => {
                    let sealed = words[dim..].iter().step_by(dimension);
                    noisy.iter_mut().zip(sealed).all(|(noisy, sealed)| {
                        let off = *noisy - i64::from(*sealed);
                        *noisy = i64::from(*sealed);
                        off.abs() <= i64::from(GAUSSIAN_BOUND)
                    })
                }
                Group::Sums(..) => true,
            }
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let group = |group: &Group| match group {
            Group::Rows(words) | Group::Sums(words, _) => words.len() * WORD,
        };
        let groups = self.blocks.iter().flat_map(|block| &block.groups);
        self.weights.bytes() + groups.map(group).sum::<usize>()
    }

    /// Whether `scores`, the centred integers of all rows of a block, can be what an honest server's
    /// answer to the query opens to. Those of small groups are replaced by what their rows give to
    /// the query, and compared with nothing: a server may shift the score of a group's only row by a
    /// coefficient of the query's key and undo what it guesses that to be, so that whether the group
    /// passes would tell the coefficient.
    ///
    /// `query` are the integers that were encrypted, `asked` the same as the nodes hold them.
    pub fn verify(
        &self,
        layout: &Layout,
        noise: &ScoreNoise,
        query: &[i64],
        asked: &AskedLevel,
        block: usize,
        scores: &mut [f64],
    ) -> bool {
        let (groups, rows) = (self.groups(block), scores.len());
        let within = noise.largest(rows, ROW_DEVIATIONS);
        // All of it, whatever is found: how long it takes must not tell where.
        check_groups(layout, rows).zip(groups).fold(true, |sound, (range, group)| {
            let scores = &mut scores[range];
            let holds = match group {
                Group::Rows(words) => {
                    let growth = f64::exp2(f64::from(layout.level()));
                    for (row, score) in words.chunks_exact(layout.dimension()).zip(scores) {
                        *score = dot(row, query) as f64 * growth;
                    }
                    true
                }
                Group::Sums(sums, rounded) => {
                    let limit = limit(scores.len(), noise.signed());
                    let near =
                        scores.iter().fold(true, |near, score| near & (score.abs() <= within));
                    near & (self.energy(noise, rows, asked, (sums, *rounded), scores) <= limit)
                }
            };
            sound & holds
        })
    }

    /// What [`Self::verify`] compares with its limit, for every group of a block that has sums: for
    /// tests of how it is distributed.
    #[cfg(feature = "hazmat")]
    pub fn energies(
        &self,
        layout: &Layout,
        noise: &ScoreNoise,
        asked: &AskedLevel,
        block: usize,
        scores: &[f64],
    ) -> Vec<f64> {
        let groups = check_groups(layout, scores.len()).zip(self.groups(block));
        let energy = |(range, group): (Range<usize>, &Group)| match group {
            Group::Rows(_) => None,
            Group::Sums(sums, rounded) => {
                Some(self.energy(noise, scores.len(), asked, (sums, *rounded), &scores[range]))
            }
        };
        groups.filter_map(energy).collect()
    }

    /// Σ R_i² of a group in a block of so many rows, over the variance of one.
    fn energy(
        &self,
        noise: &ScoreNoise,
        rows: usize,
        asked: &AskedLevel,
        (sums, rounded): (&[i32], u8),
        scores: &[f64],
    ) -> f64 {
        let numbers = wiped(scores.iter().map(|score| *score as i64 as u64));
        let message = wiped(asked.message.iter().map(|number| *number as u64));
        let mut expected = [0; CHECKS];
        let mut wide = Zeroizing::new(vec![0; message.len()]);
        for (sums, expected) in sums.chunks_exact(message.len()).zip(&mut expected) {
            for (wide, sum) in wide.iter_mut().zip(sums) {
                *wide = i64::from(*sum) as u64;
            }
            wrapping::dots_u64(&message, &wide, core::slice::from_mut(expected));
        }
        let found = self.weights.sums(&numbers);
        let rest = |(found, expected): (&u64, &u64)| found.wrapping_sub(*expected) as i64 as f64;
        let rests = found.iter().zip(&expected).map(rest);
        let weighed = ENERGY * scores.len() as f64 * noise.variance(rows);
        let variance = weighed + noise.of_rounding(rounded);
        rests.map(|rest| rest * rest).sum::<f64>() / variance
    }
}

/// Numbers that are wiped on drop.
fn wiped<Word: Zeroize>(numbers: impl Iterator<Item = Word>) -> Zeroizing<Vec<Word>> {
    Zeroizing::new(numbers.collect())
}

/// What Σ R_i² of a group may be.
fn limit(rows: usize, signed: bool) -> f64 {
    let [all, few] = LIMIT;
    (all + few / rows as f64) * if signed { 1.0 } else { UNSIGNED }
}

fn dot(row: &[i32], numbers: &[i64]) -> i64 {
    row.iter()
        .zip(numbers)
        .fold(0i64, |sum, (x, y)| sum.wrapping_add(i64::from(*x).wrapping_mul(*y)))
}
