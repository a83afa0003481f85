//! Packing: for which level of the query tree a segment is packed, by its rows and the network. Owner and writer.

use super::scale::scales;
use crate::error::Result;
use crate::index::form::Rows;
use crate::index::network::Network;
use crate::index::spec::IndexSpec;
pub use ciphervec::search::form::ring::packing::*;
use ciphervec_he_secret::lattice::ring::{AnswerWords, Layout, Ring, Vectors};

/// Levels between those that segments of fewer rows than a block of the index's own level are packed for: of each level that
/// occurs the owner computes mask sums for every query.
const LADDER: usize = 3;

/// How one index is packed.
pub struct Packing<'a> {
    pub spec: &'a IndexSpec,
    pub rows: Rows,
    pub ring: &'a Ring,
    pub network: Network,
}

impl Packing<'_> {
    /// The layout for `rows` of an index that will hold `expected`: the index's own once a block of it is full, and never one
    /// that would be mostly padding.
    pub fn layout(&self, rows: usize, expected: usize) -> Result<Layout> {
        let bulk = self.bulk(expected.max(rows))?;
        if rows >= bulk.vectors_per_block() {
            return Ok(bulk);
        }
        let dimension = self.spec.dimension();
        for level in (0..=bulk.level()).rev().step_by(LADDER).skip(1) {
            let layout = Layout::new(dimension, level)?;
            if rows >= layout.vectors_per_block() {
                return Ok(layout);
            }
        }
        Ok(Layout::new(dimension, 0)?)
    }

    /// Whether a segment of `rows` at `level` need not be packed anew in an index of `total` rows: whether some number of rows
    /// not far from that would have it packed so.
    pub fn suits(&self, rows: usize, level: u8, total: usize) -> Result<bool> {
        let [fewer, more] = [total - total / 4, total + total / 4];
        let [low, high] = [self.layout(rows, fewer)?.level(), self.layout(rows, more)?.level()];
        Ok((low.min(high)..=low.max(high)).contains(&level))
    }

    /// The layout of an index of so many rows.
    pub fn bulk(&self, rows: usize) -> Result<Layout> {
        let words = |layout: &Layout| {
            let scales = scales(self.spec, self.rows, self.ring, layout.level());
            Ring::answer_words(layout, vectors(self.rows), scales)
        };
        cheapest(self.spec.dimension(), rows, self.exact_level()?, &self.network, |layout| {
            words(layout).answer_bytes(layout, rows)
        })
    }

    /// Bytes of the answer to one query, if all of so many rows are packed for this level.
    pub fn answer_len(&self, rows: usize, level: u8) -> Result<usize> {
        let layout = Layout::new(self.spec.dimension(), level)?;
        let scales = scales(self.spec, self.rows, self.ring, level);
        let words = Ring::answer_words(&layout, vectors(self.rows), scales);
        Ok(words.answer_len(&layout, rows))
    }

    /// The deepest level at which this index may be packed: for signs the error must stay below half a bit's distance.
    fn exact_level(&self) -> Result<u8> {
        let dimension = self.spec.dimension();
        let top = Layout::top_level(dimension);
        if !self.spec.metric().compares_signs() {
            return Ok(top);
        }
        let vectors = vectors(self.rows);
        let mut deepest = 0;
        for level in 1..=top {
            let layout = Layout::new(dimension, level)?;
            let scales = scales(self.spec, self.rows, self.ring, level);
            let longest = Ring::answer_words(&layout, vectors, scales);
            // x·q = d·cos has steps of 2: exact while the error of d·cos is below 1.
            let exact = [AnswerWords::FIRST, longest].into_iter().all(|words| {
                let bound = Ring::error_bound(&layout, vectors, scales, words);
                bound.tail * (dimension as f64) < 1.0
            });
            if !exact {
                break;
            }
            deepest = level;
        }
        Ok(deepest)
    }
}

/// What the error of a score is made of.
pub fn vectors(rows: Rows) -> Vectors {
    match rows {
        Rows::Encrypted => Vectors::Sealed,
        Rows::Plain => Vectors::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, Mode, Precision};

    fn spec(dimension: u32, metric: Metric, mode: Mode) -> IndexSpec {
        IndexSpec::new("test", dimension, metric, mode, Precision::Standard)
            .expect("a valid description")
    }

    fn packing<'a>(spec: &'a IndexSpec, ring: &'a Ring) -> Packing<'a> {
        let rows = if spec.mode() == Mode::Sealed { Rows::Encrypted } else { Rows::Plain };
        Packing { spec, rows, ring, network: Network::default() }
    }

    #[test]
    fn levels_follow_the_size() {
        let ring = Ring::new().unwrap();
        let spec = spec(512, Metric::Cosine, Mode::Sealed);
        let packing = packing(&spec, &ring);
        let level = |rows| packing.bulk(rows).unwrap().level();
        assert_eq!((level(1), level(200_000), level(1_000_000)), (0, 8, 9));
        assert!(level(1000) >= 2 && level(1000) <= 7);
        let levels: Vec<u8> = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].map(level).to_vec();
        assert!(levels.is_sorted(), "{levels:?}");
        let a_row =
            |rows: usize| packing.answer_len(rows, level(rows)).unwrap() as f64 / rows as f64;
        assert!(a_row(1_000_000) < 5.0 && a_row(200_000) < 8.1);
    }

    #[test]
    fn levels_follow_the_network() {
        let ring = Ring::new().unwrap();
        for dimension in [128, 384, 512, 768, 1536] {
            let spec = spec(dimension, Metric::Cosine, Mode::Sealed);
            let default = packing(&spec, &ring);
            let at = |network| Packing { network, ..packing(&spec, &ring) };
            let fast = at(Network { bytes_per_second: 12.5e9, round_trip: 0.0 });
            let slow = at(Network { bytes_per_second: 1.25e6, round_trip: 0.05 });
            for rows in [1000, 10_000, 65_536, 200_000, 2_000_000] {
                let [fast, usual, slow] =
                    [&fast, &default, &slow].map(|packing| packing.bulk(rows).unwrap().level());
                assert!(
                    fast <= usual && usual <= slow,
                    "{dimension} {rows}: {fast} {usual} {slow}"
                );
                let bytes = |level| default.answer_len(rows, level).unwrap();
                assert!(bytes(usual) <= bytes(fast) && bytes(slow) <= bytes(usual));
            }
        }
    }

    #[test]
    fn a_segment_is_packed_anew_only_when_the_index_has_grown_a_good_deal() {
        let ring = Ring::new().unwrap();
        let spec = spec(512, Metric::Cosine, Mode::Sealed);
        let packing = packing(&spec, &ring);
        let mut changes = 0;
        let mut level = packing.layout(65_536, 65_536).unwrap().level();
        for total in (65_536..4_000_000).step_by(20_000) {
            if !packing.suits(65_536, level, total).unwrap() {
                level = packing.layout(65_536, total).unwrap().level();
                assert!(packing.suits(65_536, level, total).unwrap());
                changes += 1;
            }
        }
        assert_eq!((level, changes), (9, 2));
        // Small ones have few levels among them, whatever the size of the index.
        let mut levels: Vec<u8> =
            (1..5000).map(|rows| packing.layout(rows, 2_000_000).unwrap().level()).collect();
        levels.sort_unstable();
        levels.dedup();
        assert!(levels.len() <= 4, "{levels:?}");
    }

    #[test]
    fn hamming_levels_are_exact_whatever_the_words() {
        let ring = Ring::new().unwrap();
        for dimension in [64, 512, 1024, 16384] {
            for mode in [Mode::Sealed, Mode::SealedQuery] {
                let spec = spec(dimension, Metric::Hamming, mode);
                let packing = packing(&spec, &ring);
                let top = packing.bulk(10_000_000).unwrap().level();
                let scales = scales(&spec, packing.rows, &ring, top);
                // Every level under the query that serves the deepest.
                for level in 0..=top {
                    let layout = Layout::new(dimension as usize, level).unwrap();
                    let words = Ring::answer_words(&layout, vectors(packing.rows), scales);
                    let bound = Ring::error_bound(&layout, vectors(packing.rows), scales, words);
                    assert!(
                        bound.tail * f64::from(dimension) < 1.0,
                        "{dimension} {level} {bound:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn machines_of_32_bits_allow_writers_the_same_levels() {
        for dimension in [1, 8, 64, 128, 384, 512, 768, 1024, 1536, 4096, 16384] {
            for rows in [1, 1024, 1 << 24] {
                for level in 0..=Layout::top_level(dimension) {
                    let [narrow, wide] = [u32::MAX as usize / EXPECTED, 1 << 32]
                        .map(|total| may_pack(dimension, rows, level, total).unwrap());
                    assert_eq!(narrow, wide, "{dimension} {rows} {level}");
                }
            }
        }
    }

    #[test]
    fn what_a_writer_packs_may_be_and_what_only_costs_others_may_not() {
        let ring = Ring::new().unwrap();
        for metric in [Metric::Cosine, Metric::Hamming] {
            for dimension in [8, 64, 512, 768, 1024, 1536, 4096] {
                let spec = spec(dimension, metric, Mode::Sealed);
                let packing = packing(&spec, &ring);
                let dimension = dimension as usize;
                for rows in [1, 7, 100, 4096, 100_000] {
                    for expected in [rows, 8 * rows, 64 * rows] {
                        let level = packing.layout(rows, expected).unwrap().level();
                        assert!(
                            may_pack(dimension, rows, level, rows).unwrap(),
                            "{dimension} {rows} {level}"
                        );
                    }
                }
                let top = Layout::top_level(dimension);
                let lone: Vec<u8> = (0..=top + 1)
                    .filter(|&level| may_pack(dimension, 1, level, 0).unwrap())
                    .collect();
                assert!(lone.iter().all(|&level| level <= 1), "{dimension}: {lone:?}");
                assert!(!may_pack(dimension, 1, top, 1 << 20).unwrap(), "a block is not full");
            }
        }
        // 1,024 rows do not fill a block of the deepest level.
        assert!(!may_pack(512, 1024, 9, 1 << 20).unwrap());
    }
}
