//! Galois keys of the key of an epoch's queries.

use super::inner::{DIGIT_BITS, FINE_LEVELS, SwitchingKey, digits};
use super::keys::transform;
use super::{Binding, DEGREE, EvaluationKeys, Layout, QueryKey, Ring};
use crate::keys::{MasterKey, Purpose};
use ciphervec_arith::poly;
use ciphervec_arith::sample::Stream;
use zeroize::{Zeroize, Zeroizing};

impl QueryKey {
    /// Keys for every level that `dimension` can use. They are a function of the master key, the
    /// collection and the epoch, so that whoever holds the master key has those that its server was
    /// given: masks and noise of each come of seeds derived from the same names, and no noise ever
    /// meets a second mask.
    pub fn evaluation_keys(
        &self,
        ring: &Ring,
        master: &MasterKey,
        collection: &[u8],
        binding: Binding,
        dimension: usize,
    ) -> EvaluationKeys {
        let seed = |purpose: Purpose, level: u8, digit: usize| {
            let place = [level, digit as u8];
            let epoch = self.epoch().to_le_bytes();
            let parts: [&[u8]; 6] =
                [collection, b"ring", &Ring::param_id().0, &binding.mask_seed, &epoch, &place];
            master.derive(purpose, &parts)
        };
        let level = |level| {
            let key = |digit| {
                let mask = seed(Purpose::EvaluationMask, level, digit);
                let noise = seed(Purpose::EvaluationNoise, level, digit);
                let mut rotated = Zeroizing::new(vec![0; DEGREE]);
                poly::permute(&mut rotated, &self.residues, ring.automorphism(level));
                self.switching_key(ring, (&rotated, digit), *mask.expose(), noise.expose())
            };
            (0..digits(level, FINE_LEVELS)).map(key).collect()
        };
        let levels = (0..Layout::top_level(dimension)).map(level).collect();
        EvaluationKeys::from_parts(master.key_id(), binding, self.epoch(), levels)
    }

    /// The key that switches one digit of what is encrypted under `from`, in NTT form, to this key.
    pub(in crate::lattice) fn switching_key(
        &self,
        ring: &Ring,
        (from, digit): (&[u64], usize),
        seed: [u8; 32],
        noise_seed: &[u8; 32],
    ) -> SwitchingKey {
        let linear = SwitchingKey::expand_linear(ring, &seed);
        let mut errors = vec![0i32; DEGREE];
        Stream::new(noise_seed, 0).gaussian(&mut errors);
        let mut rotated = from.to_vec();
        let [ciphertext, special] = ring.tables();
        let q = ring.modulus();
        let gadget = q.mul(q.reduce(special.modulus().value()), 1 << (DIGIT_BITS * digit as u32));
        poly::scalar_mul_assign(&mut rotated, gadget, q);
        let mut secret_special = transform(special, &self.ternary);
        let constant =
            [(ciphertext, &self.residues), (special, &secret_special)].map(|(table, t)| {
                let modulus = table.modulus();
                let mut noise: Vec<u64> =
                    errors.iter().map(|&e| modulus.from_i64(i64::from(e))).collect();
                table.forward(&mut noise);
                let side = usize::from(!core::ptr::eq(table, ciphertext));
                let mut masked = vec![0; DEGREE];
                poly::mul(&mut masked, &linear[side], t, modulus);
                poly::sub_assign(&mut noise, &masked, modulus);
                if side == 0 {
                    // P · B^i · t(X^g) vanishes modulo P.
                    poly::add_assign(&mut noise, &rotated, modulus);
                }
                noise
            });
        secret_special.zeroize();
        rotated.zeroize();
        errors.zeroize();
        SwitchingKey::from_parts(seed, constant, linear)
    }
}
