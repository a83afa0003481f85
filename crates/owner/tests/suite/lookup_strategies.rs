//! Every way of looking rows up, encrypted, against the rows themselves, with the error that was promised.

use ciphervec_he_secret::ckks::{
    Ciphertext, Complex, Encoding, Evaluator, KeyPlan, Plaintext, SecretKey,
};
use ciphervec_owner::lookup::{
    BYTES_PER_SECOND, Next, Planner, Recipe, Request, Shape, SmallBatch, Strategy, Transport,
    Weights, embed, generate,
};
use std::sync::Arc;

const LOG_DEGREE: u32 = 11;

/// Numbers between -1 and 1 that repeat after a long while.
fn table(rows: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / f64::exp2(52.0) - 1.0
    };
    (0..rows * columns).map(|_| next()).collect()
}

struct Lookup {
    recipe: Recipe,
    key: SecretKey,
    evaluator: Evaluator,
}

impl Lookup {
    fn new(strategy: Strategy, shape: Shape) -> Self {
        Self::of(Recipe::insecure_new(strategy, shape, LOG_DEGREE).unwrap())
    }

    fn of(recipe: Recipe) -> Self {
        let key = SecretKey::generate(recipe.params()).unwrap();
        let keys = key.evaluation_keys(&recipe.key_plan()).unwrap();
        Lookup { recipe, key, evaluator: Evaluator::new(Arc::new(keys)) }
    }

    fn query(&self, indices: &[usize]) -> Vec<Ciphertext> {
        let entries = self.recipe.entries();
        let mut columns = vec![vec![Complex::default(); indices.len()]; entries];
        let mut written = vec![Complex::default(); entries];
        for (slot, &index) in indices.iter().enumerate() {
            self.recipe.write(index, &mut written).unwrap();
            columns.iter_mut().zip(&written).for_each(|(column, value)| column[slot] = *value);
        }
        let encoding = Encoding { magnitude: Some(1.0), ..Encoding::default() };
        let encrypt = |column: Vec<Complex>| {
            let plain = Plaintext::encode_complex_with(self.recipe.params(), &column, &encoding);
            self.key.encrypt(&plain.unwrap()).unwrap()
        };
        columns.into_iter().map(encrypt).collect()
    }

    /// The root mean square error of a batch that goes through all rows, and its bound.
    fn measure(&self, tables: &[Vec<f64>]) -> (f64, f64) {
        let Shape { rows, columns, levels, .. } = *self.recipe.shape();
        let slots = self.recipe.batch();
        let indices: Vec<Vec<usize>> = (0..tables.len())
            .map(|table| (0..slots).map(|slot| (slot * (2 * table + 1) + table) % rows).collect())
            .collect();
        let queries: Vec<Vec<Ciphertext>> =
            indices.iter().map(|indices| self.query(indices)).collect();
        let queries: Vec<&[Ciphertext]> = queries.iter().map(Vec::as_slice).collect();
        let tables: Vec<&[f64]> = tables.iter().map(Vec::as_slice).collect();
        let weights = Weights::new(&self.recipe, &tables).unwrap();
        let sums = embed(&self.recipe, &self.evaluator, &weights, &queries).unwrap();
        assert_eq!(sums.len(), columns);
        let mut square = 0.0;
        for (column, sum) in sums.iter().enumerate() {
            if levels > 0 {
                assert_eq!(
                    (sum.level(), sum.scale()),
                    (levels, self.recipe.params().scale(levels))
                );
            }
            let values = self.key.decrypt(sum).unwrap().decode();
            for (slot, value) in values.iter().enumerate() {
                let row = |(table, indices): (&&[f64], &Vec<usize>)| {
                    table[indices[slot] * columns + column]
                };
                let expected: f64 = tables.iter().zip(&indices).map(row).sum();
                square += (value - expected).powi(2);
            }
        }
        let error = (square / (slots * columns) as f64).sqrt();
        (error, self.recipe.bound(&tables))
    }
}

fn tables(rows: usize, columns: usize, count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|seed| table(rows, columns, 7 + seed as u64)).collect()
}

/// Within the bound, which says something: it is at most as much larger as the spectral norm of a random table is than what a
/// random error sees of it, with the margin and what estimates are off.
fn check(strategy: Strategy, (rows, columns, count, levels): (usize, usize, usize, usize)) {
    let shape = Shape { rows, columns, precision_bits: 12, levels };
    let lookup = Lookup::new(strategy, shape);
    let (error, bound) = lookup.measure(&tables(rows, columns, count));
    let slack = 1.0 + (rows as f64 / columns as f64).sqrt();
    let what =
        format!("{strategy}, {rows} rows of {columns}, {count} tables, {levels} levels left");
    assert!(error <= bound, "{what}: {error:e} is over the bound {bound:e}");
    // A handful of numbers may hardly be rounded at all.
    assert!(
        30.0 * slack * error >= bound || rows < 16,
        "{what}: {error:e} where at most {bound:e} was promised"
    );
    let goal = f64::exp2(-11.0) * (count as f64).sqrt();
    assert!(error < goal, "{what}: {error:e}");
}

#[test]
fn one_hot() {
    for shape in [(1, 1, 1, 0), (5, 3, 2, 0), (64, 4, 4, 0), (16, 2, 1, 2)] {
        check(Strategy::OneHot, shape);
    }
}

#[test]
fn one_hot_digits() {
    for shape in
        [(1, 1, 1, 0), (5, 3, 2, 0), (64, 4, 4, 0), (30, 129, 2, 0), (16, 2, 1, 2), (20, 129, 1, 1)]
    {
        check(Strategy::OneHotDigits, shape);
    }
}

#[test]
fn ive() {
    for shape in
        [(1, 1, 1, 0), (5, 3, 2, 0), (64, 4, 4, 0), (30, 7, 2, 0), (16, 2, 1, 2), (256, 2, 1, 0)]
    {
        check(Strategy::Ive, shape);
    }
}

#[test]
fn ive_digits() {
    for shape in [
        (1, 1, 1, 0),
        (5, 3, 2, 0),
        (64, 4, 4, 0),
        (30, 129, 2, 0),
        (64, 1, 2, 0),
        (100, 2, 1, 1),
        (256, 1, 4, 0),
        (1000, 100, 1, 0),
        (200, 129, 1, 0),
        (16, 2, 1, 2),
        (50, 129, 1, 1),
    ] {
        check(Strategy::IveDigits, shape);
    }
}

#[test]
fn indicator() {
    for shape in [(4, 3, 2, 0), (10, 2, 1, 0)] {
        check(Strategy::Indicator, shape);
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    let shape = Shape { rows: 20, columns: 2, precision_bits: 12, levels: 0 };
    let lookup = Lookup::new(Strategy::IveDigits, shape);
    let values = tables(20, 2, 1);
    let weights = Weights::new(&lookup.recipe, &[&values[0]]).unwrap();
    let query = lookup.query(&[3, 19]);
    assert!(embed(&lookup.recipe, &lookup.evaluator, &weights, &[&query]).is_ok());
    let run = |evaluator: &Evaluator, queries: &[&[Ciphertext]]| {
        embed(&lookup.recipe, evaluator, &weights, queries).unwrap_err().to_string()
    };
    assert!(run(&lookup.evaluator, &[]).contains("number of queries"));
    assert!(run(&lookup.evaluator, &[&query[..1]]).contains("ciphertexts of a query"));
    let low: Vec<Ciphertext> =
        query.iter().map(|x| lookup.evaluator.drop_to(x, 1).unwrap()).collect();
    assert!(run(&lookup.evaluator, &[&low]).contains("fresh"));
    let none = Evaluator::without_keys(lookup.recipe.params().clone());
    assert!(run(&none, &[&query]).contains("relinearisation"));
    let empty = lookup.key.evaluation_keys(&KeyPlan::new()).unwrap();
    assert!(run(&Evaluator::new(Arc::new(empty)), &[&query]).contains("relinearisation"));
    let other = SecretKey::generate(lookup.recipe.params()).unwrap();
    let other = other.evaluation_keys(&lookup.recipe.key_plan()).unwrap();
    assert!(run(&Evaluator::new(Arc::new(other)), &[&query]).contains("wrong key"));
    let foreign = Lookup::new(Strategy::OneHot, Shape { rows: 2, ..shape });
    assert!(embed(&lookup.recipe, &lookup.evaluator, &weights, &[&foreign.query(&[1])]).is_err());

    let mut out = vec![Complex::default(); 2];
    assert!(lookup.recipe.write(20, &mut out).unwrap_err().to_string().contains("below 20"));
    assert!(lookup.recipe.write(1, &mut out[..1]).is_err());
    assert!(Weights::new(&lookup.recipe, &[]).is_err());
    assert!(Weights::new(&lookup.recipe, &[&values[0][1..]]).is_err());
    let mut broken = values[0].clone();
    broken[5] = f64::NAN;
    assert!(Weights::new(&lookup.recipe, &[&broken]).is_err());
    for bad in [
        Shape { rows: 0, ..shape },
        Shape { columns: 0, ..shape },
        Shape { precision_bits: 0, ..shape },
        Shape { precision_bits: 25, ..shape },
        Shape { levels: 33, ..shape },
    ] {
        assert!(Recipe::new(Strategy::IveDigits, bad).is_err(), "{bad:?}");
    }
    assert!(Recipe::new(Strategy::Histogram, shape).is_err());
    assert!("histograms".parse::<Strategy>().is_err());
    for strategy in Strategy::ALL {
        assert_eq!(strategy.as_str().parse::<Strategy>().unwrap(), strategy);
        assert_eq!(Strategy::from_byte(strategy as u8), Some(strategy));
    }
}

#[test]
fn few_indices_share_a_ciphertext() {
    for (tables_count, rows, columns, count) in
        [(1, 5, 3, 4), (4, 64, 2, 7), (2, 30, 50, 3), (1, 1, 8, 1)]
    {
        let layout = SmallBatch::new((tables_count, rows, columns), count).unwrap();
        assert!(layout.batch() >= count);
        let key = SecretKey::generate(layout.params()).unwrap();
        let keys = key.evaluation_keys(&layout.key_plan()).unwrap();
        let evaluator = Evaluator::new(Arc::new(keys));
        let values = tables(rows, columns, tables_count);
        let views: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let encoded = layout.tables(&views).unwrap();
        let indices: Vec<Vec<usize>> = (0..count)
            .map(|b| (0..tables_count).map(|t| (7 * b + 3 * t) % rows).collect())
            .collect();
        let slots = layout.write(&indices).unwrap();
        let query = key.encrypt(&Plaintext::encode(layout.params(), &slots).unwrap()).unwrap();
        let answer = layout.embed(&evaluator, &encoded, &query).unwrap();
        let read = layout.read(&key.decrypt(&answer).unwrap().decode(), count);
        for (indices, row) in indices.iter().zip(&read) {
            assert_eq!(row.len(), columns);
            for (column, value) in row.iter().enumerate() {
                let term = |(table, &index): (&Vec<f64>, &usize)| table[index * columns + column];
                let expected: f64 = values.iter().zip(indices).map(term).sum();
                // Some thousands of roundings at a scale of 2^40.
                assert!((value - expected).abs() < 1e-5, "{value}, {expected}");
            }
        }
        let none = Evaluator::without_keys(layout.params().clone());
        assert!(layout.embed(&none, &encoded, &query).is_err());
        assert!(layout.write(&vec![vec![0; tables_count]; layout.batch() + 1]).is_err());
        assert!(layout.write(&[vec![rows; tables_count]]).is_err());
        assert!(layout.write(&[vec![]]).is_err());
        assert!(layout.tables(&views[1..]).is_err());
    }
    assert!(SmallBatch::new((0, 5, 3), 1).is_err());
    assert!(SmallBatch::new((64, 1 << 16, 3), 1).is_err());
}

/// What 50 numbers of a token take on their way back, in float32 200 bytes.
#[test]
fn answers_take_few_bytes() {
    for strategy in [Strategy::IveDigits, Strategy::Ive, Strategy::OneHot] {
        for rows in [256, 1024] {
            let shape = Shape { rows, columns: 50, precision_bits: 14, levels: 0 };
            let recipe = Recipe::new(strategy, shape).unwrap();
            let bytes = recipe.answer_bytes() as f64 / recipe.batch() as f64;
            assert!((250.0..400.0).contains(&bytes), "{strategy}, {rows} rows: {bytes:.1}");
        }
    }
}

fn request() -> Request {
    Request {
        rows: 100,
        columns: 4,
        tables: 2,
        batch: 1 << 14,
        precision_bits: 12,
        next: Next::Decrypt,
        bytes_per_second: BYTES_PER_SECOND,
        latency: 0.0,
        strategy: None,
        transport: Some(Transport::Standard),
    }
}

#[test]
fn the_planner_counts_what_is_done() {
    let planner = Planner::new(request()).unwrap();
    let text = planner.explain();
    for strategy in Strategy::ALL {
        assert!(text.contains(strategy.as_str()), "{text}");
        let Some(estimate) = planner.estimate(strategy) else {
            // Counts are for sums only.
            assert_eq!(strategy, Strategy::Histogram);
            continue;
        };
        let generation = &estimate.generation;
        let (products, conjugations) = match strategy {
            // Halves of the size, and products of all but the first power; with fewer columns than
            // that their sums are conjugated.
            Strategy::Ive => (2 * 49, 0),
            // Two digits of ten.
            Strategy::IveDigits => (2 * 2 * 8, 0),
            Strategy::Indicator => (2 * 100 * indicator_products(100), 0),
            _ => (0, 0),
        };
        assert_eq!(
            (generation.products, generation.conjugations),
            (products, conjugations),
            "{strategy}"
        );
        let after = if strategy == Strategy::Ive { 4 } else { 0 };
        assert_eq!(estimate.sums.conjugations, after, "{strategy}");
        assert!(estimate.milliseconds() > 0.0 && estimate.error < f64::exp2(-12.0));
    }
    assert!(text.contains("<- chosen") && text.contains(planner.best().strategy.as_str()));
    // Where bytes are all that counts, a number for each digit or index is sent.
    let slow = Planner::new(Request { bytes_per_second: 1e3, ..request() }).unwrap();
    assert!(slow.best().query_bytes <= planner.best().query_bytes);
    let pooled = Planner::new(Request { next: Next::Pool(128), columns: 1, ..request() }).unwrap();
    assert_eq!(pooled.best().strategy, Strategy::Histogram);
    let large = Planner::new(Request { rows: 50_000, ..request() }).unwrap();
    assert!(large.best().milliseconds() > planner.best().milliseconds());
    // Fewer indices than slots cost as much as all of them.
    let few = Planner::new(Request { batch: 1, ..request() }).unwrap();
    assert!(few.best().milliseconds() > 100.0 * planner.best().milliseconds());
    for bad in [
        Request { batch: 0, ..request() },
        Request { tables: 0, ..request() },
        Request { rows: 0, ..request() },
        Request { next: Next::Pool(0), ..request() },
        Request { precision_bits: 60, ..request() },
    ] {
        assert!(Planner::new(bad).is_err(), "{bad:?}");
    }
}

/// Over a slow network few bytes are worth more work, and no other reason is: both ways are priced.
#[test]
fn the_planner_weighs_bytes_against_work() {
    let request = Request { rows: 256, columns: 2, batch: 1 << 16, transport: None, ..request() };
    let fast = Planner::new(request).unwrap();
    assert_eq!(fast.best().transport, Transport::Standard);
    for strategy in [Strategy::Ive, Strategy::IveDigits] {
        let standard = fast.estimate(strategy).unwrap();
        let compact = fast.estimate_of(strategy, Transport::Compact).unwrap();
        assert!(compact.query_bytes * 8.0 < standard.query_bytes);
        assert!(compact.milliseconds() > standard.milliseconds());
        assert!(compact.error < f64::exp2(-12.0));
    }
    assert!(fast.estimate_of(Strategy::OneHot, Transport::Compact).is_none());
    let slow = Request { bytes_per_second: 2e3, latency: 0.1, ..request };
    let planner = Planner::new(slow).unwrap();
    assert_eq!(planner.best().transport, Transport::Compact);
    let text = planner.explain();
    assert!(text.contains("ive, compact") && text.contains("100.0 ms there and back"), "{text}");
    assert!(text.contains("however few they are"), "{text}");
    let held = Planner::new(Request { transport: Some(Transport::Standard), ..slow }).unwrap();
    assert_eq!(held.best().transport, Transport::Standard);
    // A query is never below that of a full batch.
    let few = Planner::new(Request { batch: 16, ..slow }).unwrap();
    let compact = |planner: &Planner| {
        let estimate = planner.estimate_of(Strategy::Ive, Transport::Compact);
        estimate.map(|estimate| estimate.query_bytes).unwrap()
    };
    assert!(compact(&few) > 1000.0 * compact(&planner));
}

/// One for 2t² - 1, one a squaring, two a cleaning, by the table of r and s.
fn indicator_products(rows: usize) -> usize {
    match rows {
        65..=128 => 1 + 16 + 2 * 2,
        _ => 0,
    }
}

#[test]
fn functions_can_be_made_alone() {
    let shape = Shape { rows: 50, columns: 129, precision_bits: 12, levels: 0 };
    for (strategy, expected) in [
        (Strategy::OneHot, 50),
        (Strategy::OneHotDigits, 7 * 8),
        (Strategy::Ive, 49),
        (Strategy::IveDigits, 7 * 8 - 1),
    ] {
        let lookup = Lookup::new(strategy, shape);
        let made = generate(&lookup.recipe, &lookup.evaluator, &lookup.query(&[1, 2]), usize::MAX)
            .unwrap();
        let few = generate(&lookup.recipe, &lookup.evaluator, &lookup.query(&[1, 2]), 3).unwrap();
        assert_eq!(few, 3, "{strategy}");
        assert_eq!(made, expected, "{strategy}");
    }
}

#[test]
fn rings_are_secure_and_as_small_as_they_can_be() {
    for (strategy, rows, columns, log_degree, depth) in [
        (Strategy::OneHot, 1024, 300, 12, 0),
        (Strategy::OneHotDigits, 1024, 50, 12, 1),
        (Strategy::OneHotDigits, 1024, 300, 13, 1),
        (Strategy::Ive, 256, 2, 14, 7),
        (Strategy::Ive, 1024, 300, 15, 9),
        // Three digits of 4, 8 and 8; two of 32.
        (Strategy::IveDigits, 256, 1, 14, 5),
        (Strategy::IveDigits, 1024, 300, 14, 6),
        // 1 + 18 + 2 · 2.
        (Strategy::Indicator, 256, 2, 16, 23),
    ] {
        let shape = Shape { rows, columns, precision_bits: 13, levels: 0 };
        let recipe = Recipe::new(strategy, shape).unwrap();
        let what = format!("{strategy}, {rows} rows of {columns}: {:?}", recipe.params());
        assert!(!recipe.params().security().insecure, "{what}");
        assert_eq!(recipe.params().spec().log_degree, log_degree, "{what}");
        // Sums at level 0 take a level only where one prime has no room for them.
        assert!((depth..=depth + 1).contains(&recipe.depth()), "{what}");
        assert!(recipe.relative_error() < f64::exp2(-13.0), "{what}");
    }
    // More precision takes a second prime for the sums, and levels that are left take a longer chain.
    let shape = Shape { rows: 1024, columns: 300, precision_bits: 20, levels: 0 };
    let precise = Recipe::new(Strategy::IveDigits, shape).unwrap();
    assert!(precise.relative_error() < f64::exp2(-20.0) && precise.depth() == 7);
    let more = Shape { precision_bits: 13, levels: 2, ..shape };
    assert_eq!(Recipe::new(Strategy::IveDigits, more).unwrap().params().max_level(), 5 + 1 + 1 + 2);
}

/// Parameters that are searched for keep what was asked for, on one prime for the sums and on two.
#[test]
fn precision_is_what_was_asked_for() {
    for (strategy, precision_bits) in [
        (Strategy::OneHot, 13),
        (Strategy::OneHotDigits, 20),
        (Strategy::IveDigits, 13),
        (Strategy::IveDigits, 20),
        (Strategy::Ive, 18),
    ] {
        let shape = Shape { rows: 40, columns: 3, precision_bits, levels: 0 };
        let lookup = Lookup::of(Recipe::new(strategy, shape).unwrap());
        let (error, bound) = lookup.measure(&tables(40, 3, 2));
        // Two tables of numbers that are uniform between -1 and 1.
        let size = (2.0f64 / 3.0).sqrt();
        let goal = f64::exp2(-f64::from(precision_bits)) * size;
        assert!(error < goal, "{strategy} to {precision_bits} bits: {error:e}, {goal:e} expected");
        assert!(error < bound, "{strategy} to {precision_bits} bits: {error:e}, {bound:e}");
    }
}

/// Columns of zeros, of tiny and of huge numbers beside each other: each has a scale of its own.
#[test]
fn columns_of_any_size_are_looked_up() {
    for (strategy, columns, levels) in [
        (Strategy::OneHot, 4, 0),
        (Strategy::OneHotDigits, 4, 0),
        (Strategy::Ive, 4, 0),
        (Strategy::IveDigits, 4, 0),
        (Strategy::IveDigits, 132, 0),
        (Strategy::IveDigits, 2, 0),
        (Strategy::IveDigits, 4, 1),
    ] {
        let shape = Shape { rows: 70, columns, precision_bits: 12, levels };
        let lookup = Lookup::new(strategy, shape);
        let size = |column: usize| match column % 4 {
            0 => 0.0,
            1 => 1e-6,
            2 if levels == 0 => 1e7,
            _ => 1.0,
        };
        let values: Vec<f64> = table(70, columns, 3)
            .iter()
            .enumerate()
            .map(|(place, value)| value * size(place % columns))
            .collect();
        let nothing = vec![0.0; values.len()];
        let weights = Weights::new(&lookup.recipe, &[&values, &nothing]).unwrap();
        let indices: Vec<usize> = (0..lookup.recipe.batch()).map(|slot| slot % 70).collect();
        let query = lookup.query(&indices);
        let sums = embed(&lookup.recipe, &lookup.evaluator, &weights, &[&query, &query]).unwrap();
        for (column, sum) in sums.iter().enumerate() {
            let read = lookup.key.decrypt(sum).unwrap().decode();
            // What a rescale to a canonical scale leaves of tiny numbers is its own rounding.
            let own = if levels == 0 { size(column).max(1e-12) } else { 1.0 };
            // Two columns share a ciphertext, and its scale, in this strategy.
            let most = if strategy == Strategy::Ive { own.max(size(column ^ 1)) } else { own };
            for (value, index) in read.iter().zip(&indices) {
                let off = (value - values[index * columns + column]).abs();
                assert!(off < 4e-3 * most, "{strategy}, column {column} of {columns}: {off:e}");
            }
        }
    }
}
