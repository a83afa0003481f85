//! What is taken off rows and queries of an `l2` collection before they are sealed. No distance changes, and errors, which grow with the
//! distance from zero, shrink.

use ciphervec::{Id, IndexSpec, Metric, Mode, Precision, SegmentId};

use crate::belief::description::Description;
use crate::replica::Replica;

const SAMPLE: usize = 64;
/// Of the median squared distance: errors below it are left alone.
const WORTH: f64 = 1e-4;
/// How many times smaller a center has to make them.
const BETTER: f64 = 2.0;

impl Replica {
    /// The collection's center: as it was given, or that of the latest segment that has one. Empty where there is none.
    pub fn center(&self) -> &[f32] {
        let given = &self.description.center;
        if given.is_empty() { self.directory.centre_in_use() } else { given }
    }

    /// The same for these rows, which choose one where there is none yet and they lie far from zero.
    pub fn center_for(&self, rows: &[f32]) -> Vec<f32> {
        let present = self.center();
        match present.is_empty() {
            true => moved(&self.description.spec, rows, present),
            false => present.to_vec(),
        }
    }

    /// Whether rows choose what they are sealed around.
    pub fn chooses_center(&self) -> bool {
        let Description { spec, center, .. } = &*self.description;
        spec.metric() == Metric::L2 && spec.mode() != Mode::Open && center.is_empty()
    }

    /// The ids of the segments around this center, of those allowed.
    pub fn ids_around(
        &self,
        center: &[f32],
        allow: Option<&std::collections::HashSet<Id>>,
    ) -> Vec<Id> {
        let here = |id: &SegmentId| self.directory.centre(*id).unwrap_or_default() == center;
        let segments = self.directory.segments().map(|(id, ..)| id).filter(here);
        let names =
            segments.flat_map(|id| self.directory.names(id).into_iter().flatten().flatten());
        names.filter(|id| allow.is_none_or(|allow| allow.contains(*id))).cloned().collect()
    }
}

/// The mean of these rows where it is so much better than the present center, else that.
pub fn moved(spec: &IndexSpec, rows: &[f32], present: &[f32]) -> Vec<f32> {
    let (dimension, count) = (spec.dimension(), rows.len() / spec.dimension());
    if spec.metric() != Metric::L2 || spec.mode() == Mode::Open || count < 2 {
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
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    (values[upper] + values[(values.len() - 1) / 2]) / 2.0
}
