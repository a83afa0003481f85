//! Cuckoo hashing: every record gets a slot in one of the buckets that its key names, one a part. For publishers.

use super::geometry::Geometry;
use super::hash::Digest;

/// What no record is in.
pub(super) const EMPTY: u32 = u32::MAX;
/// Moves for one record before an attempt is given up.
const MOVES: usize = 2_000;

/// The record in each slot of each bucket, parts one after the other; none if this attempt found no room for all.
pub(super) fn place(digests: &[Digest], table: &Geometry, attempt: u32) -> Option<Vec<u32>> {
    let slots = table.slots();
    let mut held = vec![EMPTY; table.all_buckets() * slots];
    let bucket = |record: u32, part: usize| {
        let within = digests[record as usize].bucket(part, attempt, table.buckets);
        (part * table.buckets + within) * slots
    };
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for first in 0..digests.len() as u32 {
        let mut record = first;
        let mut moves = 0;
        loop {
            let mut free = (0..table.parts).filter_map(|part| {
                let start = bucket(record, part);
                let at = held[start..start + slots].iter().position(|one| *one == EMPTY)?;
                Some(start + at)
            });
            if let Some(at) = free.next() {
                held[at] = record;
                break;
            }
            if moves == MOVES || table.parts == 1 {
                return None;
            }
            moves += 1;
            // A walk that is the same each time: the table is a function of its records and seed.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (part, slot) = (random as usize % table.parts, (random >> 32) as usize % slots);
            core::mem::swap(&mut held[bucket(record, part) + slot], &mut record);
        }
    }
    Some(held)
}

#[cfg(test)]
mod tests {
    use super::super::hash::{KeyHash, LookupKey};
    use super::*;

    #[test]
    fn every_record_is_in_a_bucket_that_its_key_names() {
        for (records, content) in
            [(0, 5), (1, 5), (5_000, 0), (5_000, 900), (2_000, 3400), (3_000, 3566), (700, 7000)]
        {
            let hash = KeyHash::new([9; 32]);
            let digests: Vec<Digest> =
                (0..records).map(|key| hash.digest(LookupKey::Integer(key))).collect();
            let table = Geometry::of(digests.len(), content, false).unwrap();
            let (attempt, held) = (0..64)
                .find_map(|attempt| Some((attempt, place(&digests, &table, attempt)?)))
                .unwrap();
            assert!(attempt < 16, "{attempt}");
            let mut found = 0;
            for (at, record) in held.iter().enumerate().filter(|(_, record)| **record != EMPTY) {
                let bucket = at / table.slots();
                let (part, within) = (bucket / table.buckets, bucket % table.buckets);
                let digest = &digests[*record as usize];
                assert_eq!(digest.bucket(part, attempt, table.buckets), within);
                found += 1;
            }
            let mut distinct: Vec<u32> =
                held.into_iter().filter(|record| *record != EMPTY).collect();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!((found, distinct.len()), (digests.len(), digests.len()));
        }
    }
}
