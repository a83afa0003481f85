//! Packing: a description and a row count enter, the level of the query tree that a segment is packed for leaves, and which
//! levels others may choose. Both sides.

#[cfg(feature = "client")]
use super::scale::scales;
use crate::error::Result;
#[cfg(feature = "client")]
use crate::index::{form::Rows, spec::IndexSpec};
use ciphervec_he::lattice::ring::{self, Layout, POLY_BYTES};
#[cfg(feature = "client")]
use ciphervec_he::lattice::ring::{Ring, Vectors};

/// How many times as many rows as there are a writer may expect: of a batch that comes in so many commits the first is packed
/// as the last.
const EXPECTED: usize = 64;

/// Seconds one node of the query tree costs: a key switch of six transforms.
const EXPAND_NODE: f64 = 35e-6;
/// Seconds a byte of the packed database costs: streamed once at memory bandwidth.
const SCAN_BYTE: f64 = 1.0 / 25e9;
/// Seconds a block costs beside the scan: two transforms at the server, two at the owner, modulus switching.
const BLOCK: f64 = 35e-6;
/// Seconds a byte of the answer costs: a ten-gigabit network.
const ANSWER_BYTE: f64 = 1.0 / 1.25e9;

/// The layout for `rows` of an index that will hold `expected`: the index's own once a block of it is full, and never one
/// that would be mostly padding.
#[cfg(feature = "client")]
pub fn layout(
    spec: &IndexSpec,
    kind: Rows,
    ring: &Ring,
    rows: usize,
    expected: usize,
) -> Result<Layout> {
    let bulk = bulk_layout(spec, kind, ring, expected.max(rows))?;
    if rows >= bulk.vectors_per_block() { Ok(bulk) } else { bulk_layout(spec, kind, ring, rows) }
}

#[cfg(feature = "client")]
fn bulk_layout(spec: &IndexSpec, kind: Rows, ring: &Ring, rows: usize) -> Result<Layout> {
    cheapest(spec.dimension(), rows, exact_level(spec, kind, ring)?)
}

/// The cheapest level for a segment of `rows` vectors: deeper trees cost expansion, shallower ones blocks and answers.
///
/// For large segments this is about ½ log2(rows · dimension / N); a lone row gets level 0, one polynomial.
fn cheapest(dimension: usize, rows: usize, deepest: u8) -> Result<Layout> {
    let mut best: Option<(f64, Layout)> = None;
    for level in 0..=deepest {
        let layout = Layout::new(dimension, level)?;
        let (blocks, nodes) = (layout.blocks(rows) as f64, layout.nodes() as f64);
        let answer = ring::answer_len(&layout, rows) as f64;
        let cost = nodes * EXPAND_NODE
            + blocks * nodes * POLY_BYTES as f64 * SCAN_BYTE
            + blocks * BLOCK
            + answer * ANSWER_BYTE;
        if best.is_none_or(|(cheapest, _)| cost < cheapest) {
            best = Some((cost, layout));
        }
    }
    match best {
        Some((_, layout)) => Ok(layout),
        None => Ok(Layout::new(dimension, 0)?),
    }
}

/// Whether [`layout`] could have chosen `level` for a segment of `rows` vectors in an index that has had `total`. It needs no
/// key, so that whoever takes the segment in can ask: a level that the rows do not need costs every query some of its
/// precision.
pub fn may_pack(dimension: usize, rows: usize, level: u8, total: usize) -> Result<bool> {
    let top = Layout::top_level(dimension);
    if level > top {
        return Ok(false);
    }
    if level <= cheapest(dimension, rows, top)?.level() {
        return Ok(true);
    }
    let expected = total.max(rows).saturating_mul(EXPECTED);
    let fills = rows >= Layout::new(dimension, level)?.vectors_per_block();
    Ok(fills && level <= cheapest(dimension, expected, top)?.level())
}

/// The deepest level at which this index may be packed: for signs the error must stay below half a bit's distance.
#[cfg(feature = "client")]
fn exact_level(spec: &IndexSpec, kind: Rows, ring: &Ring) -> Result<u8> {
    let top = Layout::top_level(spec.dimension());
    if !spec.metric().compares_signs() {
        return Ok(top);
    }
    let vectors = match kind {
        Rows::Encrypted => Vectors::Sealed,
        Rows::Plain => Vectors::Plain,
    };
    let mut deepest = 0;
    for level in 1..=top {
        let bound = Ring::error_bound(
            &Layout::new(spec.dimension(), level)?,
            vectors,
            scales(spec, kind, ring, level),
        );
        // x·q = d·cos has steps of 2: exact while the error of d·cos is below 1.
        if bound.tail * spec.dimension() as f64 >= 1.0 {
            break;
        }
        deepest = level;
    }
    Ok(deepest)
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;
    use crate::{Metric, Mode, Precision};

    #[test]
    fn levels_follow_the_size() {
        let ring = Ring::new().unwrap();
        let spec =
            IndexSpec::new("test", 512, Metric::Cosine, Mode::Sealed, Precision::Standard).unwrap();
        let level = |rows| bulk_layout(&spec, Rows::Encrypted, &ring, rows).unwrap().level();
        assert_eq!(level(1), 0);
        assert_eq!(level(200_000), 7);
        assert!(level(1000) >= 2 && level(1000) <= 6);
        let levels: Vec<u8> = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].map(level).to_vec();
        assert!(levels.is_sorted(), "{levels:?}");
    }

    #[test]
    fn hamming_levels_are_exact() {
        let ring = Ring::new().unwrap();
        for dimension in [64, 1024, 16384] {
            let spec = IndexSpec::new(
                "test",
                dimension,
                Metric::Hamming,
                Mode::Sealed,
                Precision::Standard,
            )
            .unwrap();
            let layout = bulk_layout(&spec, Rows::Encrypted, &ring, 1_000_000).unwrap();
            let bound = Ring::error_bound(
                &layout,
                Vectors::Sealed,
                scales(&spec, Rows::Encrypted, &ring, layout.level()),
            );
            assert!(bound.tail * f64::from(dimension) < 1.0, "{dimension} {bound:?}");
        }
    }

    #[test]
    fn what_a_writer_packs_may_be_and_what_only_costs_others_may_not() {
        let ring = Ring::new().unwrap();
        for metric in [Metric::Cosine, Metric::Hamming] {
            for dimension in [8, 64, 512, 1024, 4096] {
                let spec =
                    IndexSpec::new("test", dimension, metric, Mode::Sealed, Precision::Standard);
                let spec = spec.unwrap();
                let dimension = dimension as usize;
                for rows in [1, 7, 100, 4096, 100_000] {
                    for expected in [rows, 8 * rows, 64 * rows] {
                        let chosen = layout(&spec, Rows::Encrypted, &ring, rows, expected).unwrap();
                        let level = chosen.level();
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
        // 4,096 rows fill a block of the deepest level, and 200,000 are packed two levels above it.
        assert!(!may_pack(512, 4096, 9, 4096).unwrap());
    }
}
