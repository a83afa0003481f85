//! How far rows of an `l2` collection lie from what they are sealed around, and whether their distances then tell them apart.

use ciphervec_owner::{IndexSpec, Metric, Mode, Precision};

use crate::host::Host;
use crate::sorting::sort_by;

const SAMPLE: usize = 64;
/// Rows that tell anything at least.
pub const FEWEST: usize = 8;
/// Of the median squared distance: errors beyond it change which rows are nearest.
const SHARE: f64 = 0.1;
/// Centers of a collection, each of which costs every question a query.
const MOST: usize = 4;
/// Of the median squared distance: errors below it are left alone.
const WORTH: f64 = 1e-4;
/// How many times smaller a center has to make them.
const BETTER: f64 = 2.0;

/// Whether rows of such an index are sealed less something.
pub fn centred(spec: &IndexSpec) -> bool {
    spec.metric() == Metric::L2 && spec.mode() != Mode::Open
}

/// What to seal rows around: the present center, one of the others that segments have where that one leaves these rows apart from each
/// other no more, or their mean.
pub fn chosen(spec: &IndexSpec, rows: &[f32], present: &[f32], others: &[&[f32]]) -> Vec<f32> {
    if rows.len() < 2 * spec.dimension() {
        return present.to_vec();
    }
    if present.is_empty() && others.iter().all(|one| one.is_empty()) {
        return moved(spec, rows, present);
    }
    let blurs = |center: &[f32]| {
        let (error, distance) = distance_error(spec, rows, center);
        distance > 0.0 && error > SHARE * distance
    };
    let mut all = core::iter::once(present).chain(others.iter().copied());
    match all.find(|one| !blurs(one)) {
        Some(suiting) => suiting.to_vec(),
        None if others.len() >= MOST => present.to_vec(),
        None => moved(spec, rows, present),
    }
}

/// Looks at some of the rows that a collection is given, and warns once where their distances don't tell them apart.
#[derive(Default)]
pub struct OffCenter {
    /// Those that came few at a time.
    few: Vec<f32>,
    done: bool,
}

impl OffCenter {
    /// Rows that are to be added, around a center that was given, or the best one where it is empty.
    pub fn see(&mut self, host: &dyn Host, spec: &IndexSpec, given: &[f32], rows: &[f32]) {
        if self.done || !centred(spec) || rows.is_empty() {
            return;
        }
        let dimension = spec.dimension();
        let joined;
        let mut rows = rows;
        if rows.len() < FEWEST * dimension {
            self.few.extend_from_slice(rows);
            if self.few.len() < FEWEST * dimension {
                return;
            }
            joined = self.few.clone();
            rows = &joined;
        }
        self.done = rows.len() >= SAMPLE * dimension;
        let center = if given.is_empty() { moved(spec, rows, &[]) } else { given.to_vec() };
        let (error, distance) = distance_error(spec, rows, &center);
        if error <= SHARE * distance || distance <= 0.0 {
            return;
        }
        (self.done, self.few) = (true, Vec::new());
        let mut ways = Vec::new();
        if !given.is_empty() {
            ways.push("Leave center out, so that it follows the rows");
        }
        if spec.precision() != Precision::Wide {
            ways.push("make the collection in mode \"sealed-index\" and precision \"wide\"");
        }
        ways.push("scale the columns alike, or put groups that lie far apart into collections of their own");
        host.warn(&format!(
            "the vectors of \"{}\" lie far from their center, and close to each other: a squared distance is off by some {error:.2e}, and \
             half of them are below {distance:.2e}, so that other rows than the nearest may be found. Mend it so: {}.",
            spec.collection(),
            ways.join(", or ")
        ));
    }
}

/// The mean of these rows where it is so much better than the present center, else that.
pub fn moved(spec: &IndexSpec, rows: &[f32], present: &[f32]) -> Vec<f32> {
    let (dimension, count) = (spec.dimension(), rows.len() / spec.dimension());
    if !centred(spec) || count < 2 {
        return present.to_vec();
    }
    let mut sums = vec![0f64; dimension];
    for row in rows.chunks_exact(dimension) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let mean: Vec<_> = sums.iter().map(|sum| (sum / count as f64) as f32).collect();
    let (now, distance) = distance_error(spec, rows, present);
    let (then, _) = distance_error(spec, rows, &mean);
    if now > WORTH * distance && now > BETTER * then { mean } else { present.to_vec() }
}

/// Whether rows that lie around a center of their own may as well lie around another one.
pub fn suits(spec: &IndexSpec, rows: &[f32], center: &[f32], own: &[f32]) -> bool {
    if rows.len() < 2 * spec.dimension() {
        return true;
    }
    let (error, distance) = distance_error(spec, rows, center);
    error <= (WORTH * distance).max(BETTER * distance_error(spec, rows, own).0)
}

/// The error of a cosine, docs/sealed.md.
fn cosine_error(precision: Precision) -> f64 {
    match precision {
        Precision::Standard => 1.5e-5,
        Precision::Small => 1.9e-4,
        Precision::Wide => 6e-8,
    }
}

/// Of a squared distance between two of these rows less the center its error, and the distance itself: medians over the pairs of some.
fn distance_error(spec: &IndexSpec, rows: &[f32], center: &[f32]) -> (f64, f64) {
    let (dimension, precision) = (spec.dimension(), spec.precision());
    let step = (rows.len() / dimension).div_ceil(SAMPLE);
    let center = center.iter().copied().chain(core::iter::repeat(0.0));
    let less = |row: &[f32]| {
        row.iter().zip(center.clone()).map(|(x, c)| f64::from(*x - c)).collect::<Vec<_>>()
    };
    let some: Vec<_> = rows.chunks_exact(dimension).step_by(step).map(less).collect();
    let lengths: Vec<_> =
        some.iter().map(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
    let (mut products, mut distances) = (Vec::new(), Vec::new());
    for a in 0..some.len() {
        for b in 0..a {
            products.push(lengths[a] * lengths[b]);
            distances.push(some[a].iter().zip(&some[b]).map(|(x, y)| (x - y).powi(2)).sum::<f64>());
        }
    }
    (2.0 * cosine_error(precision) * median(products), median(distances))
}

fn median(mut values: Vec<f64>) -> f64 {
    sort_by(&mut values, f64::total_cmp);
    let upper = values.len() / 2;
    (values[upper] + values[(values.len() - 1) / 2]) / 2.0
}
