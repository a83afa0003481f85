//! Keys of private retrieval: a ternary secret of its own, and the evaluation keys of it. Owner only.

use super::SelectorKeys;
use super::inner::{FINE_LEVELS, LEVELS, param_id};
use crate::keys::{MasterKey, Purpose};
use crate::lattice::ring::inner::{SwitchingKey, TreeKeys, digits};
use crate::lattice::ring::{DEGREE, QueryKey, Ring};
use ciphervec_arith::poly;
use zeroize::Zeroizing;

/// The key of one epoch's fetches. No key of a search, so that what a server learns from reactions to fetches tells
/// nothing about one.
#[derive(Debug)]
pub struct RetrievalKey {
    pub(super) secret: QueryKey,
    pub(super) key: crate::KeyId,
}

impl RetrievalKey {
    /// The key of `collection` in `epoch`.
    pub fn derive(ring: &Ring, master: &MasterKey, collection: &[u8], epoch: u32) -> Self {
        let names: [&[u8]; 3] = [collection, b"retrieval", &param_id().0];
        let secret = QueryKey::derive_named(ring, master, names, epoch);
        RetrievalKey { secret, key: master.key_id() }
    }

    /// The epoch.
    pub fn epoch(&self) -> u32 {
        self.secret.epoch()
    }

    /// The evaluation keys, a function of the master key, the collection and the epoch: masks and noise of each
    /// come of seeds that are derived from the same names, and no noise ever meets a second mask.
    pub fn selector_keys(
        &self,
        ring: &Ring,
        master: &MasterKey,
        collection: &[u8],
    ) -> SelectorKeys {
        let epoch = self.epoch().to_le_bytes();
        let make = |from: &[u64], level: u8, digit: usize| -> SwitchingKey {
            let place = [level, digit as u8];
            let parts: [&[u8]; 5] = [collection, b"retrieval", &param_id().0, &epoch, &place];
            let mask = master.derive(Purpose::EvaluationMask, &parts);
            let noise = master.derive(Purpose::EvaluationNoise, &parts);
            self.secret.switching_key(ring, (from, digit), *mask.expose(), noise.expose())
        };
        let mut from = Zeroizing::new(vec![0; DEGREE]);
        let mut tree = Vec::with_capacity(usize::from(LEVELS));
        for level in 0..LEVELS {
            poly::permute(&mut from, &self.secret.residues, ring.automorphism(level));
            let keys = 0..digits(level, FINE_LEVELS);
            tree.push(keys.map(|digit| make(&from, level, digit)).collect());
        }
        poly::mul(&mut from, &self.secret.residues, &self.secret.residues, ring.modulus());
        let square = make(&from, LEVELS, 0);
        SelectorKeys::from_parts(self.key, self.epoch(), TreeKeys(tree), square)
    }
}
