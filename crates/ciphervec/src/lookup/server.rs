//! The server of lookups: it holds tables and clients' evaluation keys, and cannot read queries.

use super::histogram::messages::{HistogramAnswer, HistogramQuery};
use super::options::Options;
use super::serialize::{expect_params, expect_scheme, frame};
use super::spec::{Instance, Spec};
use super::table::Table;
use super::tokens::answer::write_answer;
use super::tokens::compact::Compact;
use super::tokens::compact::messages::{CompactQuery, RootKeys, read_keys};
use super::tokens::embed::{embed, generate};
use super::tokens::messages::TokensQuery;
use super::tokens::recipe::Recipe;
use super::tokens::weights::Weights;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Ciphertext, EvaluationKeys, Evaluator};
use ciphervec_he::lattice::histogram::{Hint, Histogram, Masks};
use ciphervec_he::wire::{self, KeyId, Kind, Reader};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Tables ready to be looked up in, and their public description.
///
/// Nothing here hides the tables from those who may ask: an answer is a linear function of their
/// rows, and as many well-chosen queries as there are rows give all of them away.
pub struct Server {
    spec: Spec,
    table: Table,
    prepared: Prepared,
}

enum Prepared {
    Histogram { scheme: Box<Histogram>, weights: Vec<i64> },
    Tokens { recipe: Recipe, weights: Box<Weights>, keys: RwLock<HashMap<KeyId, Held>> },
}

/// The keys of a client.
#[derive(Clone)]
struct Held {
    evaluator: Evaluator,
    /// Of compact transport.
    roots: Option<Arc<RootKeys>>,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (tables, rows, columns) = self.spec.shape;
        write!(f, "Server({tables} tables of {rows} × {columns}, {})", self.spec.strategy())
    }
}

impl Server {
    /// Prepares `table`.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Lookup`] for options or numbers that do not go together.
    pub fn new(table: Table, options: Options) -> Result<Self> {
        let (spec, instance) = Spec::new(&table, options)?;
        Self::of(table, spec, instance)
    }

    /// The same of what is made already.
    #[doc(hidden)]
    pub fn of(table: Table, spec: Spec, instance: Instance) -> Result<Self> {
        let prepared = match (instance, &spec.scales) {
            (Instance::Histogram(scheme), Some(scales)) => {
                Prepared::Histogram { scheme, weights: scales.weights(&table) }
            }
            (Instance::Tokens(recipe), _) => {
                let tables: Vec<&[f64]> = (0..table.tables()).map(|at| table.table(at)).collect();
                let weights = Weights::new(&recipe, &tables)?;
                Prepared::Tokens { recipe, weights: Box::new(weights), keys: RwLock::default() }
            }
            (Instance::Histogram(_), None) => return Err(other_strategy("setup")),
        };
        Ok(Server { spec, table, prepared })
    }

    /// What a client needs to know.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What is looked up.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How indices are written and looked up, in strategies that look up token by token.
    pub fn recipe(&self) -> Option<&Recipe> {
        match &self.prepared {
            Prepared::Tokens { recipe, .. } => Some(recipe),
            Prepared::Histogram { .. } => None,
        }
    }

    /// Keeps the evaluation keys of a client, which must come before its queries. Returns the name
    /// of the client's key.
    ///
    /// # Errors
    /// [`Error::Lookup`] in strategies that need none, and for a set that lacks one; damaged bytes.
    pub fn register(&self, keys: &[u8]) -> Result<KeyId> {
        let Prepared::Tokens { recipe, keys: held, .. } = &self.prepared else {
            return Err(Error::Lookup {
                operation: "register",
                detail: "strategy histogram needs no evaluation keys".into(),
            });
        };
        if let Some(compact) = recipe.compact_layout() {
            let plan = recipe.key_plan();
            let (evaluation, roots) = read_keys(&self.spec, (&plan, compact), keys)?;
            return Ok(hold(held, evaluation, Some(Arc::new(roots))));
        }
        let keys = EvaluationKeys::from_bytes(recipe.params(), keys)?;
        if !keys.covers(&recipe.key_plan()) {
            return Err(Error::Lookup {
                operation: "register",
                detail: format!(
                    "the set lacks a key that strategy {} needs over these tables, or reaches \
                    too low a level; send what the \
                     client's keys() gives",
                    recipe.strategy()
                ),
            });
        }
        Ok(hold(held, keys, None))
    }

    /// Drops the evaluation keys of a client; says whether there were any.
    pub fn forget(&self, key: KeyId) -> bool {
        let Prepared::Tokens { keys, .. } = &self.prepared else { return false };
        keys.write().unwrap_or_else(PoisonError::into_inner).remove(&key).is_some()
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and a query for another table or other settings;
    /// [`Error::Lookup`] where the keys of the client who asks were not registered.
    pub fn answer(&self, query: &[u8]) -> Result<Vec<u8>> {
        match &self.prepared {
            Prepared::Histogram { scheme, weights } => self.sums(scheme, weights, query),
            Prepared::Tokens { recipe, weights, keys } => {
                let prepared = (recipe, &**weights);
                if let Some(compact) = recipe.compact_layout() {
                    let query = CompactQuery::from_bytes(&self.spec, (recipe, compact), query)?;
                    let batches = self.look_up_roots((recipe, compact), weights, keys, &query)?;
                    let CompactQuery { key, nonce, memo, .. } = query;
                    return write_answer(&self.spec, prepared, (key, nonce, memo), &batches);
                }
                let query = TokensQuery::from_bytes(&self.spec, recipe, query)?;
                let batches = self.look_up(recipe, weights, keys, &query)?;
                let TokensQuery { key, nonce, memo, .. } = query;
                write_answer(&self.spec, prepared, (key, nonce, memo), &batches)
            }
        }
    }

    /// Looked-up rows for more work on the server: for every batch of [`Recipe::batch`] tokens a
    /// ciphertext a column, token i of the batch in slot i, with [`Options::levels`] levels left.
    ///
    /// # Errors
    /// As [`Self::answer`], and [`Error::Lookup`] in strategy `histogram`.
    pub fn embed(&self, query: &[u8]) -> Result<Vec<Vec<Ciphertext>>> {
        let Prepared::Tokens { recipe, weights, keys } = &self.prepared else {
            return Err(other_strategy("embed"));
        };
        if let Some(compact) = recipe.compact_layout() {
            let query = CompactQuery::from_bytes(&self.spec, (recipe, compact), query)?;
            return self.look_up_roots((recipe, compact), weights, keys, &query);
        }
        self.look_up(recipe, weights, keys, &TokensQuery::from_bytes(&self.spec, recipe, query)?)
    }

    /// Makes what a compact query's indices are looked up by, from its bytes on, and drops it: for
    /// benches. Returns the number of functions.
    ///
    /// # Errors
    /// As [`Self::answer`], and [`Error::Lookup`] for standard transport.
    pub fn make_functions(&self, query: &[u8]) -> Result<usize> {
        let Prepared::Tokens { recipe, keys, .. } = &self.prepared else {
            return Err(other_strategy("make functions"));
        };
        let Some(compact) = recipe.compact_layout() else {
            return Err(not_compact("make functions"));
        };
        let query = CompactQuery::from_bytes(&self.spec, (recipe, compact), query)?;
        let (held, lists) = self.ask((recipe, compact), keys, &query)?;
        let mut made = 0;
        for roots in lists {
            for roots in roots?.chunks_exact(recipe.entries()) {
                made += generate(recipe, &held.evaluator, roots, usize::MAX)?;
            }
        }
        Ok(made)
    }

    /// Roots of unity of each batch, and what they look up.
    fn look_up_roots(
        &self,
        (recipe, compact): (&Recipe, &Compact),
        weights: &Weights,
        keys: &RwLock<HashMap<KeyId, Held>>,
        query: &CompactQuery<'_>,
    ) -> Result<Vec<Vec<Ciphertext>>> {
        let (held, lists) = self.ask((recipe, compact), keys, query)?;
        let batch = |roots: Result<Vec<Ciphertext>>| {
            let roots = roots?;
            let queries: Vec<&[Ciphertext]> = roots.chunks_exact(recipe.entries()).collect();
            embed(recipe, &held.evaluator, weights, &queries)
        };
        lists.map(batch).collect()
    }

    /// The keys of who asks, and the roots of each batch as they are asked for.
    fn ask(
        &self,
        (recipe, compact): (&Recipe, &Compact),
        keys: &RwLock<HashMap<KeyId, Held>>,
        query: &CompactQuery<'_>,
    ) -> Result<(Held, impl Iterator<Item = Result<Vec<Ciphertext>>>)> {
        let held = registered(keys, query.ciphertexts.key_id())?;
        let keys = held.roots.clone().ok_or_else(|| not_compact("answer"))?;
        let lists = recipe.entries() * self.spec.tables();
        let each = move |at: usize| compact.roots(&keys, &query.ciphertexts, (at * lists, lists));
        Ok((held, (0..query.batches).map(each)))
    }

    fn look_up(
        &self,
        recipe: &Recipe,
        weights: &Weights,
        keys: &RwLock<HashMap<KeyId, Held>>,
        query: &TokensQuery<'_>,
    ) -> Result<Vec<Vec<Ciphertext>>> {
        let name = query.ciphertexts.first().map(Ciphertext::key_id).unwrap_or_default();
        let evaluator = if recipe.key_plan().keys(recipe.params()) == 0 {
            Evaluator::without_keys(recipe.params().clone())
        } else {
            registered(keys, name)?.evaluator
        };
        let (entries, tables) = (recipe.entries(), self.spec.tables());
        let batch = |ciphertexts: &[Ciphertext]| {
            let queries: Vec<&[Ciphertext]> = ciphertexts.chunks_exact(entries).collect();
            embed(recipe, &evaluator, weights, &queries)
        };
        query.ciphertexts.chunks_exact(entries * tables).map(batch).collect()
    }

    /// The tables with their description, framed: not for clients.
    ///
    /// `description's frame, its length before it as u32 | numbers f64 each`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let spec = self.spec().to_bytes();
        let values = self.table().values();
        let mut payload = Vec::with_capacity(4 + spec.len() + 8 * values.len());
        payload.extend_from_slice(&(spec.len() as u32).to_le_bytes());
        payload.extend_from_slice(&spec);
        values.iter().for_each(|value| payload.extend_from_slice(&value.to_le_bytes()));
        frame(Kind::Segment, self.spec().params, KeyId::default(), &payload)
    }

    /// Reads what [`Self::to_bytes`] wrote. Evaluation keys have to be registered again.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and tables that are not those of the description.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Segment, bytes)?;
        let mut reader = Reader::new("the tables of a lookup", payload);
        expect_scheme(&header, &reader)?;
        let length = reader.u32()? as usize;
        let spec = Spec::from_bytes(reader.take(length)?)?;
        expect_params("the tables of a lookup", &spec, &header)?;
        let (tables, rows, columns) = spec.shape;
        if header.key != KeyId::default() || reader.remaining() != 8 * tables * rows * columns {
            let left = reader.remaining();
            let detail = format!("{tables} × {rows} × {columns} numbers expected in {left} bytes");
            return Err(reader.error(detail).into());
        }
        let values = reader.take(reader.remaining())?.as_chunks::<8>().0;
        let values: Vec<f64> = values.iter().map(|value| f64::from_le_bytes(*value)).collect();
        let table = Table::from_parts(values, spec.shape, spec.zero_row)?;
        if table.digest() != spec.digest {
            return Err(reader.error("these are not the tables of the description").into());
        }
        let (fresh, instance) = Spec::new(&table, spec.options)?;
        // Of an earlier release, or of a machine whose last bits are others: clients have been told.
        let promised = Spec { bound: spec.bound, rounding: spec.rounding, ..fresh };
        if promised != spec {
            return Err(reader.error("these tables have another description").into());
        }
        Self::of(table, spec, instance)
    }

    /// The sums of documents.
    fn sums(&self, scheme: &Histogram, weights: &[i64], query: &[u8]) -> Result<Vec<u8>> {
        let query = HistogramQuery::from_bytes(&self.spec, scheme, query)?;
        let dimension = self.spec.dimension();
        let sums = scheme.scan(query.words, query.documents, dimension, weights);
        let hint = query.wants_hint.then(|| {
            let masks = Masks::new(scheme, &query.mask_seed, dimension);
            Hint::new(scheme, &masks, weights)
        });
        let HistogramQuery { key, nonce, documents, .. } = query;
        Ok(HistogramAnswer { key, nonce, documents, hint, sums }.to_bytes(&self.spec, scheme))
    }
}

/// Keeps a client's keys under their name.
fn hold(
    held: &RwLock<HashMap<KeyId, Held>>,
    keys: EvaluationKeys,
    roots: Option<Arc<RootKeys>>,
) -> KeyId {
    let name = keys.key_id();
    let evaluator = Evaluator::new(Arc::new(keys));
    let mut held = held.write().unwrap_or_else(PoisonError::into_inner);
    held.insert(name, Held { evaluator, roots });
    name
}

fn registered(keys: &RwLock<HashMap<KeyId, Held>>, name: KeyId) -> Result<Held> {
    let held = keys.read().unwrap_or_else(PoisonError::into_inner);
    held.get(&name).cloned().ok_or_else(|| Error::Lookup {
        operation: "answer",
        detail: format!(
            "the keys of {name} are not here; register what its client's keys() gives first"
        ),
    })
}

fn not_compact(operation: &'static str) -> Error {
    let detail = "indices travel in the standard way here; set up with transport compact".into();
    Error::Lookup { operation, detail }
}

fn other_strategy(operation: &'static str) -> Error {
    Error::Lookup {
        operation,
        detail: "strategy histogram gives no encrypted rows; take one that looks up token by token"
            .into(),
    }
}
