//! Ring switching: makes a ciphertext of the whole ring, with the same numbers as coefficients, of
//! one of the half ring. Server only.
//!
//! X ↦ X² is a homomorphism into the ring of degree N, which costs nothing: (a, b) under s becomes
//! (a(X²), b(X²)) under s(X²). Times 1 − X^(N/2+1) the first N/2 coefficients of the message are all
//! of its numbers, where a bootstrapping of real parts reads them; or a second ciphertext takes the
//! odd powers, for one of both parts. A key switch to the secret of the whole ring ends it.

use super::super::base_switch::BaseSwitchKey;
use super::super::ciphertext::{Ciphertext, Meta};
use super::super::noise::Noise;
use super::super::params::Params;
use super::super::poly::{Coefficient, Ntt, Poly};
use super::super::serialize::open;
use super::{CompactCiphertexts, HalfRing};
use crate::error::{Error, Result};
use crate::params::TAIL_DEVIATIONS;
use crate::wire::{self, Header, KeyId, Kind, Scheme};
use ciphervec_arith::Modulus;
use std::sync::Arc;

/// The key from the secret of a half ring to that of the whole one, modulo q_0 and one special prime.
/// Public.
pub struct RingSwitchKey {
    key: KeyId,
    params: Arc<Params>,
    switch: BaseSwitchKey,
}

impl RingSwitchKey {
    /// The key to the whole ring of `params`. Hidden: whoever has a secret key makes one with it.
    #[doc(hidden)]
    pub fn from_parts(key: KeyId, params: Arc<Params>, switch: BaseSwitchKey) -> Self {
        RingSwitchKey { key, params, switch }
    }

    /// The secret key it belongs to.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.switch.memory()
    }

    /// Bytes serialised.
    pub fn bytes(params: &Params) -> usize {
        wire::HEADER_LEN + BaseSwitchKey::bytes(params)
    }

    /// Serialises the key; its mask is written as a seed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(BaseSwitchKey::bytes(&self.params));
        self.switch.append(&self.params, &mut payload);
        let params = self.params.param_id();
        Header { scheme: Scheme::Ckks, kind: Kind::RingSwitchKey, params, key: self.key }
            .frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, or other parameters.
    pub fn from_bytes(ring: &HalfRing, bytes: &[u8]) -> Result<Self> {
        let params = &ring.params;
        let (header, mut reader) = open(params, Kind::RingSwitchKey, bytes)?;
        let switch = BaseSwitchKey::read(params, &mut reader)?;
        reader.finish()?;
        Ok(RingSwitchKey { key: header.key, params: params.clone(), switch })
    }
}

impl core::fmt::Debug for RingSwitchKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RingSwitchKey({}, {} bytes)", self.key, self.memory())
    }
}

/// Two polynomials, one in the even powers and one in the odd ones.
fn interleave(even: &[u64], odd: &[u64], whole: &mut [u64]) {
    for (pair, (&even, &odd)) in whole.chunks_exact_mut(2).zip(even.iter().zip(odd)) {
        pair.copy_from_slice(&[even, odd]);
    }
}

/// The first times 1 − X^(N/2+1): what stands beside a coefficient is the one half a ring away, with
/// its sign where it passes X^N.
fn repeat(half: &[u64], whole: &mut [u64], m: &Modulus) {
    let (low, high) = half.split_at(half.len() / 2);
    let (first, second) = whole.split_at_mut(half.len());
    for (pair, (&low, &high)) in first.chunks_exact_mut(2).zip(low.iter().zip(high)) {
        pair.copy_from_slice(&[low, high]);
    }
    for (pair, (&low, &high)) in second.chunks_exact_mut(2).zip(low.iter().zip(high)) {
        pair.copy_from_slice(&[high, m.neg(low)]);
    }
}

impl HalfRing {
    /// Ciphertext `index` of `ciphertexts` in the whole ring, at level 0 with the scale q_0: its first
    /// N/2 coefficients are the numbers, in the order of [`Self::place`], and the others follow from
    /// them.
    ///
    /// # Errors
    /// [`Error::WrongKey`] for a key of another secret, [`Error::Parameters`], [`Error::Range`] for a
    /// ciphertext that is not there or of another number of bits.
    pub fn switch(
        &self,
        ciphertexts: &CompactCiphertexts,
        index: usize,
        key: &RingSwitchKey,
    ) -> Result<Ciphertext> {
        self.check(ciphertexts, key)?;
        let halves = self.halves(ciphertexts, index)?;
        Ok(self.finish(halves.map(|half| self.embedded(|out, m| repeat(&half, out, m))), key))
    }

    /// Ciphertexts `first` and `first` + 1 as one of the whole ring, with numbers in all coefficients,
    /// in the order of [`Self::place_in_pair`].
    ///
    /// # Errors
    /// As [`Self::switch`].
    pub fn switch_pair(
        &self,
        ciphertexts: &CompactCiphertexts,
        first: usize,
        key: &RingSwitchKey,
    ) -> Result<Ciphertext> {
        self.check(ciphertexts, key)?;
        let [even, odd] = [self.halves(ciphertexts, first)?, self.halves(ciphertexts, first + 1)?];
        let [[b, a], [c, d]] = [even, odd];
        let parts = [(b, c), (a, d)];
        Ok(self.finish(parts.map(|(b, c)| self.embedded(|out, _| interleave(&b, &c, out))), key))
    }

    fn check(&self, ciphertexts: &CompactCiphertexts, key: &RingSwitchKey) -> Result<()> {
        self.params.check_same("a ring switching key", &key.params)?;
        if key.key == ciphertexts.key {
            return Ok(());
        }
        let (expected, actual) = (key.key, ciphertexts.key);
        Err(Error::WrongKey { what: "compact ciphertexts", expected, actual })
    }

    /// b and a of one ciphertext, as coefficients.
    fn halves(&self, ciphertexts: &CompactCiphertexts, index: usize) -> Result<[Vec<u64>; 2]> {
        let constant = ciphertexts.constant(self, index)?;
        let mut linear = self.mask(ciphertexts.key, &ciphertexts.seed, index);
        self.table.inverse(&mut linear);
        Ok([constant, linear])
    }

    /// Switches b + a s(X²) to the secret of the whole ring.
    fn finish(&self, [constant, linear]: [Poly<Ntt>; 2], key: &RingSwitchKey) -> Ciphertext {
        let [mut first, second] = key.switch.switch(&linear);
        first.add_assign(&constant);
        let q = self.params.prime(0).value() as f64;
        let std = self.deviation() * q;
        let noise = Noise { std, bound: TAIL_DEVIATIONS * self.params.expansion().sqrt() * std };
        let meta = Meta {
            key: key.key,
            scale: q,
            slots: self.params.max_slots(),
            noise,
            magnitude: self.params.degree() as f64,
        };
        Ciphertext { parts: vec![first, second], meta }
    }

    fn embedded(&self, write: impl Fn(&mut [u64], &Modulus)) -> Poly<Ntt> {
        let mut whole = Poly::<Coefficient>::zero(&self.params, 0);
        write(whole.limb_mut(0), self.params.prime(0));
        whole.into_ntt()
    }
}
