//! Segments that servers of release 0.1 took deleted rows out of: puts words at the places of the rows that are gone. Both sides.
//!
//! A row's words are masked by its number in the
//! segment alone, so that taking other rows out changed nothing about them.

use super::Width;
use ciphervec_arith::matmul::TILE;

/// Tiles of all rows, with words of zero where a row was taken out; `words` are of the rows that
/// `keep` names, which has an entry a row.
pub fn spread(width: Width, words: &[u8], dimension: usize, keep: &[bool]) -> Vec<u8> {
    let places = (0..keep.len()).filter(|&row| keep[row]).enumerate();
    let kept = keep.iter().filter(|keep| **keep).count();
    let mut out = vec![0; width.words_len(keep.len(), dimension)];
    for (from, to) in places {
        copy_row(width, dimension, (words, kept, from), (&mut out, keep.len(), to));
    }
    out
}

/// Sums of the kept rows, one list a query, as [`super::scan`] gives them, with sums of zero where
/// a row was taken out.
pub fn spread_sums(width: Width, sums: &[u8], keep: &[bool], out: &mut Vec<u8>) {
    let bytes = width.word_bytes();
    let kept = keep.iter().filter(|keep| **keep).count();
    for sums in sums.chunks_exact(kept * bytes) {
        let mut rest = sums.chunks_exact(bytes);
        let start = out.len();
        out.resize(start + keep.len() * bytes, 0);
        for (word, keep) in out[start..].chunks_exact_mut(bytes).zip(keep) {
            if *keep && let Some(sum) = rest.next() {
                word.copy_from_slice(sum);
            }
        }
    }
}

/// Copies one row between tiles: words, rows in all, and which one.
fn copy_row(
    width: Width,
    dimension: usize,
    (words, rows, from): (&[u8], usize, usize),
    (out, places, to): (&mut [u8], usize, usize),
) {
    let bytes = width.word_bytes();
    let (mut read, next_read) = column(bytes, dimension, rows, from);
    let (mut write, next_write) = column(bytes, dimension, places, to);
    for _ in 0..dimension {
        out[write..write + bytes].copy_from_slice(&words[read..read + bytes]);
        read += next_read;
        write += next_write;
    }
}

/// The byte at which a row's first word lies, and the bytes to its next.
fn column(bytes: usize, dimension: usize, rows: usize, row: usize) -> (usize, usize) {
    let start = row / TILE * TILE;
    let tile = TILE.min(rows - start);
    ((start * dimension + row - start) * bytes, tile * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As those servers did.
    fn prune(width: Width, words: &[u8], dimension: usize, keep: &[bool], out: &mut [u8]) {
        let places = (0..keep.len()).filter(|&row| keep[row]).enumerate();
        let kept = keep.iter().filter(|keep| **keep).count();
        for (to, from) in places {
            copy_row(width, dimension, (words, keep.len(), from), (out, kept, to));
        }
    }

    proptest! {
        #[test]
        fn kept_rows_score_as_they_did_and_the_others_zero(
            width in prop_oneof![Just(Width::Standard), Just(Width::Small), Just(Width::Wide)],
            keep in prop::collection::vec(any::<bool>(), 1..300),
            dimension in 1usize..20,
            seed in any::<u64>(),
        ) {
            prop_assume!(keep.iter().any(|keep| *keep));
            let rows = keep.len();
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            let words: Vec<u8> = (0..width.words_len(rows, dimension)).map(|_| next() as u8).collect();
            let queries: Vec<i64> = (0..2 * dimension).map(|_| next() as i64 - (1 << 30)).collect();
            let kept = keep.iter().filter(|keep| **keep).count();
            let mut pruned = vec![0; width.words_len(kept, dimension)];
            prune(width, &words, dimension, &keep, &mut pruned);
            let (mut whole, mut few, mut spread_out) = (Vec::new(), Vec::new(), Vec::new());
            super::super::scan(width, &words, rows, dimension, &queries, &mut whole);
            super::super::scan(width, &pruned, kept, dimension, &queries, &mut few);
            spread_sums(width, &few, &keep, &mut spread_out);
            let bytes = width.word_bytes();
            for (query, sums) in whole.chunks_exact_mut(rows * bytes).enumerate() {
                for (row, keep) in keep.iter().enumerate() {
                    if !keep {
                        sums[row * bytes..][..bytes].fill(0);
                    }
                }
                prop_assert_eq!(&*sums, &spread_out[query * rows * bytes..][..rows * bytes]);
            }
            let back = spread(width, &pruned, dimension, &keep);
            let mut again = vec![0; pruned.len()];
            prune(width, &back, dimension, &keep, &mut again);
            prop_assert_eq!(again, pruned);
            let all = vec![true; rows];
            prop_assert_eq!(spread(width, &words, dimension, &all), words);
        }
    }
}
