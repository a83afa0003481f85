//! Answering fetches: the query's numbers are expanded, one scan adds every column up to the wanted node, and the
//! columns are folded to the wanted one. Server to owner.
//!
//! # Scan, fold, words
//!
//! **Scan.** For each column Σ_r D_{c,r} · node_r, as for a segment: a ciphertext (u, v) with u + tv = Δ D_{c,r} +
//! noise. Ten fetches share one pass over memory, three ciphertexts at a time; nodes, selectors and sums of ten
//! take up to 300 MB.
//!
//! **Parts.** A keyed table (docs/decisions/0041-keyed-tables.md) has parts of one shape. Fetch i of a query is
//! answered from part i modulo their number, by a scan and a fold of that part alone; queries, answers and noise
//! are those of one part.
//!
//! **Selectors.** A leaf (c0, c1) of a number m becomes one of m t by the key of t²: switch c1 from t² to t, add
//! (0, c0). Four leaves and their four products make a *gadget encryption* of c_j.
//!
//! **Fold.** From the lowest bit on, columns x (even) and y (odd) are replaced by x + c_j ⊡ (y − x). The external
//! product m ⊡ (u, v) cuts v into four signed digits of 7 bits from 2^22 up, and u into the three upper ones, and
//! adds up
//!
//! ```text
//! Σ digit_i(u) · row(m 2^pᵢ)  +  Σ digit_i(v) · row(m t 2^pᵢ).
//! ```
//!
//! Bits below are rounded away: full precision takes 5 digits of 10 bits for u and v each, 10 transforms in place
//! of 7, and leaves the larger noise of the scan as it is. A column without a partner passes.
//!
//! **Words.** v keeps 25 bits of 50, u 19: 22,528 bytes a fetch and layer. The owner computes u + tv, rounds to
//! multiples of q/2^14, and takes the public bits off.

use super::keys::{header, open};
use super::query::{head, read_head};
use super::selector::{GADGET, Selector, fold};
use super::{RetrievalQuery, SelectorKeys, Shape, Table};
use crate::error::{Error, Result};
use crate::lattice::ring::{
    DEGREE, Expanded, Grid, Nodes, Ring, Scratch, Sums, expand_under, write_words,
};
use crate::wire::{KeyId, Kind};
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring::GROUP;

/// Bits that a coefficient of v keeps, and of u: rounding v counts 52 times as much.
pub(super) const ANSWER_BITS: [u32; 2] = [19, 25];
const LINEAR_BYTES: usize = DEGREE * ANSWER_BITS[1] as usize / 8;
/// Bytes of the answer to one fetch, a layer.
pub const ANSWER_BYTES: usize = DEGREE * ANSWER_BITS[0] as usize / 8 + LINEAR_BYTES;

/// Ciphertexts whose fetches share a pass over the table: ten fetches are three. Their nodes take 64 MB each.
const TOGETHER: usize = 3;
/// Columns of all fetches at hand that are added up before they are folded: 84 MB of sums. A scan reads the nodes again
/// with every run of columns.
const RUN: usize = 1280;

/// What a server answers a [`RetrievalQuery`] with.
pub struct RetrievalAnswer {
    key: KeyId,
    epoch: u32,
    fetches: usize,
    layers: usize,
    /// `[fetch][layer][ANSWER_BYTES]`
    bytes: Vec<u8>,
}

impl RetrievalAnswer {
    /// The key id of who asked.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The epoch of the retrieval key.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Fetches answered.
    pub fn fetches(&self) -> usize {
        self.fetches
    }

    /// The packed words of one fetch and layer: those of v, then those of u.
    #[doc(hidden)]
    pub fn words(&self, fetch: usize, layer: usize) -> [(&[u8], u32); 2] {
        let bytes = &self.bytes[(fetch * self.layers + layer) * ANSWER_BYTES..][..ANSWER_BYTES];
        let (linear, constant) = bytes.split_at(LINEAR_BYTES);
        [(linear, ANSWER_BITS[1]), (constant, ANSWER_BITS[0])]
    }

    /// The frame: the shape's name, epoch, number of fetches, then the words of each fetch and layer.
    pub fn to_bytes(&self, shape: &Shape) -> Vec<u8> {
        let mut payload = Vec::with_capacity(24 + self.bytes.len());
        payload.extend_from_slice(&head(shape, self.epoch, self.fetches));
        payload.extend_from_slice(&self.bytes);
        header(Kind::RetrievalAnswer, self.key).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote about a table of this shape, where so many fetches were asked for.
    ///
    /// # Errors
    /// Damaged or foreign bytes, another shape or another number of fetches.
    pub fn from_bytes(bytes: &[u8], shape: &Shape, fetches: usize) -> Result<Self> {
        let (header, mut reader) = open(Kind::RetrievalAnswer, bytes)?;
        let (epoch, came) = read_head(&mut reader, shape)?;
        if came != fetches {
            return Err(reader.error(format!("{fetches} fetches asked for, {came} answered")));
        }
        let layers = shape.layers();
        let bytes = reader.take(fetches * layers * ANSWER_BYTES)?.to_vec();
        reader.finish()?;
        Ok(RetrievalAnswer { key: header.key, epoch, fetches, layers, bytes })
    }
}

/// Answers every fetch of a query. Of several `parts` of one table, all of one shape, the fetches take turns: fetch i is
/// answered from part i modulo their number, so that a round of fetches scans each part once.
///
/// # Errors
/// If the keys are another owner's or another epoch's; [`Error::Range`] for fetches that are no whole rounds.
pub fn answer(
    ring: &Ring,
    keys: &SelectorKeys,
    parts: &[Table],
    query: &RetrievalQuery,
) -> Result<RetrievalAnswer> {
    query.check(keys)?;
    let turns = parts.len().max(1);
    let Some(shape) =
        parts.first().map(Table::shape).filter(|_| query.fetches.is_multiple_of(turns))
    else {
        return Err(Error::Range {
            what: "fetches of a retrieval query",
            expected: format!("a multiple of {turns}, the parts of this table"),
            actual: query.fetches.to_string(),
        });
    };
    if query.ciphertexts.len() != shape.ciphertexts(query.fetches) {
        return Err(Error::Range {
            what: "ciphertexts of a retrieval query",
            expected: format!("{}, as of this table", shape.ciphertexts(query.fetches)),
            actual: query.ciphertexts.len().to_string(),
        });
    }
    let layers = shape.layers();
    let share = shape.fetches_per_ciphertext();
    let mut bytes = vec![0; query.fetches * layers * ANSWER_BYTES];
    let outs = bytes.chunks_mut(TOGETHER * share * layers * ANSWER_BYTES);
    for (index, (ciphertexts, out)) in query.ciphertexts.chunks(TOGETHER).zip(outs).enumerate() {
        let expanded = ciphertexts.iter().zip(out.chunks(share * layers * ANSWER_BYTES));
        let expanded = expanded.map(|(ciphertext, out)| {
            let layout = shape.layout(out.len() / (layers * ANSWER_BYTES))?;
            expand_under(ring, keys.tree(), core::slice::from_ref(ciphertext), &[layout])
        });
        let expanded: Vec<Expanded> =
            expanded.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let fetches: Vec<Fetch<'_>> = (0..out.len() / (layers * ANSWER_BYTES))
            .map(|at| Fetch::new(ring, keys, shape, &expanded[at / share], at % share))
            .collect();
        for (part, table) in parts.iter().enumerate() {
            // The first of these fetches that is the part's, and every `turns`-th from there.
            let first = (part + turns - index * TOGETHER * share % turns) % turns;
            let of_part: Vec<&Fetch<'_>> = fetches.iter().skip(first).step_by(turns).collect();
            if of_part.is_empty() {
                continue;
            }
            for layer in 0..layers {
                let columns = select(ring, &table.layer(layer), &of_part);
                let outs = out.chunks_mut(layers * ANSWER_BYTES).skip(first).step_by(turns);
                for (column, out) in columns.iter().zip(outs) {
                    let out = &mut out[layer * ANSWER_BYTES..][..ANSWER_BYTES];
                    let (linear, constant) = out.split_at_mut(LINEAR_BYTES);
                    write_words(ring, column.linear(0), ANSWER_BITS[1], linear);
                    write_words(ring, column.constant(0), ANSWER_BITS[0], constant);
                }
            }
        }
    }
    Ok(RetrievalAnswer {
        key: query.key,
        epoch: query.epoch,
        fetches: query.fetches,
        layers,
        bytes,
    })
}

/// What one fetch multiplies with.
struct Fetch<'a> {
    expanded: &'a Expanded,
    first: usize,
    selectors: Vec<Selector>,
}

impl<'a> Fetch<'a> {
    fn new(
        ring: &Ring,
        keys: &SelectorKeys,
        shape: &Shape,
        expanded: &'a Expanded,
        fetch: usize,
    ) -> Self {
        let first = fetch * shape.numbers();
        let selectors = (0..shape.column_bits() as usize)
            .into_par_iter()
            .map_init(Scratch::new, |scratch, bit| {
                let place = first + shape.nodes() + bit * GADGET.count as usize;
                let node = |digit, constant: &mut [u64], linear: &mut [u64]| {
                    expanded.node(place + digit, constant, linear);
                };
                Selector::new(ring, keys.square(), node, scratch)
            })
            .collect();
        Fetch { expanded, first, selectors }
    }

    fn nodes(&self, count: usize) -> Nodes<'a> {
        self.expanded.nodes(self.first..self.first + count)
    }
}

/// The wanted column of a layer for each fetch, the first of those there.
fn select(ring: &Ring, layer: &Grid<'_>, fetches: &[&Fetch<'_>]) -> Vec<Sums> {
    let nodes: Vec<Nodes<'_>> = fetches.iter().map(|fetch| fetch.nodes(layer.nodes)).collect();
    let bits = (RUN / fetches.len().max(1)).max(GROUP).ilog2();
    let run = 1 << bits;
    let mut kept: Vec<Sums> =
        fetches.iter().map(|_| Sums::take(layer.blocks.div_ceil(run))).collect();
    for (index, first) in (0..layer.blocks).step_by(run).enumerate() {
        let columns = first..layer.blocks.min(first + run);
        let mut sums = layer.products(ring, columns, &nodes);
        for ((fetch, sums), kept) in fetches.iter().zip(&mut sums).zip(&mut kept) {
            let low = fetch.selectors.len().min(bits as usize);
            fold(ring, &fetch.selectors[..low], sums, 1);
            kept.copy_block(index, sums, 0);
        }
    }
    for (fetch, kept) in fetches.iter().zip(&mut kept) {
        let low = fetch.selectors.len().min(bits as usize);
        fold(ring, &fetch.selectors[low..], kept, 1);
        kept.parts_mut().into_iter().for_each(|part| ring.tables()[0].inverse(&mut part[..DEGREE]));
    }
    kept
}
