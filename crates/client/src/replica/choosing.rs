//! Choosing: how many clusters there are to be, of how many rows, where their centroids lie, and what is the same of all of them.

use ciphervec_owner::Id;
use ciphervec_owner::search::Expected;

use crate::clusters::choice::Clusters;
use crate::error::Result;
use crate::host::Host;
use crate::random::Draws;
use crate::replica::Replica;
use crate::replica::clustering::{Neighbors, QUESTIONS, Space, assign, learn};
use crate::replica::padding::{LENGTH, Rows, SPARE_BYTES, fits_in, id_bytes, packed_bytes};
use crate::sorting::ordered;
use crate::threads::heavy;

/// Of so many rows of a cluster one is padding at least: there is room for ids of every length.
const SPARE: usize = 64;
/// Clusters hold so many times as many rows as there are; more room for balance is more padding, and was measured to find no more.
const SLACK: f64 = 1.05;
/// A record of more bytes, and of more than sixteen times the usual, stays unrouted: it would be padding in every cluster. Where each is
/// sealed by itself, all are that long at most: a cluster of 4,096 rows has 64 MiB of them.
const LARGE: usize = 16 << 10;
/// Of so many rows one may have a longer record than fits, where each takes as much room: it stays unrouted.
const LONG: usize = 100;
/// Clusters that are worth it.
const LEAST: usize = 4;
/// Rows of one, at least.
const LEAST_ROWS: usize = 32;
/// Of the ring that segments are packed in.
const DEGREE: usize = 4096;

/// Clusters that are chosen.
pub struct Chosen {
    pub rows: usize,
    pub centroids: Vec<f32>,
    pub assigned: Vec<Option<usize>>,
    pub probes: usize,
    pub recalls: Vec<f64>,
}

/// The cheapest of what reaches the recall that is asked for, measured with these questions or, without, some of the rows. None where
/// there are too few rows.
pub fn choose(
    host: &dyn Host,
    draws: &mut Draws,
    (choice, questions): (&Clusters, Option<&[f32]>),
    rows: &[f32],
    width: usize,
    unit: usize,
    space: &Space,
) -> Result<Option<Chosen>> {
    let all = rows.len() / width;
    let own = questions.is_none().then(|| draws.sample(QUESTIONS.min(all), all));
    let asked = match (questions, &own) {
        (Some(questions), _) => {
            let dimension = width - (space.width(width) - width);
            questions.chunks_exact(dimension).flat_map(|one| space.questions(one)).collect()
        }
        (None, own) => own
            .iter()
            .flatten()
            .flat_map(|at| &rows[at * width..][..width])
            .copied()
            .collect::<Vec<_>>(),
    };
    // Rows that were clustered are easier to find than what is asked later.
    let harder = if own.is_some() { 0.4 * (1.0 - choice.recall) } else { 0.0 };
    let wanted = choice.recall + harder;
    let mut near = None;
    let mut best: Option<(usize, Chosen)> = None;
    let blocks: &[usize] = if choice.count.is_some() { &[1] } else { &[1, 2, 4] };
    for blocks in blocks {
        let (each, count) = match choice.count {
            None => {
                let each = unit * blocks;
                let room = capacity(each).max(1);
                (each, (all as f64 * SLACK / room as f64).ceil() as usize)
            }
            Some(count) => {
                let count = count as usize;
                let least = (all as f64 * SLACK / count as f64 / (1.0 - 1.0 / SPARE as f64)).ceil();
                (cluster_rows(least as usize + 1, unit), count)
            }
        };
        let least = if choice.count.is_none() { LEAST } else { 2 };
        if count < least || all < 2 * count || each < 2 {
            continue;
        }
        let centroids = learn(host, rows, width, count, SLACK)?;
        let assigned = assign(host, rows, width, &centroids, &vec![capacity(each); count])?;
        if assigned.contains(&None) {
            continue;
        }
        if near.is_none() {
            near = Some(Neighbors::new(host, rows, width, asked.clone(), own.as_deref())?);
        }
        let Some(near) = &near else { continue };
        let recalls = near.recalls(&assigned, &centroids, width);
        let enough = recalls.iter().position(|recall| *recall >= wanted);
        let probes = enough.map_or(count, |at| at + 1);
        let probes = choice.probes.map_or(probes, |probes| probes as usize).min(count);
        let decoys = choice.decoys_beside(probes);
        let named = count.min(probes + probes * decoys.div_ceil(probes)); // whole groups
        let cost = named * answer(each, unit);
        if choice.count.is_none() && cost >= answer(all, unit) {
            continue; // all of it costs no more, and shows nothing
        }
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, Chosen { rows: each, centroids, assigned, probes, recalls }));
        }
    }
    Ok(best.map(|(_, chosen)| chosen))
}

/// Rows that a cluster of so many takes from outside.
pub fn capacity(rows: usize) -> usize {
    rows - (rows / SPARE).max(1).min(rows)
}

/// Rows of a block of the ring as segments are packed here: what a cluster's rows are a multiple of.
pub fn block_rows(replica: &Replica, rows: usize) -> Result<usize> {
    let dimension = replica.description.spec.dimension();
    let padded = dimension.next_power_of_two().min(DEGREE);
    let (sample, ids) = (vec![1f32; DEGREE * dimension], (0..DEGREE as i64).map(Id::Number));
    let expected = Expected { rows: rows.max(DEGREE), network: replica.description.network };
    let ids: Vec<_> = ids.collect();
    let sealed = {
        let (owner, center) = (&replica.owner, replica.center());
        heavy(|| owner.seal_around(&sample, &ids, &expected, center))?
    };
    Ok(((DEGREE << sealed.level) / padded).max(1))
}

/// Numbers of an answer about so many rows: one a row, and a whole polynomial a block.
fn answer(rows: usize, unit: usize) -> usize {
    rows + DEGREE * rows.div_ceil(unit)
}

/// Full blocks; a power of two where not even one is filled, which is packed for fewer rows.
fn cluster_rows(least: usize, unit: usize) -> usize {
    match least >= unit {
        true => least.next_multiple_of(unit),
        false => LEAST_ROWS.max(least.next_power_of_two()),
    }
}

/// Rows whose records are of a usual length, and the others.
pub fn routable(rows: &Rows, dimension: usize) -> (Rows, Rows) {
    let length = |row: usize| rows.payloads[row].len();
    let order = ordered(rows.ids.len(), &|a, b| length(a).cmp(&length(b)));
    let median = order.get(order.len() / 2).map_or(0, |row| length(*row));
    let most = LARGE.max(16 * median);
    parted(rows, dimension, |payload| payload.len() <= most)
}

/// Bytes that every record takes where each is sealed by itself: what the longest takes, or half of that or less where it is the room of
/// all but few. None where that is too much for a cluster.
pub fn room(rows: &Rows) -> Option<u64> {
    let mut lengths: Vec<_> = rows.payloads.iter().map(|one| one.len()).collect();
    lengths.sort_unstable();
    let longest = lengths.last().copied().unwrap_or(0);
    let usual = lengths.len().checked_sub(1 + lengths.len() / LONG).map_or(0, |at| lengths[at]);
    let most = if 2 * usual < longest { usual } else { longest };
    let room = if most == 0 { 0 } else { rounded((LENGTH + most) as u64) };
    (room <= LARGE as u64).then_some(room)
}

/// Rows whose records have that room, and the others.
pub fn roomy(rows: &Rows, room: u64, dimension: usize) -> (Rows, Rows) {
    parted(rows, dimension, |payload| fits_in(payload, room))
}

fn parted(rows: &Rows, dimension: usize, usual: impl Fn(&[u8]) -> bool) -> (Rows, Rows) {
    let (usual, large): (Vec<_>, Vec<_>) =
        (0..rows.ids.len()).partition(|row| usual(&rows.payloads[*row]));
    (rows.take(&usual, dimension), rows.take(&large, dimension))
}

/// Bytes that the ids and the records of any cluster fit into, rounded up so that they tell little of the rows.
pub fn widest(
    rows: &Rows,
    assigned: &[Option<usize>],
    count: usize,
    dimension: usize,
) -> (u64, u64) {
    let mut parts = vec![Vec::new(); count];
    for (row, cluster) in assigned.iter().enumerate() {
        cluster.iter().for_each(|cluster| parts[*cluster].push(row));
    }
    let (mut texts, mut records) = (0, 0);
    for part in parts {
        let part = rows.take(&part, dimension);
        texts = texts.max(id_bytes(&part.ids));
        records = records.max(packed_bytes(&part.payloads));
    }
    (if texts > 0 { rounded(texts + SPARE_BYTES) } else { 0 }, rounded(records))
}

/// Up to three bits after the first: at most an eighth more (Nikitin et al., PETS 2019, round in this way).
fn rounded(size: u64) -> u64 {
    let bits = u64::BITS - size.leading_zeros();
    size.next_multiple_of(1 << bits.saturating_sub(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_tell_little() {
        assert_eq!([0, 15, 16, 17, 100, 1000].map(rounded), [0, 15, 16, 18, 104, 1024]);
        assert_eq!([1, 2, 63, 128, 1024].map(capacity), [0, 1, 62, 126, 1008]);
        assert_eq!(cluster_rows(20, 64), 32);
        assert_eq!(cluster_rows(65, 64), 128);
    }

    #[test]
    fn few_long_records_take_no_room_in_all_others() {
        let rows = |lengths: &[usize]| Rows {
            ids: (0..lengths.len() as i64).map(Id::Number).collect(),
            vectors: vec![0.0; lengths.len()],
            original: vec![true; lengths.len()],
            payloads: lengths.iter().map(|length| vec![1; *length].into()).collect(),
        };
        let mut lengths = vec![100; 199];
        assert_eq!(room(&rows(&[])), Some(0));
        assert_eq!(room(&rows(&[0; 5])), Some(0));
        assert_eq!(room(&rows(&lengths)), Some(104));
        lengths.push(200);
        assert_eq!(room(&rows(&lengths)), Some(208));
        lengths[0] = 201;
        lengths[1] = 9000;
        // Two in two hundred may be longer.
        assert_eq!(room(&rows(&lengths[..200])), Some(208));
        lengths[199] = 100;
        assert_eq!(room(&rows(&lengths)), Some(104));
        let (usual, large) = roomy(&rows(&lengths), 104, 1);
        assert_eq!((usual.ids.len(), large.ids), (198, vec![Id::Number(0), Id::Number(1)]));
        assert_eq!(room(&rows(&[17_000; 3])), None);
        let (usual, large) = roomy(&rows(&[0, 1, 0]), 0, 1);
        assert_eq!((usual.ids.len(), large.ids.len()), (2, 1));
    }
}
