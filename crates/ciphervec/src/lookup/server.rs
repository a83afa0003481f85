//! The server of lookups: it holds tables and clients' evaluation keys, and cannot read queries.

use super::histogram::messages::{HistogramAnswer, HistogramQuery};
use super::options::Options;
use super::serialize::{expect_params, expect_scheme, frame};
use super::spec::{Instance, Spec};
use super::table::Table;
use super::tokens::answer::write_answer;
use super::tokens::carrier::{Asked, Held, carrier};
use super::tokens::embed::{embed, generate};
use super::tokens::recipe::Recipe;
use super::tokens::weights::Weights;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{Ciphertext, Evaluator};
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
    Tokens(Box<Tokens>),
}

/// What looks up token by token.
struct Tokens {
    recipe: Recipe,
    weights: Weights,
    keys: RwLock<HashMap<KeyId, Held>>,
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
                Prepared::Tokens(Box::new(Tokens { recipe, weights, keys: RwLock::default() }))
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
            Prepared::Tokens(tokens) => Some(&tokens.recipe),
            Prepared::Histogram { .. } => None,
        }
    }

    /// Keeps the evaluation keys of a client, which must come before its queries. Returns the name
    /// of the client's key.
    ///
    /// # Errors
    /// [`Error::Lookup`] in strategies that need none, and for a set that lacks one; damaged bytes.
    pub fn register(&self, keys: &[u8]) -> Result<KeyId> {
        let Prepared::Tokens(tokens) = &self.prepared else {
            return Err(Error::Lookup {
                operation: "register",
                detail: "strategy histogram needs no evaluation keys".into(),
            });
        };
        let recipe = &tokens.recipe;
        let (evaluation, roots) = carrier(recipe).keys(&self.spec, recipe, keys)?;
        let name = evaluation.key_id();
        let evaluator = Evaluator::new(Arc::new(evaluation));
        let mut held = tokens.keys.write().unwrap_or_else(PoisonError::into_inner);
        held.insert(name, Held { evaluator, roots: roots.map(Arc::new) });
        Ok(name)
    }

    /// Drops the evaluation keys of a client; says whether there were any.
    pub fn forget(&self, key: KeyId) -> bool {
        let Prepared::Tokens(tokens) = &self.prepared else { return false };
        tokens.keys.write().unwrap_or_else(PoisonError::into_inner).remove(&key).is_some()
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Damaged or malformed bytes, and a query for another table or other settings;
    /// [`Error::Lookup`] where the keys of the client who asks were not registered.
    pub fn answer(&self, query: &[u8]) -> Result<Vec<u8>> {
        match &self.prepared {
            Prepared::Histogram { scheme, weights } => self.sums(scheme, weights, query),
            Prepared::Tokens(tokens) => {
                let asked = tokens.ask(&self.spec, query)?;
                let head = (asked.key, asked.nonce, asked.memo);
                let batches = tokens.look_up(asked)?;
                write_answer(&self.spec, (&tokens.recipe, &tokens.weights), head, &batches)
            }
        }
    }

    /// Looked-up rows for more work on the server: for every batch of [`Recipe::batch`] tokens a
    /// ciphertext a column, token i of the batch in slot i, with [`Options::levels`] levels left.
    ///
    /// # Errors
    /// As [`Self::answer`], and [`Error::Lookup`] in strategy `histogram`.
    pub fn embed(&self, query: &[u8]) -> Result<Vec<Vec<Ciphertext>>> {
        let tokens = self.tokens("embed")?;
        tokens.look_up(tokens.ask(&self.spec, query)?)
    }

    /// Makes what a query's indices are looked up by, from its bytes on, and drops it: for benches.
    /// Returns the number of functions.
    ///
    /// # Errors
    /// As [`Self::embed`].
    pub fn make_functions(&self, query: &[u8]) -> Result<usize> {
        let tokens = self.tokens("make functions")?;
        let Asked { evaluator, batches, .. } = tokens.ask(&self.spec, query)?;
        let mut made = 0;
        for batch in batches {
            for indices in batch?.chunks_exact(tokens.recipe.entries()) {
                made += generate(&tokens.recipe, &evaluator, indices, usize::MAX)?;
            }
        }
        Ok(made)
    }

    fn tokens(&self, operation: &'static str) -> Result<&Tokens> {
        match &self.prepared {
            Prepared::Tokens(tokens) => Ok(tokens),
            Prepared::Histogram { .. } => Err(other_strategy(operation)),
        }
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

impl Tokens {
    /// What a query asks for.
    fn ask<'a>(&'a self, spec: &'a Spec, query: &'a [u8]) -> Result<Asked<'a>> {
        let registered = |name| {
            let held = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            held.get(&name).cloned().ok_or_else(|| Error::Lookup {
                operation: "answer",
                detail: format!(
                    "the keys of {name} are not here; register what its client's keys() gives first"
                ),
            })
        };
        carrier(&self.recipe).read(spec, &self.recipe, query, &registered)
    }

    /// The rows of each batch, a ciphertext a column.
    fn look_up(&self, Asked { evaluator, batches, .. }: Asked<'_>) -> Result<Vec<Vec<Ciphertext>>> {
        let batch = |ciphertexts: Result<Vec<Ciphertext>>| {
            let ciphertexts = ciphertexts?;
            let queries: Vec<&[Ciphertext]> =
                ciphertexts.chunks_exact(self.recipe.entries()).collect();
            embed(&self.recipe, &evaluator, &self.weights, &queries)
        };
        batches.map(batch).collect()
    }
}

fn other_strategy(operation: &'static str) -> Error {
    Error::Lookup {
        operation,
        detail: "strategy histogram gives no encrypted rows; take one that looks up token by token"
            .into(),
    }
}
