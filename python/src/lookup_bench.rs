//! Times private lookup stage by stage, for benches. Plays client and server; gives milliseconds, bytes and errors,
//! never a key or a ciphertext.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Evaluator, Params, Plaintext, SecretKey,
};
use ciphervec_owner::Result;
use ciphervec_owner::lookup::{
    BYTES_PER_SECOND, Client, Documents, Next, Options, Planner, Pooling, Recipe, Request, Server,
    Shape, SmallBatch, Strategy, Table, Transport, Weights, embed, generate,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::ckks::work;

/// A strategy for random tables of a shape, with its keys and a full batch of encrypted indices.
#[pyclass(name = "LookupBench", module = "ciphervec._native", frozen)]
pub struct PyLookupBench {
    recipe: Recipe,
    key: SecretKey,
    evaluator: Evaluator,
    weights: Weights,
    tables: Vec<Vec<f64>>,
    /// `[table][slot]`.
    indices: Vec<Vec<usize>>,
    /// `[table][entry]`.
    queries: Vec<Vec<Ciphertext>>,
    query_bytes: usize,
    key_bytes: usize,
}

/// The same numbers in every run: SplitMix64, uniform in [-1, 1).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / f64::exp2(52.0) - 1.0
}

/// Full batches of rows that are decrypted next.
fn request(
    rows: usize,
    columns: usize,
    tables: usize,
    batch: usize,
    precision_bits: u32,
    transport: Transport,
) -> Request {
    let next = Next::Decrypt;
    Request {
        rows,
        columns,
        tables,
        batch,
        precision_bits,
        next,
        bytes_per_second: BYTES_PER_SECOND,
        latency: 0.0,
        strategy: None,
        transport: Some(transport),
    }
}

#[pymethods]
impl PyLookupBench {
    /// `tables` tables of `rows` times `columns` uniform numbers.
    #[new]
    fn new(
        py: Python<'_>,
        strategy: &str,
        rows: usize,
        columns: usize,
        tables: usize,
        precision_bits: u32,
    ) -> PyResult<Self> {
        let shape = Shape { rows, columns, precision_bits, levels: 0 };
        work(py, || Self::generate(Strategy::from_str(strategy)?, shape, tables))
    }

    /// The ring, what is sent and what is kept.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = self.recipe.params();
        let Shape { rows, columns, precision_bits, .. } = *self.recipe.shape();
        let batch = self.recipe.batch();
        let tables = self.tables.len();
        let request = request(rows, columns, tables, batch, precision_bits, Transport::Standard);
        let strategy = self.recipe.strategy();
        let planned = work(py, || Planner::new(request))?;
        let planned = planned.estimate(strategy).map(|estimate| estimate.milliseconds());
        let out = PyDict::new(py);
        out.set_item("planner_ms", planned)?;
        out.set_item("log_n", params.degree().ilog2())?;
        out.set_item("ring", params.ring().as_str())?;
        out.set_item("log_modulus", params.log_key_modulus())?;
        out.set_item("depth", self.recipe.depth())?;
        out.set_item("batch", batch)?;
        out.set_item("query_bytes", self.query_bytes)?;
        out.set_item("key_bytes", self.key_bytes)?;
        Ok(out)
    }

    /// Milliseconds of making the functions of the encrypted indices, one run each; where `most` is given, of so many of them only.
    /// With them how many there were.
    fn time_functions(
        &self,
        py: Python<'_>,
        repeats: usize,
        most: Option<usize>,
    ) -> PyResult<(Vec<f64>, usize)> {
        let once = || {
            let made = self.queries.iter().map(|query| {
                generate(&self.recipe, &self.evaluator, query, most.unwrap_or(usize::MAX))
            });
            made.sum::<Result<usize>>()
        };
        work(py, || timed(repeats, once))
    }

    /// Milliseconds of the whole lookup of a batch, one run each, and the root-mean-square error of its last answer over the
    /// root mean square of what was looked up.
    fn time_lookup(&self, py: Python<'_>, repeats: usize) -> PyResult<(Vec<f64>, f64)> {
        let queries: Vec<&[Ciphertext]> = self.queries.iter().map(Vec::as_slice).collect();
        let once = || embed(&self.recipe, &self.evaluator, &self.weights, &queries);
        work(py, || {
            let (runs, answer) = timed(repeats, once)?;
            Ok((runs, self.error(&answer)?))
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("secret keys can't be pickled"))
    }
}

impl PyLookupBench {
    fn generate(strategy: Strategy, shape: Shape, tables: usize) -> Result<Self> {
        let recipe = Recipe::new(strategy, shape)?;
        let params = recipe.params();
        let mut state = 1;
        let tables: Vec<Vec<f64>> = (0..tables)
            .map(|_| (0..shape.rows * shape.columns).map(|_| uniform(&mut state)).collect())
            .collect();
        let index = |state: &mut u64| {
            ((uniform(state) + 1.0) / 2.0 * shape.rows as f64) as usize % shape.rows
        };
        let indices: Vec<Vec<usize>> = tables
            .iter()
            .map(|_| (0..recipe.batch()).map(|_| index(&mut state)).collect())
            .collect();
        let references: Vec<&[f64]> = tables.iter().map(Vec::as_slice).collect();
        let weights = Weights::new(&recipe, &references)?;
        let key = SecretKey::generate(params)?;
        let keys = key.evaluation_keys(&recipe.key_plan())?;
        let key_bytes = if keys.is_empty() { 0 } else { keys.to_bytes().len() };
        let evaluator = Evaluator::new(Arc::new(keys));
        let mut query_bytes = 0;
        let mut queries = Vec::with_capacity(indices.len());
        for indices in &indices {
            let mut slots = vec![Vec::with_capacity(indices.len()); recipe.entries()];
            let mut entry = vec![Complex::default(); recipe.entries()];
            for index in indices {
                recipe.write(*index, &mut entry)?;
                slots.iter_mut().zip(&entry).for_each(|(slots, value)| slots.push(*value));
            }
            let mut query = Vec::with_capacity(slots.len());
            for values in &slots {
                let seeded = key.encrypt_seeded(&encode(params, values)?)?;
                query_bytes += seeded.to_bytes().len();
                query.push(seeded.expand());
            }
            queries.push(query);
        }
        Ok(PyLookupBench {
            recipe,
            key,
            evaluator,
            weights,
            tables,
            indices,
            queries,
            query_bytes,
            key_bytes,
        })
    }

    /// Relative root-mean-square error, over all slots and columns.
    fn error(&self, answer: &[Ciphertext]) -> Result<f64> {
        let columns = self.recipe.shape().columns;
        let (mut error, mut size) = (0.0, 0.0);
        for (column, ciphertext) in answer.iter().enumerate() {
            let found = self.key.decrypt(ciphertext)?.decode();
            for (slot, found) in found.iter().enumerate() {
                let rows = self.tables.iter().zip(&self.indices);
                let expected: f64 =
                    rows.map(|(table, indices)| table[indices[slot] * columns + column]).sum();
                error += (found - expected).powi(2);
                size += expected.powi(2);
            }
        }
        Ok((error / size).sqrt())
    }
}

/// The same with compact transport: both halves of a lookup, and the bytes of a full batch.
#[pyclass(name = "CompactLookupBench", module = "ciphervec._native", frozen)]
pub struct PyCompactLookupBench {
    server: Server,
    client: Client,
    indices: Vec<i64>,
    query: Vec<u8>,
    key_bytes: usize,
}

#[pymethods]
impl PyCompactLookupBench {
    /// `tables` tables of `rows` times `columns` uniform numbers.
    #[new]
    fn new(
        py: Python<'_>,
        strategy: &str,
        rows: usize,
        columns: usize,
        tables: usize,
        precision_bits: u32,
    ) -> PyResult<Self> {
        let options = |strategy| Options {
            strategy,
            pooling: Pooling::None,
            transport: Transport::Compact,
            precision_bits,
            ..Options::default()
        };
        work(py, || Self::generate((tables, rows, columns), options(Strategy::from_str(strategy)?)))
    }

    /// As [`PyLookupBench`] has them; the bytes of the query with everything around them, and of the answer.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        let Some(recipe) = self.server.recipe() else { return Ok(out) };
        let Shape { rows, columns, precision_bits, .. } = *recipe.shape();
        let (batch, tables) = (recipe.batch(), self.server.spec().tables());
        let transport = Transport::Compact;
        let request = request(rows, columns, tables, batch, precision_bits, transport);
        let planned = work(py, || Planner::new(request))?;
        let planned = planned.estimate_of(recipe.strategy(), transport);
        out.set_item("planner_ms", planned.map(|estimate| estimate.milliseconds()))?;
        out.set_item("log_n", recipe.params().degree().ilog2())?;
        out.set_item("ring", recipe.params().ring().as_str())?;
        out.set_item("log_modulus", recipe.params().log_key_modulus())?;
        out.set_item("depth", recipe.depth())?;
        out.set_item("batch", batch)?;
        out.set_item("query_bytes", self.query.len())?;
        out.set_item("key_bytes", self.key_bytes)?;
        Ok(out)
    }

    /// Milliseconds from a query's bytes to all functions of its indices, one run each, and how many those are.
    #[pyo3(signature = (repeats, most = None))]
    fn time_functions(
        &self,
        py: Python<'_>,
        repeats: usize,
        most: Option<usize>,
    ) -> PyResult<(Vec<f64>, usize)> {
        let made = work(py, || timed(repeats, || self.server.make_functions(&self.query)))?;
        Ok((made.0, most.map_or(made.1, |most| most.min(made.1))))
    }

    /// Milliseconds from a query's bytes to an answer's, one run each, and the relative root-mean-square error.
    fn time_lookup(&self, py: Python<'_>, repeats: usize) -> PyResult<(Vec<f64>, f64)> {
        work(py, || {
            let (runs, answer) = timed(repeats, || self.server.answer(&self.query))?;
            Ok((runs, self.error(&self.client.decode(&answer)?)))
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("secret keys can't be pickled"))
    }
}

impl PyCompactLookupBench {
    fn generate(shape: (usize, usize, usize), options: Options) -> Result<Self> {
        let (tables, rows, columns) = shape;
        let mut state = 1;
        let values: Vec<f64> = (0..tables * rows * columns).map(|_| uniform(&mut state)).collect();
        let server = Server::new(Table::new(&values, shape)?, options)?;
        let client = Client::generate(server.spec().clone())?;
        let keys = client.keys()?.unwrap_or_default();
        server.register(&keys)?;
        let tokens = server.recipe().map_or(0, Recipe::batch);
        let draw = |_| ((uniform(&mut state) + 1.0) / 2.0 * rows as f64) as i64 % rows as i64;
        let indices: Vec<i64> = (0..tokens * tables).map(draw).collect();
        let ends: Vec<usize> = (0..=tokens).collect();
        let query = client.query(&Documents::new(&indices, tables, &ends)?)?;
        Ok(PyCompactLookupBench { server, client, indices, query, key_bytes: keys.len() })
    }

    fn error(&self, found: &[f64]) -> f64 {
        let (tables, columns) = (self.server.spec().tables(), self.server.spec().columns());
        let (mut error, mut size) = (0.0, 0.0);
        let rows = found.chunks_exact(columns).zip(self.indices.chunks_exact(tables));
        for (row, named) in rows {
            for (column, found) in row.iter().enumerate() {
                let terms = named.iter().enumerate().map(|(table, &index)| {
                    self.server.table().table(table)[index as usize * columns + column]
                });
                let expected: f64 = terms.sum();
                error += (found - expected).powi(2);
                size += expected.powi(2);
            }
        }
        f64::sqrt(error / size)
    }
}

/// One lookup of `batch` indices at once in the layout of few indices: milliseconds of each run, the ring, the bytes of query and
/// keys, and the relative root-mean-square error.
#[pyfunction]
pub fn time_small_lookup<'py>(
    py: Python<'py>,
    rows: usize,
    columns: usize,
    tables: usize,
    batch: usize,
    repeats: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let small = work(py, || Small::run((tables, rows, columns), batch, repeats))?;
    let out = PyDict::new(py);
    out.set_item("ms", small.runs)?;
    out.set_item("log_n", small.log_degree)?;
    out.set_item("query_bytes", small.query_bytes)?;
    out.set_item("key_bytes", small.key_bytes)?;
    out.set_item("rms_error", small.error)?;
    Ok(out)
}

/// What a lookup of few indices took.
struct Small {
    runs: Vec<f64>,
    log_degree: u32,
    query_bytes: usize,
    key_bytes: usize,
    error: f64,
}

impl Small {
    fn run(shape: (usize, usize, usize), batch: usize, repeats: usize) -> Result<Self> {
        let (count, rows, columns) = shape;
        let layout = SmallBatch::new(shape, batch)?;
        let params = layout.params();
        let mut state = 1;
        let values: Vec<Vec<f64>> = (0..count)
            .map(|_| (0..rows * columns).map(|_| uniform(&mut state)).collect())
            .collect();
        let indices: Vec<Vec<usize>> =
            (0..batch).map(|b| (0..count).map(|t| (37 * b + 11 * t) % rows).collect()).collect();
        let references: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let tables = layout.tables(&references)?;
        let key = SecretKey::generate(params)?;
        let keys = key.evaluation_keys(&layout.key_plan())?;
        let key_bytes = keys.to_bytes().len();
        let evaluator = Evaluator::new(Arc::new(keys));
        let encoding = Encoding { slots: Some(params.max_slots()), ..Encoding::default() };
        let plain = Plaintext::encode_with(params, &layout.write(&indices)?, &encoding)?;
        let query = key.encrypt_seeded(&plain)?;
        let query_bytes = query.to_bytes().len();
        let query = query.expand();
        let (runs, answer) = timed(repeats, || layout.embed(&evaluator, &tables, &query))?;
        let found = layout.read(&key.decrypt(&answer)?.decode(), batch);
        let (mut error, mut size) = (0.0, 0.0);
        for (found, indices) in found.iter().zip(&indices) {
            for (column, found) in found.iter().enumerate() {
                let of = |(table, index): (&Vec<f64>, &usize)| table[index * columns + column];
                let expected: f64 = values.iter().zip(indices).map(of).sum();
                error += (found - expected).powi(2);
                size += expected.powi(2);
            }
        }
        let log_degree = params.degree().ilog2();
        let error = f64::sqrt(error / size);
        Ok(Small { runs, log_degree, query_bytes, key_bytes, error })
    }
}

fn encode(params: &Arc<Params>, values: &[Complex]) -> Result<Plaintext> {
    let encoding = Encoding { magnitude: Some(1.0), ..Encoding::default() };
    Ok(Plaintext::encode_complex_with(params, values, &encoding)?)
}

/// Milliseconds of each run, and what the last one gave.
fn timed<T>(repeats: usize, mut run: impl FnMut() -> Result<T>) -> Result<(Vec<f64>, T)> {
    let mut runs = Vec::with_capacity(repeats);
    loop {
        let began = Instant::now();
        let made = run()?;
        runs.push(1e3 * began.elapsed().as_secs_f64());
        if runs.len() >= repeats {
            return Ok((runs, made));
        }
    }
}
