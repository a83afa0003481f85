//! Asking for records: which ones is in encrypted numbers alone, and in no length, order or time. Owner only.

use super::inner::{GADGET, first_message};
use super::{PAYLOAD_BITS, Place, RetrievalKey, RetrievalQuery, Shape};
use crate::error::{Error, Result};
use crate::lattice::ring::Ring;
use crate::random::random_bytes;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

impl RetrievalKey {
    /// Asks for these records of a table, in order; the same one may occur twice.
    ///
    /// # Errors
    /// [`Error::Range`] for no records, more than [`RetrievalQuery::MAX_FETCHES`] or one that there is not,
    /// [`Error::Randomness`] if the operating system's generator fails.
    pub fn ask(&self, ring: &Ring, shape: &Shape, records: &[usize]) -> Result<RetrievalQuery> {
        let most = RetrievalQuery::MAX_FETCHES;
        if !(1..=most).contains(&records.len()) {
            return Err(Error::Range {
                what: "records of one query",
                expected: format!("1 to {most}"),
                actual: records.len().to_string(),
            });
        }
        let seed = random_bytes::<32>()?;
        let noise = Zeroizing::new(random_bytes::<32>()?);
        let mut ciphertexts = Vec::with_capacity(shape.ciphertexts(records.len()));
        for (stream, records) in records.chunks(shape.fetches_per_ciphertext()).enumerate() {
            let layout = shape.layout(records.len())?;
            let mut numbers = Zeroizing::new(Vec::with_capacity(layout.dimension()));
            for &record in records {
                append_numbers(ring, shape, shape.place(record)?, layout.level(), &mut numbers);
            }
            let encrypted =
                self.secret.encrypt(ring, &layout, &numbers, &seed, &noise, stream as u64);
            ciphertexts.extend(encrypted);
        }
        let of = (self.key, self.epoch());
        Ok(RetrievalQuery::from_parts(of, records.len(), seed, ciphertexts))
    }
}

/// The numbers of one fetch, centred, each over 2^steps modulo q. In the same time for every place.
fn append_numbers(ring: &Ring, shape: &Shape, place: Place, steps: u8, out: &mut Vec<i64>) {
    let q = ring.modulus();
    // q / 2^14, rounded: what one is.
    let unit = (q.value() + (1 << (PAYLOAD_BITS - 1))) >> PAYLOAD_BITS;
    let unit = q.mul(unit, q.pow(q.value().div_ceil(2), u64::from(steps)));
    let one = |value: u64, chosen| i64::conditional_select(&0, &q.to_centered(value), chosen);
    for node in 0..shape.nodes() as u64 {
        out.push(one(unit, node.ct_eq(&(place.node as u64))));
    }
    for bit in 0..shape.column_bits() {
        let set = (place.column as u64 >> bit & 1).ct_eq(&1);
        out.extend((0..GADGET.count).map(|digit| one(first_message(q, digit, steps), set)));
    }
}
