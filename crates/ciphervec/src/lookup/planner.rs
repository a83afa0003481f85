//! Estimates what every strategy of lookup costs, and names the cheapest. Public numbers only.

use super::strategy::Strategy;
use super::tokens::compact::CompactCost;
use super::tokens::cost::{Operations, Speed};
use super::tokens::design::Shape;
use super::tokens::recipe::Recipe;
use super::transport::Transport;
use crate::error::{Error, Result};
use ciphervec_he::ckks::Ring;
use core::fmt::Write;

/// Bytes a second that are assumed between client and server: a gigabit.
pub const BYTES_PER_SECOND: f64 = 125e6;
/// Bytes of an encrypted count, and of one number of its answer (`docs/lookup.md`, section
/// "Histogram").
const COUNT_BYTES: usize = 5;
const ANSWER_BYTES: usize = 8;

/// What becomes of looked-up rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// They are decrypted.
    Decrypt,
    /// They are summed or averaged over documents of so many indices, and nothing else is wanted of
    /// them.
    Pool(usize),
    /// They are computed with: so many levels are left.
    Levels(usize),
}

/// What a strategy is wanted for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// p, the zero row included.
    pub rows: usize,
    /// d.
    pub columns: usize,
    /// ℓ: tables whose rows are summed.
    pub tables: usize,
    /// Indices that are looked up together.
    pub batch: usize,
    /// See [`Shape::precision_bits`].
    pub precision_bits: u32,
    /// What follows.
    pub next: Next,
    /// Of the network: queries and answers count with the time that they take.
    pub bytes_per_second: f64,
    /// Seconds that a message takes there and back whatever its size: once for a batch.
    pub latency: f64,
    /// The strategy that may be chosen; all if it is left open.
    pub strategy: Option<Strategy>,
    /// The transport that may be chosen; both if it is left open.
    pub transport: Option<Transport>,
}

/// What a strategy costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The strategy.
    pub strategy: Strategy,
    /// How its indices travel.
    pub transport: Transport,
    /// log2 of the ring degree; 0 where there is no ring of CKKS.
    pub log_degree: u32,
    /// Levels.
    pub depth: usize,
    /// Operations that make the functions of a batch, for all tables.
    pub generation: Operations,
    /// Operations that meet the tables.
    pub sums: Operations,
    /// Milliseconds an index on one thread, for both.
    pub generation_ms: f64,
    /// See `generation_ms`.
    pub sums_ms: f64,
    /// Bytes an index.
    pub query_bytes: f64,
    /// Bytes an index.
    pub answer_bytes: f64,
    /// Bytes of the evaluation keys, once.
    pub key_bytes: usize,
    /// The relative root mean square error.
    pub error: f64,
}

impl Estimate {
    /// Milliseconds of computation an index.
    pub fn milliseconds(&self) -> f64 {
        self.generation_ms + self.sums_ms
    }

    /// Milliseconds an index with those on the network.
    pub fn cost(&self, request: &Request) -> f64 {
        let sent = (self.query_bytes + self.answer_bytes) / request.bytes_per_second;
        self.milliseconds() + (sent + request.latency / request.batch as f64) * 1e3
    }

    fn name(&self) -> String {
        name(self.strategy, self.transport)
    }
}

/// Every strategy's estimate, and the one that was picked.
#[derive(Debug)]
pub struct Planner {
    request: Request,
    estimates: Vec<(Strategy, Transport, Result<Estimate>)>,
    best: Estimate,
}

impl Planner {
    /// Estimates every strategy. The first call in a process measures the machine for some
    /// milliseconds.
    ///
    /// # Errors
    /// [`Error::Range`] for an empty request, or if no strategy serves it.
    pub fn new(request: Request) -> Result<Self> {
        if request.batch == 0 || request.tables == 0 || request.next == Next::Pool(0) {
            return Err(Error::Range {
                what: "indices, tables and indices of a document",
                expected: "at least 1".into(),
                actual: format!("{} and {}, {:?}", request.batch, request.tables, request.next),
            });
        }
        let standard = Strategy::ALL.map(|strategy| (strategy, Transport::Standard));
        let compact = [Strategy::Ive, Strategy::IveDigits].map(|one| (one, Transport::Compact));
        let estimates: Vec<_> = standard
            .into_iter()
            .chain(compact)
            .map(|(strategy, transport)| {
                let estimate = match transport {
                    Transport::Standard => estimate(strategy, &request),
                    Transport::Compact => compactly(strategy, &request),
                };
                (strategy, transport, estimate)
            })
            .collect();
        let served = estimates.iter().filter_map(|(strategy, transport, estimate)| {
            let wanted = request.transport.is_none_or(|wanted| wanted == *transport)
                && request.strategy.is_none_or(|wanted| wanted == *strategy);
            estimate.as_ref().ok().filter(|_| wanted)
        });
        let best = served.min_by(|a, b| a.cost(&request).total_cmp(&b.cost(&request)));
        let Some(best) = best.copied() else {
            return Err(Error::Range {
                what: "a lookup",
                expected: "one that a strategy serves: fewer rows, less precision or fewer levels"
                    .into(),
                actual: format!("{request:?}"),
            });
        };
        Ok(Planner { request, estimates, best })
    }

    /// The cheapest strategy, computation and network together.
    pub fn best(&self) -> &Estimate {
        &self.best
    }

    /// The estimate of a strategy, if it serves the request.
    pub fn estimate(&self, strategy: Strategy) -> Option<&Estimate> {
        self.estimate_of(strategy, Transport::Standard)
    }

    /// The same of indices that travel in another way.
    pub fn estimate_of(&self, strategy: Strategy, transport: Transport) -> Option<&Estimate> {
        let found = self.estimates.iter().find(|(a, b, _)| (*a, *b) == (strategy, transport))?;
        found.2.as_ref().ok()
    }

    /// The table that the choice was made from.
    pub fn explain(&self) -> String {
        let Request { rows, columns, tables, batch, precision_bits, next, .. } = self.request;
        let Request { bytes_per_second, latency, .. } = self.request;
        let mut text = format!(
            "{batch} indices at once into {tables} table(s) of {rows} rows of {columns}, to \
            {precision_bits} bits, then {next:?}; \
             one thread, a network of {:.4} MB/s and {:.1} ms there and back\n{:<19} {:>5} {:>5} {:>10} {:>10} {:>10} {:>11} {:>11} {:>10} {:>9} {:>8}\n",
            bytes_per_second / 1e6,
            1e3 * latency,
            "strategy",
            "log N",
            "depth",
            "functions",
            "sums",
            "all",
            "query",
            "answer",
            "with both",
            "keys",
            "error",
        );
        // Writing into a string does not fail.
        for (strategy, transport, estimate) in &self.estimates {
            let _ = match estimate {
                Ok(e) => writeln!(
                    text,
                    "{:<19} {:>5} {:>5} {:>7.4} ms {:>7.4} ms {:>7.4} ms {:>9.1} B {:>9.1} B {:>7.4} ms {:>6.1} MB {:>8.1e}{}",
                    e.name(),
                    e.log_degree,
                    e.depth,
                    e.generation_ms,
                    e.sums_ms,
                    e.milliseconds(),
                    e.query_bytes,
                    e.answer_bytes,
                    e.cost(&self.request),
                    e.key_bytes as f64 / 1e6,
                    e.error,
                    if *e == self.best { "  <- chosen" } else { "" },
                ),
                Err(reason) => writeln!(text, "{:<19} {reason}", name(*strategy, *transport)),
            };
        }
        text.push_str(
            "Times and bytes are for one index, all tables together; keys are sent once.\n",
        );
        let compact =
            self.estimates.iter().filter(|(_, transport, _)| *transport == Transport::Compact);
        for estimate in compact.filter_map(|(_, _, estimate)| estimate.as_ref().ok()) {
            let whole = 1usize << (estimate.log_degree - 1);
            let batches = batch.div_ceil(whole);
            let least = estimate.query_bytes * batch as f64 / batches as f64;
            let _ = writeln!(
                text,
                "{}: a query holds {whole} indices and has {:.0} KB, and takes as long, however few \
                 they are; a full one is {:.1} B an index.",
                estimate.name(),
                least / 1e3,
                least / whole as f64,
            );
        }
        text
    }
}

fn estimate(strategy: Strategy, request: &Request) -> Result<Estimate> {
    if strategy == Strategy::Histogram {
        return histogram(request);
    }
    let Request { rows, columns, tables, batch, precision_bits, next, .. } = *request;
    let levels = if let Next::Levels(levels) = next { levels } else { 0 };
    let recipe = Recipe::new(strategy, Shape { rows, columns, precision_bits, levels })?;
    let speed = Speed::of(recipe.params().ring(), recipe.params().degree())?;
    let batches = batch.div_ceil(recipe.batch()) as f64;
    let each = batches / batch as f64;
    let one = recipe.generation();
    let (generation, sums) = (one.repeated(tables), recipe.sums(tables));
    Ok(Estimate {
        strategy,
        transport: Transport::Standard,
        log_degree: recipe.params().spec().log_degree,
        depth: recipe.depth(),
        generation,
        sums,
        generation_ms: each * speed.milliseconds(&generation),
        sums_ms: each * speed.milliseconds(&sums),
        query_bytes: each * recipe.query_bytes(tables) as f64,
        answer_bytes: each * recipe.answer_bytes() as f64,
        key_bytes: recipe.key_bytes()?,
        error: recipe.relative_error(),
    })
}

/// The same with compact transport, of the plan alone: to make its parameters takes seconds.
fn compactly(strategy: Strategy, request: &Request) -> Result<Estimate> {
    let Request { rows, columns, tables, batch, precision_bits, next, .. } = *request;
    let levels = if let Next::Levels(levels) = next { levels } else { 0 };
    let shape = Shape { rows, columns, precision_bits, levels };
    let cost = CompactCost::new(strategy, shape, tables)?;
    let speed = Speed::of(Ring::Standard, 2 * cost.batch)?;
    let each = batch.div_ceil(cost.batch) as f64 / batch as f64;
    Ok(Estimate {
        strategy,
        transport: Transport::Compact,
        log_degree: cost.batch.ilog2() + 1,
        depth: cost.depth,
        generation: cost.generation,
        sums: cost.sums,
        generation_ms: each * speed.milliseconds(&cost.generation),
        sums_ms: each * speed.milliseconds(&cost.sums),
        query_bytes: each * cost.query_bytes as f64,
        answer_bytes: each * cost.answer_bytes as f64,
        key_bytes: cost.key_bytes,
        error: cost.error,
    })
}

fn name(strategy: Strategy, transport: Transport) -> String {
    match transport {
        Transport::Standard => strategy.to_string(),
        Transport::Compact => format!("{strategy}, {transport}"),
    }
}

/// One multiply-add for every number of every table, a document.
fn histogram(request: &Request) -> Result<Estimate> {
    let Next::Pool(document) = request.next else {
        return Err(Error::Lookup {
            operation: "histogram",
            detail: "serves sums and means of a document's rows only".into(),
        });
    };
    let counts = request.tables * request.rows;
    let degree = 1 << 12;
    let word = Speed::of(Ring::ConjugateInvariant, degree)?.pass / degree as f64;
    let share = 1.0 / document as f64;
    Ok(Estimate {
        strategy: Strategy::Histogram,
        transport: Transport::Standard,
        log_degree: 0,
        depth: 1,
        generation: Operations::default(),
        sums: Operations::default(),
        generation_ms: 0.0,
        sums_ms: share * (counts * request.columns) as f64 * word / 1e6,
        query_bytes: share * (counts * COUNT_BYTES) as f64,
        answer_bytes: share * (request.columns * ANSWER_BYTES) as f64,
        key_bytes: 0,
        error: f64::exp2(-f64::from(request.precision_bits)),
    })
}
