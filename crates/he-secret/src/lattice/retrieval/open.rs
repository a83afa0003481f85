//! Decrypting fetched records. Owner only.
//!
//! The server chooses what is decrypted. Records are to be authenticated by whoever stores them, and what follows
//! from a failure is a predicate on the record asked for (`docs/sealed.md`, section 7.5).

use super::inner::whiten;
use super::{PAYLOAD_BITS, PAYLOAD_BYTES, RetrievalAnswer, RetrievalKey, Shape};
use crate::error::{Error, Result};
use crate::lattice::ring::{DEGREE, Ring};
use crate::wire::Kind;
use ciphervec_arith::poly;
use ciphervec_arith::words::{pack_words, switch_from_words, switch_to_words, unpack_words};
use zeroize::Zeroizing;

impl RetrievalKey {
    /// The records that were asked for, in order.
    ///
    /// # Errors
    /// An answer to another key, epoch or number of records, or a record that there is not.
    pub fn open(
        &self,
        ring: &Ring,
        shape: &Shape,
        records: &[usize],
        answer: &RetrievalAnswer,
    ) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        self.check(records.len(), answer)?;
        let open = |(fetch, &record)| {
            let place = shape.place(record)?;
            let polynomial = place.column * shape.nodes() + place.node;
            let mut bytes = Zeroizing::new(Vec::with_capacity(shape.layers() * PAYLOAD_BYTES));
            for layer in 0..shape.layers() {
                let phase = self.phase(ring, answer, fetch, layer);
                let mut payload = Zeroizing::new([0; PAYLOAD_BYTES]);
                let mut words = Zeroizing::new(vec![0; DEGREE]);
                switch_to_words(&mut words, &phase, ring.modulus(), PAYLOAD_BITS);
                pack_words(&mut payload[..], &words, PAYLOAD_BITS);
                whiten(shape, layer, polynomial, &mut payload);
                bytes.extend_from_slice(&payload[..]);
            }
            Ok(Zeroizing::new(bytes[place.offset..][..shape.record_len()].to_vec()))
        };
        records.iter().enumerate().map(open).collect()
    }

    /// The noise of every coefficient of an answer, over q. It tells of keys: for the tests of its bound alone.
    #[cfg(feature = "hazmat")]
    pub fn noise(&self, ring: &Ring, answer: &RetrievalAnswer, layers: usize) -> Vec<f64> {
        let (q, steps) = (ring.modulus(), 1 << PAYLOAD_BITS);
        let places = (0..answer.fetches()).flat_map(|fetch| (0..layers).map(move |l| (fetch, l)));
        let phases = places.map(|(fetch, layer)| self.phase(ring, answer, fetch, layer));
        // What is left of a phase beyond multiples of q / 2^14.
        let rest = |&value: &u64| q.to_centered(q.mul(value, steps)) as f64;
        let noise = |value: &u64| rest(value) / steps as f64 / q.value() as f64;
        phases.flat_map(|phase| phase.iter().map(noise).collect::<Vec<_>>()).collect()
    }

    fn check(&self, fetches: usize, answer: &RetrievalAnswer) -> Result<()> {
        let what = Kind::RetrievalAnswer.as_str();
        if answer.key_id() != self.key {
            return Err(Error::WrongKey { what, expected: self.key, actual: answer.key_id() });
        }
        let both = [
            ("the epoch of a retrieval answer", self.epoch() as usize, answer.epoch() as usize),
            ("records of a retrieval answer", fetches, answer.fetches()),
        ];
        for (what, expected, actual) in both {
            if expected != actual {
                let (expected, actual) = (expected.to_string(), actual.to_string());
                return Err(Error::Range { what, expected, actual });
            }
        }
        Ok(())
    }

    /// u + t v, in coefficient form.
    fn phase(
        &self,
        ring: &Ring,
        answer: &RetrievalAnswer,
        fetch: usize,
        layer: usize,
    ) -> Zeroizing<Vec<u64>> {
        let (table, q) = (ring.tables()[0], ring.modulus());
        let [mut v, u] = answer.words(fetch, layer).map(|(bytes, bits)| {
            let mut words = vec![0; DEGREE];
            unpack_words(&mut words, bytes, bits);
            let mut poly = Zeroizing::new(vec![0; DEGREE]);
            switch_from_words(&mut poly, &words, q, bits);
            poly
        });
        table.forward(&mut v);
        poly::mul_assign(&mut v, &self.secret.residues, q);
        table.inverse(&mut v);
        poly::add_assign(&mut v, &u, q);
        v
    }
}
