//! Choosing clusters: which ones is in encrypted numbers alone, and in no length, order or time. Owner only.

use super::inner::{GADGET, first_message, param_id};
use super::{ChoiceShape, ClusterChoice};
use crate::error::{Error, Result};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::ring::{DEGREE, QueryKey, Ring};
use crate::random::random_bytes;
use ciphervec_arith::poly;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

impl QueryKey {
    /// Chooses these clusters, in order, for the query key of `collection` that this is. The key of t² that goes along is a
    /// function of the master key, the collection and the epoch, as evaluation keys are.
    ///
    /// # Errors
    /// [`Error::Range`] for another number of clusters than the shape has, or one that there is not; [`Error::Randomness`] if
    /// the operating system's generator fails.
    pub fn choose(
        &self,
        ring: &Ring,
        master: &MasterKey,
        collection: &[u8],
        shape: &ChoiceShape,
        chosen: &[usize],
    ) -> Result<ClusterChoice> {
        let range = |what, expected: String, actual: usize| {
            Err(Error::Range { what, expected, actual: actual.to_string() })
        };
        if chosen.len() != shape.probes() {
            return range("clusters chosen", shape.probes().to_string(), chosen.len());
        }
        if let Some(none) = chosen.iter().find(|cluster| **cluster >= shape.clusters()) {
            return range("a cluster chosen", format!("below {}", shape.clusters()), *none);
        }
        let bits =
            chosen.iter().flat_map(|cluster| (0..shape.bits()).map(|bit| *cluster >> bit & 1));
        let mut bits = bits.flat_map(|bit| (0..GADGET.count).map(move |digit| (bit, digit)));
        let q = ring.modulus();
        let seed = random_bytes::<32>()?;
        let noise = Zeroizing::new(random_bytes::<32>()?);
        let mut ciphertexts = Vec::new();
        for (stream, layout) in shape.layouts()?.into_iter().enumerate() {
            let number = |(bit, digit): (usize, u32)| {
                let one = q.to_centered(first_message(q, digit, layout.level()));
                i64::conditional_select(&0, &one, (bit as u64).ct_eq(&1))
            };
            let numbers: Vec<i64> = bits.by_ref().take(layout.dimension()).map(number).collect();
            let numbers = Zeroizing::new(numbers);
            ciphertexts.extend(self.encrypt(ring, &layout, &numbers, &seed, &noise, stream as u64));
        }
        let derive = |purpose| {
            let epoch = self.epoch().to_le_bytes();
            let parts: [&[u8]; 5] =
                [collection, b"ring square", &Ring::param_id().0, &param_id().0, &epoch];
            master.derive(purpose, &parts)
        };
        let (mask, from_noise) =
            (derive(Purpose::EvaluationMask), derive(Purpose::EvaluationNoise));
        let mut square = Zeroizing::new(vec![0; DEGREE]);
        poly::mul(&mut square, &self.residues, &self.residues, q);
        let square = self.switching_key(ring, (&square, 0), *mask.expose(), from_noise.expose());
        Ok(ClusterChoice::from_parts(square, seed, ciphertexts))
    }
}
