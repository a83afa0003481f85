//! Product of powers of one column of residues with small signed weights: the eight lanes share its
//! work.
//!
//! A digit position and a sign are a stream: the residues whose weight has a digit of that sign
//! there, each with its bucket. Streams do not depend on each other, so every lane takes one, or a
//! part of one while there are fewer than eight. All lanes then close their buckets at once, and
//! only `2 positions` results are left to be raised and joined.

use super::group::{LANES, copy_lane, lane, set_lane};
use super::modulus::PowerModulus;
use super::recode::Recoded;
use super::scratch::Scratch;
use crate::backend::operands::montgomery::Row;

/// How many parts a stream is cut into, so that as many lanes as possible have one.
fn parts(positions: usize) -> usize {
    (LANES / (2 * positions).max(1)).max(1)
}

/// Multiplications of eight lanes that one column takes, for so many digits of `window` bits.
fn cost(dimensions: usize, positions: usize, window: u32) -> usize {
    let (parts, buckets) = (parts(positions), 1 << (window - 1));
    let rounds = (2 * positions * parts).div_ceil(LANES);
    let gathered = (dimensions / (2 * parts)).saturating_sub(buckets);
    rounds * (gathered + 2 * buckets) + positions * window as usize + 2 * positions * parts
}

/// Digits for a column whose work is shared among the lanes.
pub(super) fn recode(weights: &[i64]) -> Recoded {
    Recoded::new(weights, |digits, window| cost(weights.len(), digits, window))
}

/// What one lane gathers, in order: a residue's index and its bucket, from 0.
type Work = Vec<(usize, usize)>;

/// The product of residue `i` to the power of weight `i` as two factors: lane 0 of the first is
/// what positive digits gave, lane 0 of the second what negative ones gave. `residue` names a group
/// and a lane for every index.
pub(super) fn product_of_powers<'a>(
    modulus: &PowerModulus,
    recoded: &Recoded,
    residue: impl Fn(usize) -> (&'a [Row], usize),
) -> [Vec<Row>; 2] {
    let width = modulus.format.width;
    let mut scratch = Scratch::new(modulus, LANES);
    let streams: Vec<Work> = recoded.digits.iter().flat_map(|digits| signs(digits)).collect();
    let parts = parts(recoded.digits.len());
    let jobs: Vec<&[(usize, usize)]> = streams
        .iter()
        .flat_map(|work| {
            let share = work.len().div_ceil(parts).max(1);
            (0..parts).map(move |part| {
                let start = (part * share).min(work.len());
                &work[start..(start + share).min(work.len())]
            })
        })
        .collect();
    let mut sums = Vec::new();
    for jobs in jobs.chunks(LANES) {
        let buckets = gather(&mut scratch, modulus, recoded, jobs, &residue);
        sums.push(close(&mut scratch, modulus, &buckets));
    }

    // Horner over the positions, from the highest one on: lane 0 for the positive digits, lane 1
    // for the negative.
    scratch.lanes = 2;
    let mut product = modulus.one.clone();
    let mut factor = modulus.one.clone();
    for position in (0..recoded.digits.len()).rev() {
        if position + 1 < recoded.digits.len() {
            (0..recoded.window).for_each(|_| scratch.square(&mut product));
        }
        for part in 0..parts {
            for sign in 0..2 {
                let job = (2 * position + sign) * parts + part;
                copy_lane(width, &mut factor, sign, &sums[job / LANES], job % LANES);
            }
            scratch.mul(&mut product, &factor);
        }
    }
    let mut negative = modulus.one.clone();
    copy_lane(width, &mut negative, 0, &product, 1);
    [product, negative]
}

/// The residues with positive and with negative digits.
fn signs(digits: &[i16]) -> [Work; 2] {
    let of = |wanted: i16| {
        let with_sign = digits.iter().enumerate().filter(|(_, digit)| digit.signum() == wanted);
        with_sign.map(|(at, digit)| (at, usize::from(digit.unsigned_abs()) - 1)).collect()
    };
    [of(1), of(-1)]
}

/// Every lane's buckets: `buckets` times the limbs of a residue, lane after lane; `None` for one
/// that stayed empty.
struct Buckets {
    limbs: Vec<u64>,
    used: Vec<bool>,
    count: usize,
}

/// Multiplies every residue into its bucket; the first one in a bucket costs a copy.
fn gather<'a>(
    scratch: &mut Scratch<'_>,
    modulus: &PowerModulus,
    recoded: &Recoded,
    jobs: &[&[(usize, usize)]],
    residue: &impl Fn(usize) -> (&'a [Row], usize),
) -> Buckets {
    let (width, size, count) = (modulus.format.width, modulus.rows(), recoded.buckets());
    let mut buckets =
        Buckets { limbs: vec![0; LANES * count * size], used: vec![false; LANES * count], count };
    let mut lists = vec![Work::new(); jobs.len()];
    for (at, (list, job)) in lists.iter_mut().zip(jobs).enumerate() {
        for &(index, bucket) in *job {
            let place = at * count + bucket;
            if buckets.used[place] {
                list.push((index, place));
            } else {
                buckets.used[place] = true;
                let (group, from) = residue(index);
                let limbs = &mut buckets.limbs[place * size..(place + 1) * size];
                limbs.iter_mut().zip(lane(width, group, from)).for_each(|(to, limb)| *to = limb);
            }
        }
    }
    let (mut value, mut factor) = (modulus.one.clone(), modulus.one.clone());
    for step in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
        let active = || {
            let here = lists.iter().enumerate();
            here.filter_map(|(at, list)| list.get(step).map(|&(index, place)| (at, index, place)))
        };
        for (at, index, place) in active() {
            let limbs = &buckets.limbs[place * size..(place + 1) * size];
            set_lane(width, &mut value, at, limbs.iter().copied());
            let (group, from) = residue(index);
            copy_lane(width, &mut factor, at, group, from);
        }
        scratch.mul(&mut value, &factor);
        for (at, _, place) in active() {
            let limbs = &mut buckets.limbs[place * size..(place + 1) * size];
            limbs.iter_mut().zip(lane(width, &value, at)).for_each(|(to, limb)| *to = limb);
        }
    }
    buckets
}

/// In every lane the product of bucket `v` to the power `v + 1`, by running products.
fn close(scratch: &mut Scratch<'_>, modulus: &PowerModulus, buckets: &Buckets) -> Vec<Row> {
    let (width, size) = (modulus.format.width, modulus.rows());
    let (mut sum, mut running) = (modulus.one.clone(), modulus.one.clone());
    let mut begun = false;
    for bucket in (0..buckets.count).rev() {
        let mut factor = modulus.one.clone();
        let mut any = false;
        for at in (0..LANES).filter(|at| buckets.used[at * buckets.count + bucket]) {
            let place = at * buckets.count + bucket;
            let limbs = &buckets.limbs[place * size..(place + 1) * size];
            set_lane(width, &mut factor, at, limbs.iter().copied());
            any = true;
        }
        if any {
            scratch.mul(&mut running, &factor);
            begun = true;
        }
        if begun {
            scratch.mul(&mut sum, &running);
        }
    }
    sum
}
