//! Embedding lookup (Emb): the server sums the encrypted rows that encrypted indices name.
//!
//! Weights are the same in every slot, so a batch of indices is looked up by sums of ciphertexts
//! with plain weights. Where an index has two digits, the products of their functions are either
//! expanded, made once for all columns, or folded: for every column the functions of one digit meet
//! the table first, and one inner product with those of the other is all that is multiplied.

use super::basis::Basis;
use super::basis::ive::Parts;
use super::basis::sink::{Sink, settle};
use super::recipe::Recipe;
use super::weights::Weights;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{BilinearForm, Ciphertext, Evaluator, PlainMatrix};

/// Functions that are held at a time.
const CHUNK: usize = 256;

/// Looks up what `queries` name: one list of [`Recipe::entries`] ciphertexts for every table. The
/// result has a ciphertext for every column, with the sum of the tables' rows in each slot; it is
/// of degree 2 only where a recipe has no keys.
///
/// # Errors
/// [`Error::Range`] for another number of queries or entries, or ciphertexts that are not fresh; a
/// missing key, another key or other parameters.
pub fn embed(
    recipe: &Recipe,
    evaluator: &Evaluator,
    weights: &Weights,
    queries: &[&[Ciphertext]],
) -> Result<Vec<Ciphertext>> {
    check(recipe, weights, queries)?;
    let sums = if recipe.folded() {
        folded(recipe, evaluator, weights, queries)?
    } else {
        expanded(recipe, evaluator, weights, queries)?
    };
    let finish = |(column, sum): (usize, Ciphertext)| {
        let constant: f64 = (0..weights.tables()).map(|table| weights.row(table, column)[0]).sum();
        let sum = match recipe.design().parts() {
            Parts::Deferred => evaluator.add(&sum, &evaluator.conjugate(&sum)?)?,
            Parts::Apart => sum,
        };
        let biased = recipe.bases().iter().all(Basis::constant) && !recipe.folded();
        let sum = if biased { evaluator.add_scalar(&sum, constant)? } else { sum };
        let sum = match recipe.shape().levels {
            0 => sum,
            level => settle(evaluator, &sum, level)?,
        };
        Ok(sum.with_magnitude(weights.magnitudes[column])?)
    };
    sums.into_iter().enumerate().map(finish).collect()
}

fn check(recipe: &Recipe, weights: &Weights, queries: &[&[Ciphertext]]) -> Result<()> {
    let range =
        |what, expected: String, actual: String| Err(Error::Range { what, expected, actual });
    if queries.len() != weights.tables() {
        let expected = format!("{}, one for each table", weights.tables());
        return range("the number of queries", expected, queries.len().to_string());
    }
    let top = recipe.top_level();
    for query in queries {
        if query.len() != recipe.entries() {
            let expected = recipe.entries().to_string();
            return range("the ciphertexts of a query", expected, query.len().to_string());
        }
        for ciphertext in *query {
            let canonical =
                ciphertext.scale() == recipe.params().scale(top.min(ciphertext.level()));
            if ciphertext.level() != top || ciphertext.degree() != 1 || !canonical {
                let actual = format!(
                    "level {}, degree {}, scale {}",
                    ciphertext.level(),
                    ciphertext.degree(),
                    ciphertext.scale()
                );
                let expected = format!("fresh: level {top}, degree 1, the scale of the level");
                return range("a ciphertext of a query", expected, actual);
            }
        }
    }
    Ok(())
}

/// Functions on their way into sums: a chunk of them is multiplied at a time.
struct Sums<'a> {
    evaluator: &'a Evaluator,
    weights: &'a Weights,
    table: usize,
    places: Vec<usize>,
    held: Vec<Ciphertext>,
    sums: Vec<Ciphertext>,
}

impl Sums<'_> {
    fn push(&mut self, place: usize, function: Ciphertext) -> Result<()> {
        self.places.push(place);
        self.held.push(function);
        if self.held.len() == CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let matrix = self.weights.matrix(self.table, &self.places)?;
        let magnitudes = Some(&self.weights.magnitudes[..]);
        self.evaluator.add_matrix_product(&mut self.sums, &matrix, &self.held, magnitudes)?;
        self.places.clear();
        self.held.clear();
        Ok(())
    }
}

fn expanded(
    recipe: &Recipe,
    evaluator: &Evaluator,
    weights: &Weights,
    queries: &[&[Ciphertext]],
) -> Result<Vec<Ciphertext>> {
    let (places, held, sums) = (Vec::new(), Vec::new(), Vec::new());
    let mut state = Sums { evaluator, weights, table: 0, places, held, sums };
    for (table, query) in queries.iter().enumerate() {
        state.table = table;
        all(recipe, evaluator, query, &mut |place, function| state.push(place, function))?;
        state.flush()?;
    }
    Ok(state.sums)
}

/// Every function of an index that is not constant, at the level of the sums; places count the
/// constant.
fn all(
    recipe: &Recipe,
    evaluator: &Evaluator,
    query: &[Ciphertext],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let level = recipe.design().sum_level();
    let [high, low] = recipe.bases() else {
        return recipe.bases().iter().try_for_each(|only| {
            let parts = recipe.design().parts();
            only.generate(evaluator, query, (level, parts), &mut |place, function| {
                sink(place + 1, function)
            })
        });
    };
    let lists = digits(recipe, evaluator, query)?;
    let [first, second] = lists.as_slice() else { return Ok(()) };
    let stride = low.len() + 1;
    if high.constant() {
        for (b, function) in second.iter().enumerate() {
            sink(b + 1, settle(evaluator, function, level)?)?;
        }
    }
    for (a, left) in first.iter().enumerate() {
        if low.constant() {
            sink((a + 1) * stride, settle(evaluator, left, level)?)?;
        }
        for (b, right) in second.iter().enumerate() {
            let magnitude = left.magnitude() * right.magnitude();
            let product = evaluator.mul(left, right)?.with_magnitude(magnitude)?;
            sink((a + 1) * stride + b + 1, product)?;
        }
    }
    Ok(())
}

/// Makes the functions of encrypted indices and drops them one by one: what a lookup does before it
/// meets a table, for benches. Where it is folded these are the digits' functions. Stops after
/// `most`, where one function takes as long as the other; returns the number of functions.
///
/// # Errors
/// As [`embed`].
pub fn generate(
    recipe: &Recipe,
    evaluator: &Evaluator,
    query: &[Ciphertext],
    most: usize,
) -> Result<usize> {
    if recipe.folded() {
        return Ok(digits(recipe, evaluator, query)?.iter().map(Vec::len).sum());
    }
    let mut count = 0;
    let made = all(recipe, evaluator, query, &mut |_, _| {
        count += 1;
        if count < most { Ok(()) } else { Err(enough(most)) }
    });
    match made {
        Err(_) if count == most => Ok(count),
        other => other.map(|()| count),
    }
}

/// What ends [`generate`] early.
fn enough(most: usize) -> Error {
    let (expected, actual) = (format!("at most {most}"), "more".to_owned());
    Error::Range { what: "the functions", expected, actual }
}

/// The functions of every digit, each at the level where they are multiplied.
fn digits(
    recipe: &Recipe,
    evaluator: &Evaluator,
    query: &[Ciphertext],
) -> Result<Vec<Vec<Ciphertext>>> {
    let mut rest = query;
    let mut list = |(basis, level): (&Basis, usize)| {
        let (own, after) = rest.split_at(basis.entries());
        rest = after;
        basis.list(evaluator, own, level)
    };
    recipe.bases().iter().zip(recipe.design().levels()).map(&mut list).collect()
}

/// out_k = Σ_a u_a (Σ_b C_kab v_b), with another sum around it where an index has three digits.
fn folded(
    recipe: &Recipe,
    evaluator: &Evaluator,
    weights: &Weights,
    queries: &[&[Ciphertext]],
) -> Result<Vec<Ciphertext>> {
    let mut sums = Vec::new();
    for (table, query) in queries.iter().enumerate() {
        let lists = digits(recipe, evaluator, query)?;
        let row = |column: usize| weights.row(table, column);
        match lists.as_slice() {
            [high, low] => {
                let form =
                    |column: usize| form(recipe.bases(), weights, column, row(column), false);
                let forms = (0..weights.columns).map(form).collect::<Result<Vec<_>>>()?;
                evaluator.add_bilinear(&mut sums, &forms, high, low)?;
            }
            [outer, high, low] => {
                for column in 0..weights.columns {
                    let part = nested(
                        recipe,
                        evaluator,
                        weights,
                        column,
                        row(column),
                        [outer, high, low],
                    )?;
                    match sums.get_mut(column) {
                        Some(sum) => *sum = evaluator.add(sum, &part)?,
                        None => sums.push(part),
                    }
                }
            }
            _ => {}
        }
    }
    let finish = |sum: &Ciphertext| -> Result<Ciphertext> {
        let keys = recipe.design().relinearises();
        Ok(if keys { evaluator.normalise(sum)? } else { evaluator.rescale(sum)? })
    };
    sums.iter().map(finish).collect()
}

/// The last two digits' form of a column, from its weights, or from those of them that belong to
/// one function of a first digit: the values of such a part are at most the sum of its weights.
fn form(
    bases: &[Basis],
    weights: &Weights,
    column: usize,
    row: &[f64],
    part: bool,
) -> Result<BilinearForm> {
    let [.., high, low] = bases else {
        return Err(Error::choice("digits", "two at least", "one"));
    };
    // Function 0 of digits that the client writes one by one is not there.
    let skip = usize::from(!high.constant());
    let rows: Vec<&[f64]> = row.chunks_exact(low.len() + 1).skip(skip).collect();
    let matrix: Vec<Vec<f64>> = rows.iter().map(|row| row[1..].to_vec()).collect();
    let scales = vec![weights.scales[column]; matrix.len()];
    let sum: f64 = row.iter().map(|weight| weight.abs()).sum();
    Ok(BilinearForm {
        matrix: PlainMatrix::with_scales(&matrix, &scales)?,
        constants: rows.iter().map(|row| row[0]).collect(),
        magnitude: if part { sum.max(f64::MIN_POSITIVE) } else { weights.magnitudes[column] },
    })
}

/// A column with three digits: a form for every function of the first, rescaled, and the inner
/// product of these.
fn nested(
    recipe: &Recipe,
    evaluator: &Evaluator,
    weights: &Weights,
    column: usize,
    row: &[f64],
    [outer, high, low]: [&[Ciphertext]; 3],
) -> Result<Ciphertext> {
    let stride = row.len() / (outer.len() + 1);
    let forms = row.chunks_exact(stride);
    let forms = forms.map(|row| form(recipe.bases(), weights, column, row, true));
    let mut parts = Vec::new();
    evaluator.add_bilinear(&mut parts, &forms.collect::<Result<Vec<_>>>()?, high, low)?;
    let parts: Vec<Ciphertext> =
        parts.iter().map(|part| Ok(evaluator.normalise(part)?)).collect::<Result<_>>()?;
    let product = evaluator.inner_product(outer, &parts[1..], weights.magnitudes[column])?;
    Ok(evaluator.add(&product, &parts[0])?)
}

#[cfg(all(test, feature = "hazmat"))]
mod tests {
    use super::*;
    use crate::lookup::{Shape, Strategy};

    /// W · functions(j) = M e_j, in the clear and in double precision, whatever the padding.
    #[test]
    fn weights_times_functions_are_the_rows() {
        let strategies = Strategy::ALL.into_iter().filter(|one| *one != Strategy::Histogram);
        for strategy in strategies {
            for (rows, columns) in [(1, 1), (2, 3), (7, 4), (16, 1), (30, 2), (60, 3)] {
                let shape = Shape { rows, columns, precision_bits: 12, levels: 0 };
                let recipe = Recipe::insecure_new(strategy, shape, 10).unwrap();
                let table: Vec<f64> = (0..rows * columns)
                    .map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0)
                    .collect();
                let weights = Weights::new(&recipe, &[&table]).unwrap();
                for index in 0..rows {
                    let digits = recipe.digits(index);
                    let parts: Vec<Vec<f64>> = recipe
                        .bases()
                        .iter()
                        .zip(digits)
                        .map(|(basis, digit)| basis.values(digit))
                        .collect();
                    let functions = parts.iter().fold(vec![1.0], |products, part| {
                        products.iter().flat_map(|a| part.iter().map(move |b| a * b)).collect()
                    });
                    for column in 0..columns {
                        let terms = weights.row(0, column).iter().zip(&functions);
                        let sum: f64 = terms.map(|(weight, value)| weight * value).sum();
                        let expected = table[index * columns + column];
                        assert!(
                            (sum - expected).abs() < 1e-12,
                            "{strategy} {rows}: {sum}, {expected}"
                        );
                    }
                }
            }
        }
    }
}
