//! The level of the query tree that a segment is cheapest packed for, by row counts and a network, and the levels that other
//! writers may choose.

use crate::error::Result;
use crate::index::network::Network;
use crate::search::message::WordsAsked;
use ciphervec_he::lattice::ring::{AnswerWords, Layout, POLY_BYTES};
use ciphervec_he::wire::{Kind, Reader};

/// How many times as many rows as there are a writer may expect: of a batch that comes in so many commits the first is packed
/// as the last.
pub const EXPECTED: usize = 64;

/// Seconds one node of the query tree costs, at the server and at the owner: a key switch of six transforms, its part of the
/// mask sums, and memory for it.
const EXPAND_NODE: f64 = 65e-6;
/// Seconds a byte of the packed database costs: streamed once at memory bandwidth.
const SCAN_BYTE: f64 = 1.0 / 25e9;
/// Seconds a block costs beside the scan: two transforms at the server, two at the owner, modulus switching.
const BLOCK: f64 = 35e-6;
/// The most nodes of a tree: 64 MB a query at the server.
const MAX_NODES: usize = 1024;

/// The cheapest level for `rows` vectors: deeper trees cost expansion, shallower ones blocks and answers. Only those count of
/// which the rows fill a block; a lone row gets level 0, one polynomial.
pub fn cheapest(
    dimension: usize,
    rows: usize,
    deepest: u8,
    network: &Network,
    answer_bytes: impl Fn(&Layout) -> u64,
) -> Result<Layout> {
    let mut best: Option<(f64, Layout)> = None;
    for level in 0..=deepest {
        let layout = Layout::new(dimension, level)?;
        let (blocks, nodes) = (layout.blocks(rows) as f64, layout.nodes() as f64);
        if level > 0 && (rows < layout.vectors_per_block() || layout.nodes() > MAX_NODES) {
            break;
        }
        let cost = nodes * EXPAND_NODE
            + blocks * nodes * POLY_BYTES as f64 * SCAN_BYTE
            + blocks * BLOCK
            + network.seconds(answer_bytes(&layout));
        if best.is_none_or(|(cheapest, _)| cost < cheapest) {
            best = Some((cost, layout));
        }
    }
    match best {
        Some((_, layout)) => Ok(layout),
        None => Ok(Layout::new(dimension, 0)?),
    }
}

/// Whether a writer could have chosen `level` for a segment of `rows` vectors in an index that has had `total`, over
/// the network that writers take for granted. It needs no key, so that whoever takes the segment in can ask: a level that the rows do not need costs
/// every query some of its precision.
pub fn may_pack(dimension: usize, rows: usize, level: u8, total: usize) -> Result<bool> {
    let top = Layout::top_level(dimension);
    if level > top {
        return Ok(false);
    }
    let first = |rows| {
        let answer_bytes = |layout: &Layout| AnswerWords::FIRST.answer_bytes(layout, rows);
        cheapest(dimension, rows, top, &Network::default(), answer_bytes)
    };
    if level <= first(rows)?.level() {
        return Ok(true);
    }
    let expected = total.max(rows).saturating_mul(EXPECTED);
    let fills = rows >= Layout::new(dimension, level)?.vectors_per_block();
    Ok(fills && level <= first(expected)?.level())
}

/// The words that a query wants answers of this level in.
pub fn answer_words(asked: Option<&WordsAsked>, level: u8) -> Result<AnswerWords> {
    let Some(asked) = asked else { return Ok(AnswerWords::FIRST) };
    let linear = asked.linear.get(usize::from(level)).ok_or_else(|| {
        let detail = format!("no words for answers of level {level}");
        Reader::new(Kind::Query.as_str(), &[]).error(detail)
    })?;
    Ok(AnswerWords::new(*linear)?)
}
