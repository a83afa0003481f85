//! Clustering: centroids of vectors, a balanced assignment, and how many rows near a question a few clusters hold.
//!
//! Every metric is brought to squared distances first: unit vectors under cosine, the vectors themselves under l2 and hamming, and under
//! ip one more number that makes all rows equally long (Bachrach et al., RecSys 2014), zero in a question.

use ciphervec_owner::Metric;

use crate::error::Result;
use crate::host::Host;
use crate::random::Draws;
use crate::sorting::ordered;

/// Rows that a centroid is learned from.
const SAMPLE: usize = 256;
/// Clusters that a row may end up in: when the nearest are full it goes on to the next.
const CHOICES: usize = 12;
/// Rows that recall is measured with.
pub const QUESTIONS: usize = 1000;
/// Neighbours that it is measured on.
const NEAREST: usize = 10;
/// Times that centroids are moved to the means of a balanced assignment: fewer rows end up in a cluster that is not the nearest.
const BALANCED: usize = 4;
const ROUNDS: usize = 200;
/// Rows of one step of k-means, steps for each time that the sample fits into them, and steps at least.
const BATCH: usize = 4096;
const PASSES: usize = 3;
const STEPS: usize = 12;
/// Rows that the first centroids are chosen among, at least, and for each of them.
const FIRST: usize = 12_288;
const FIRST_EACH: usize = 3;
/// Questions whose distances are taken at once.
const AT_ONCE: usize = 16;
/// Rows between two looks at whether the caller has ended the call.
const LOOK: usize = 4096;

/// Where distances are taken.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub metric: Metric,
    /// The longest row, under metric ip.
    pub longest: f64,
}

impl Space {
    /// The space of these rows.
    pub fn of(metric: Metric, rows: &[f32], dimension: usize) -> Self {
        let lengths = rows.chunks_exact(dimension).map(|row| dot(row, row));
        let longest = match metric {
            Metric::InnerProduct => f64::from(lengths.fold(0.0, f32::max).sqrt()),
            _ => 0.0,
        };
        Space { metric, longest }
    }

    /// Numbers of a row in it.
    pub fn width(&self, dimension: usize) -> usize {
        dimension + usize::from(self.metric == Metric::InnerProduct)
    }

    /// Where rows are.
    pub fn rows(&self, rows: &[f32], dimension: usize) -> Vec<f32> {
        let mut placed = Vec::with_capacity(rows.len() / dimension * self.width(dimension));
        for row in rows.chunks_exact(dimension) {
            match self.metric {
                Metric::Cosine => placed.extend(unit(row)),
                Metric::InnerProduct => {
                    placed.extend_from_slice(row);
                    let rest = self.longest.powi(2) - f64::from(dot(row, row));
                    placed.push(rest.max(0.0).sqrt() as f32);
                }
                Metric::L2 | Metric::Hamming => placed.extend_from_slice(row),
            }
        }
        placed
    }

    /// Where a question is.
    pub fn questions(&self, row: &[f32]) -> Vec<f32> {
        match self.metric {
            Metric::Cosine => unit(row).collect(),
            Metric::InnerProduct => {
                let longest = self.longest as f32;
                unit(row).map(|x| x * longest).chain([0.0]).collect()
            }
            Metric::L2 | Metric::Hamming => row.to_vec(),
        }
    }
}

fn unit(row: &[f32]) -> impl Iterator<Item = f32> {
    let length = dot(row, row).sqrt();
    row.iter().map(move |x| if length > 0.0 { x / length } else { 0.0 })
}

/// In as many sums as an instruction has room for: one sum alone would be taken number by number.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// The least of some numbers, and what they are of, ascending.
struct Least {
    most: usize,
    kept: Vec<(f32, usize)>,
}

impl Least {
    fn new(most: usize) -> Self {
        Least { most, kept: Vec::with_capacity(most + 1) }
    }

    fn push(&mut self, far: f32, of: usize) {
        if self.kept.len() < self.most || self.kept.last().is_some_and(|(last, _)| far < *last) {
            let at = self.kept.iter().rposition(|(other, _)| *other <= far).map_or(0, |at| at + 1);
            self.kept.insert(at, (far, of));
            self.kept.truncate(self.most);
        }
    }
}

/// Squared distances to each centroid less the row's own square: the nearest is the least.
pub fn squared(row: &[f32], centroids: &[f32], width: usize) -> Vec<f32> {
    let far = |centroid: &[f32]| dot(centroid, centroid) - 2.0 * dot(row, centroid);
    centroids.chunks_exact(width).map(far).collect()
}

/// Centroids with their squares, so that these are taken once.
struct Centroids<'a> {
    all: &'a [f32],
    squares: Vec<f32>,
    width: usize,
}

impl<'a> Centroids<'a> {
    fn new(all: &'a [f32], width: usize) -> Self {
        let squares = all.chunks_exact(width).map(|one| dot(one, one)).collect();
        Centroids { all, squares, width }
    }

    fn far<'b>(&'b self, row: &'b [f32]) -> impl Iterator<Item = f32> {
        let pairs = self.all.chunks_exact(self.width).zip(&self.squares);
        pairs.map(move |(one, square)| square - 2.0 * dot(row, one))
    }

    fn nearest(&self, row: &[f32]) -> usize {
        let least = self.far(row).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(0, |(number, _)| number)
    }
}

/// So many centroids of these rows, by k-means in small batches (Sculley, WWW 2010), and then moved until clusters of one size, with
/// `slack` times the room that is needed, suit them.
pub fn learn(
    host: &dyn Host,
    rows: &[f32],
    width: usize,
    count: usize,
    slack: f64,
) -> Result<Vec<f32>> {
    let mut draws = Draws::new()?;
    let all = rows.len() / width;
    let mut sample = Vec::new();
    let chosen = draws.sample(count * SAMPLE, all);
    chosen.iter().for_each(|at| sample.extend_from_slice(&rows[at * width..][..width]));
    let there = chosen.len();
    let mut centroids = first(&mut draws, &sample, width, count);
    let mut seen = vec![0u32; count];
    for _ in 0..STEPS.max(PASSES * there.div_ceil(BATCH)) {
        host.check()?;
        let batch: Vec<_> = (0..BATCH.min(there)).map(|_| draws.below(there)).collect();
        let known = Centroids::new(&centroids, width);
        let near: Vec<_> =
            batch.iter().map(|at| known.nearest(&sample[at * width..][..width])).collect();
        for (at, number) in batch.into_iter().zip(near) {
            seen[number] += 1;
            let share = 1.0 / seen[number] as f32;
            let centroid = &mut centroids[number * width..][..width];
            centroid
                .iter_mut()
                .zip(&sample[at * width..][..width])
                .for_each(|(old, new)| *old += share * (new - *old));
        }
    }
    let room = vec![(slack * there as f64 / count as f64).ceil() as usize; count];
    for _ in 0..BALANCED {
        let assigned = assign(host, &sample, width, &centroids, &room)?;
        centroids = means(&sample, width, &assigned, centroids);
    }
    Ok(centroids)
}

/// Some of the rows, each drawn by how far it is from those before (Arthur and Vassilvitskii, SODA 2007).
fn first(draws: &mut Draws, rows: &[f32], width: usize, count: usize) -> Vec<f32> {
    let all = rows.len() / width;
    let among = draws.sample(FIRST.max(FIRST_EACH * count), all);
    let row = |at: usize| &rows[among[at] * width..][..width];
    let squares: Vec<_> = (0..among.len()).map(|at| dot(row(at), row(at))).collect();
    let mut far = vec![f32::INFINITY; among.len()];
    let mut centroids = Vec::with_capacity(count * width);
    let mut next = draws.below(among.len());
    for _ in 0..count {
        centroids.extend_from_slice(row(next));
        for (at, (far, square)) in far.iter_mut().zip(&squares).enumerate() {
            let distance = square + squares[next] - 2.0 * dot(row(at), row(next));
            *far = far.min(distance.max(0.0));
        }
        let mut left = draws.uniform() * far.iter().map(|one| f64::from(*one)).sum::<f64>();
        let reached = |one: &f32| {
            left -= f64::from(*one);
            left < 0.0
        };
        next = far.iter().position(reached).unwrap_or_else(|| draws.below(among.len()));
    }
    centroids
}

/// The cluster of each row, of which none gets more than its room; none where all are full.
///
/// Each row asks the nearest cluster first; a cluster that is asked by more than it has room for keeps those that lose most by going on
/// to their next choice, and the others ask there (deferred acceptance: Gale and Shapley, 1962).
pub fn assign(
    host: &dyn Host,
    rows: &[f32],
    width: usize,
    centroids: &[f32],
    room: &[usize],
) -> Result<Vec<Option<usize>>> {
    let known = Centroids::new(centroids, width);
    let (count, choices) = (room.len(), CHOICES.min(room.len()));
    let all = rows.len() / width;
    let (mut which, mut regret) = (Vec::new(), Vec::new());
    for (at, row) in rows.chunks_exact(width).enumerate() {
        if at.is_multiple_of(LOOK) {
            host.check()?;
        }
        let mut near = Least::new(choices);
        known.far(row).zip(0..).for_each(|(far, number)| near.push(far, number));
        let near = near.kept;
        which.extend(near.iter().map(|(_, number)| *number));
        regret.extend(near.windows(2).map(|pair| pair[1].0 - pair[0].0));
        let last = near[choices - 1].0 - near[0].0;
        regret.push(if choices == count { f32::INFINITY } else { last });
    }
    let mut turn = vec![0usize; all];
    let mut out: Vec<Option<usize>> = vec![None; all];
    let mut active: Vec<usize> = (0..all).collect();
    let mut held = vec![0usize; count];
    for _ in 0..ROUNDS {
        if active.is_empty() {
            break;
        }
        for row in active.drain(..) {
            let cluster = which[row * choices + turn[row]];
            out[row] = Some(cluster);
            held[cluster] += 1;
        }
        let mut asked: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (row, cluster) in out.iter().enumerate() {
            if let Some(cluster) = cluster.filter(|cluster| held[*cluster] > room[*cluster]) {
                asked[cluster].push(row);
            }
        }
        for (cluster, rows) in asked.iter().enumerate() {
            let loses = |at: usize| regret[rows[at] * choices + turn[rows[at]]];
            let order = ordered(rows.len(), &|a, b| loses(b).total_cmp(&loses(a)));
            for at in order.into_iter().skip(room[cluster]) {
                let row = rows[at];
                out[row] = None;
                held[cluster] -= 1;
                turn[row] += 1;
                if turn[row] < choices {
                    active.push(row);
                }
            }
        }
    }
    // Few: the clusters around are full.
    for row in (0..all).filter(|row| out[*row].is_none()).collect::<Vec<_>>() {
        let far = known.far(&rows[row * width..][..width]).enumerate();
        let free = far.filter(|(cluster, _)| held[*cluster] < room[*cluster]);
        let Some((cluster, _)) = free.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
        out[row] = Some(cluster);
        held[cluster] += 1;
    }
    Ok(out)
}

/// The mean of each cluster's rows; the centroid that it had where it has none.
fn means(
    rows: &[f32],
    width: usize,
    assigned: &[Option<usize>],
    mut centroids: Vec<f32>,
) -> Vec<f32> {
    let mut sums = vec![0f64; centroids.len()];
    let mut counts = vec![0usize; centroids.len() / width];
    for (row, cluster) in rows.chunks_exact(width).zip(assigned) {
        if let Some(cluster) = cluster {
            counts[*cluster] += 1;
            let sums = &mut sums[cluster * width..][..width];
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
    }
    for (cluster, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let sums = &sums[cluster * width..][..width];
        let centroid = &mut centroids[cluster * width..][..width];
        centroid.iter_mut().zip(sums).for_each(|(x, sum)| *x = (sum / count as f64) as f32);
    }
    centroids
}

/// Questions, and the ten rows that are nearest to each.
pub struct Neighbors {
    questions: Vec<f32>,
    near: Vec<Vec<usize>>,
}

impl Neighbors {
    /// `own`: the rows that the questions are, which don't count as neighbours.
    pub fn new(
        host: &dyn Host,
        rows: &[f32],
        width: usize,
        questions: Vec<f32>,
        own: Option<&[usize]>,
    ) -> Result<Self> {
        let wanted = NEAREST.min((rows.len() / width).saturating_sub(1));
        let mut near = Vec::new();
        for (start, part) in questions.chunks(AT_ONCE * width).enumerate() {
            host.check()?;
            let part: Vec<_> = part.chunks_exact(width).collect();
            let mut least: Vec<_> = part.iter().map(|_| Least::new(wanted)).collect();
            for (at, row) in rows.chunks_exact(width).enumerate() {
                let square = dot(row, row);
                for (i, (question, least)) in part.iter().zip(&mut least).enumerate() {
                    if own.is_none_or(|own| own[start * AT_ONCE + i] != at) {
                        least.push(square - 2.0 * dot(question, row), at);
                    }
                }
            }
            near.extend(least.iter().map(|one| one.kept.iter().map(|(_, row)| *row).collect()));
        }
        Ok(Neighbors { questions, near })
    }

    /// For 1, 2, … clusters scanned, which share of the nearest rows is among them. Rows in no cluster are always scanned.
    pub fn recalls(&self, assigned: &[Option<usize>], centroids: &[f32], width: usize) -> Vec<f64> {
        let count = centroids.len() / width;
        let mut found = vec![0u64; count + 1];
        for (question, near) in self.questions.chunks_exact(width).zip(&self.near) {
            let far = squared(question, centroids, width);
            let order = ordered(count, &|a, b| far[a].total_cmp(&far[b]));
            let mut place = vec![0; count];
            order.into_iter().enumerate().for_each(|(at, cluster)| place[cluster] = at + 1);
            near.iter()
                .for_each(|row| found[assigned[*row].map_or(0, |cluster| place[cluster])] += 1);
        }
        let all = found.iter().sum::<u64>().max(1) as f64;
        let mut sum = found[0];
        let share = |here: &u64| {
            sum += here;
            sum as f64 / all
        };
        found[1..].iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;
    use proptest::prelude::*;

    /// Rows around some middles, one after the other.
    fn around(middles: usize, each: usize, width: usize) -> Vec<f32> {
        let mut draws = Draws::new().unwrap();
        let centers: Vec<f32> = (0..middles * width).map(|_| draws.normal() as f32 * 5.0).collect();
        let rows = (0..each).flat_map(|_| centers.to_vec());
        rows.map(|x| x + 0.1 * draws.normal() as f32).collect()
    }

    #[test]
    fn clusters_are_found_where_rows_lie_together() {
        let (host, width) = (Fake::default(), 6);
        let rows = around(9, 40, width);
        let centroids = learn(&host, &rows, width, 9, 1.05).unwrap();
        let assigned = assign(&host, &rows, width, &centroids, &[42; 9]).unwrap();
        let questions = rows[..90 * width].to_vec();
        let own: Vec<_> = (0..90).collect();
        let near = Neighbors::new(&host, &rows, width, questions, Some(&own)).unwrap();
        let recalls = near.recalls(&assigned, &centroids, width);
        assert!(recalls[1] > 0.9 && recalls.windows(2).all(|two| two[0] <= two[1]), "{recalls:?}");
        assert!((recalls[8] - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_cluster_gets_more_than_its_room_and_no_row_is_left_while_there_is_some(
            rows in proptest::collection::vec(-1f32..1.0, 2..120),
            count in 1usize..20,
            room in 0usize..9,
        ) {
            let rows = &rows[..rows.len() / 2 * 2];
            let centroids: Vec<f32> = (0..count * 2).map(|i| (i % 7) as f32 / 7.0 - 0.5).collect();
            let assigned = assign(&Fake::default(), rows, 2, &centroids, &vec![room; count]).unwrap();
            let mut held = vec![0; count];
            assigned.iter().flatten().for_each(|cluster| held[*cluster] += 1);
            prop_assert!(held.iter().all(|held| *held <= room));
            prop_assert_eq!(held.iter().sum::<usize>(), (rows.len() / 2).min(count * room));
        }
    }
}
