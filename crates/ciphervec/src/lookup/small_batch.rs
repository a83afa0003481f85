//! Small-batch lookup: one-hot vectors in a strided layout, and rows in the same layout, one
//! ciphertext each (arXiv 2606.03191, appendix E).
//!
//! B indices share a ciphertext: slot[B j + b] belongs to entry j of index b. All tables lie one
//! below the other, so an index is one vector with a 1 for each table, which the client writes
//! itself: with so few of them there is no need of functions that the server makes. A rotation by B
//! r turns every vector by r; the matrix of d × ℓp numbers is multiplied by its d′ extended
//! diagonals (d′ the power of two from d on) with baby steps and giant steps, and what is left of
//! d′ turns is summed by doubling.

use super::strategy::Strategy;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{
    Ciphertext, Complex, Evaluator, KeyPlan, LinearTransform, Params, ParamsSpec, Ring,
};
use ciphervec_he::params::Security;
use std::sync::Arc;

/// log2 of the degrees to try.
const LOG_DEGREES: core::ops::RangeInclusive<u32> = 13..=16;
/// One level, and room for results up to 2^10.
const SPEC: ParamsSpec = ParamsSpec {
    log_degree: 13,
    ring: Ring::ConjugateInvariant,
    base_bits: 50,
    scale_bits: 40,
    levels: 1,
    special_primes: 1,
    special_bits: 50,
    digits: 2,
    security: Security::Classical128,
};

/// The layout of a small batch: shapes and parameters, nothing of a table.
#[derive(Clone, Debug)]
pub struct SmallBatch {
    rows: usize,
    columns: usize,
    tables: usize,
    /// Entries of a vector: ℓp, padded to a power of two.
    length: usize,
    /// d, padded likewise.
    width: usize,
    batch: usize,
    params: Arc<Params>,
}

/// Tables, encoded for a layout.
#[derive(Clone, Debug)]
pub struct SmallTables {
    transform: LinearTransform,
}

impl SmallBatch {
    /// The layout for up to `batch` indices into `tables` tables of `rows` rows of `columns`
    /// numbers.
    ///
    /// # Errors
    /// [`Error::Range`] for an empty shape, or one that has more numbers than the slots of a ring
    /// of degree 2^16.
    pub fn new((tables, rows, columns): (usize, usize, usize), batch: usize) -> Result<Self> {
        let (length, width) =
            ((tables * rows).max(columns).next_power_of_two(), columns.next_power_of_two());
        let slots = length * batch.next_power_of_two();
        let log_degree = LOG_DEGREES.into_iter().find(|log| slots <= 1 << log);
        let empty = tables * rows * columns * batch == 0;
        let Some(log_degree) = log_degree.filter(|_| !empty) else {
            return Err(Error::Range {
                what: "indices times rows of all tables",
                expected: format!("1 to {}", 1 << LOG_DEGREES.end()),
                actual: format!("{batch} times {tables} times {rows}"),
            });
        };
        let params = Params::new(ParamsSpec { log_degree, ..SPEC })?;
        // All the slots there are: more indices cost nothing.
        let batch = params.max_slots() / length;
        Ok(SmallBatch { rows, columns, tables, length, width, batch, params })
    }

    /// The strategy whose queries these are.
    pub fn strategy(&self) -> Strategy {
        Strategy::OneHot
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// B: indices in a ciphertext.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The keys that a server needs.
    pub fn key_plan(&self) -> KeyPlan {
        let turns = (0..self.width).map(|turn| turn * self.batch);
        let rotations = LinearTransform::rotations_of(self.params.max_slots(), turns);
        KeyPlan::new().rotations(rotations).rotations(self.doublings()).at_level(1)
    }

    /// What is left to sum after d′ turns.
    fn doublings(&self) -> impl Iterator<Item = i64> + use<> {
        let (batch, width, length) = (self.batch, self.width, self.length);
        (width.ilog2()..length.ilog2()).map(move |bit| (batch << bit) as i64)
    }

    /// The slots of a query: `indices[b]` has an index for every table. Fewer than [`Self::batch`]
    /// leave zeros.
    ///
    /// # Errors
    /// [`Error::Range`] for too many indices, or one that is not below the number of rows.
    pub fn write(&self, indices: &[Vec<usize>]) -> Result<Vec<f64>> {
        let range = |what, expected: String, actual: usize| {
            Err(Error::Range { what, expected, actual: actual.to_string() })
        };
        if indices.len() > self.batch {
            return range(
                "the indices of a small batch",
                format!("at most {}", self.batch),
                indices.len(),
            );
        }
        let mut slots = vec![0.0; self.length * self.batch];
        for (b, indices) in indices.iter().enumerate() {
            if indices.len() != self.tables {
                return range("the tables of an index", self.tables.to_string(), indices.len());
            }
            for (table, &index) in indices.iter().enumerate() {
                if index >= self.rows {
                    return range("an index", format!("below {}", self.rows), index);
                }
                slots[(table * self.rows + index) * self.batch + b] = 1.0;
            }
        }
        Ok(slots)
    }

    /// The rows of the first `count` indices, from the slots of an answer.
    pub fn read(&self, slots: &[f64], count: usize) -> Vec<Vec<f64>> {
        let value = |b: usize, j: usize| slots.get(self.batch * j + b).copied().unwrap_or(0.0);
        let row = |b| (0..self.columns).map(|j| value(b, j)).collect();
        (0..count.min(self.batch)).map(row).collect()
    }

    /// Encodes tables, each row-major with one row of numbers for each index.
    ///
    /// # Errors
    /// [`Error::Range`] for other shapes, or numbers that cannot be encoded or are all zero.
    pub fn tables(&self, tables: &[&[f64]]) -> Result<SmallTables> {
        let (rows, columns) = (self.rows, self.columns);
        let fits =
            tables.len() == self.tables && tables.iter().all(|table| table.len() == rows * columns);
        if !fits {
            return Err(Error::Range {
                what: "the tables of a small batch",
                expected: format!("{} of {rows} rows of {columns}", self.tables),
                actual: format!(
                    "{} of {:?} numbers",
                    tables.len(),
                    tables.first().map(|t| t.len())
                ),
            });
        }
        // What entry `i` of a vector adds to number `k` of a row.
        let entry = |k: usize, i: usize| match (k < columns, tables.get(i / rows)) {
            (true, Some(table)) => table[i % rows * columns + k],
            _ => 0.0,
        };
        let diagonal = |turn: usize| -> (i64, Vec<Complex>) {
            let value = |j: usize| entry(j % self.width, (j + turn) % self.length).into();
            let mut each: Vec<Complex> = (0..self.length).map(value).collect();
            // Keys are made for all turns: a number that is rounded to zero keeps one that has
            // nothing in it.
            each[0] += Complex::from(f64::MIN_POSITIVE);
            let slots = each.iter().flat_map(|value| core::iter::repeat_n(*value, self.batch));
            ((turn * self.batch) as i64, slots.collect())
        };
        let diagonals: Vec<_> = (0..self.width).map(diagonal).collect();
        let slots = self.params.max_slots();
        let transform = LinearTransform::from_diagonals(&self.params, slots, &diagonals, 1)?;
        Ok(SmallTables { transform })
    }

    /// Looks up what a query names: in slot B j + b number j of the sum of the rows of index b.
    ///
    /// # Errors
    /// Those of [`Evaluator::transform`]: another number of slots or level, a missing key, another
    /// key or other parameters.
    pub fn embed(
        &self,
        evaluator: &Evaluator,
        tables: &SmallTables,
        query: &Ciphertext,
    ) -> Result<Ciphertext> {
        let mut sum = evaluator.transform(query, &tables.transform)?;
        for steps in self.doublings() {
            sum = evaluator.add(&sum, &evaluator.rotate(&sum, steps)?)?;
        }
        Ok(sum)
    }
}
