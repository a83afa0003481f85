//! Secret of the half ring: encrypts compact ciphertexts, and makes the key that switches them to
//! the whole ring. Owner only.

use super::super::base_switch::{self, Pair};
use super::super::inner::{SmallPolynomial, round_to_bits, tables};
use super::super::keys::SecretKey;
use super::super::{CompactCiphertexts, Entropy, HalfRing, RingSwitchKey};
use crate::error::{Error, Result};
use ciphervec_arith::{NttTable, poly};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The secret of a half ring, a ternary polynomial of degree N/2 of its own: derived from the seed of
/// the secret key, which says nothing about either polynomial to whoever sees samples of the other.
/// Wiped on drop.
pub struct HalfRingKey<'a> {
    secret: &'a SecretKey,
    ring: Arc<HalfRing>,
    ternary: SmallPolynomial,
    /// Modulo q_0, in NTT form.
    values: Zeroizing<Vec<u64>>,
}

impl core::fmt::Debug for HalfRingKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "HalfRingKey(CKKS {}, redacted)", self.secret.key_id())
    }
}

impl SecretKey {
    /// The key of the half ring that belongs to this key.
    ///
    /// # Errors
    /// [`Error::Parameters`] for a half ring beside other parameters.
    pub fn half_ring_key(&self, ring: &Arc<HalfRing>) -> Result<HalfRingKey<'_>> {
        self.params().check_same("a half ring", ring.params())?;
        let seed = self.derived("ciphervec v1 ckks half-ring secret");
        let ternary = SmallPolynomial::ternary(ring.messages(), &seed, 0);
        let mut values = Zeroizing::new(vec![0; ring.messages()]);
        ternary.lift(&mut values, ring.table().modulus());
        ring.table().forward(&mut values);
        Ok(HalfRingKey { secret: self, ring: ring.clone(), ternary, values })
    }
}

impl HalfRingKey<'_> {
    /// Encrypts lists of numbers, each number modulo 1, in units of a turn: a ciphertext a list, whose
    /// missing numbers are zero. All share a fresh seed, and each has a mask and noise of its own.
    ///
    /// # Errors
    /// [`Error::Range`] for a list of more than [`HalfRing::messages`] numbers or one that is not
    /// finite, [`Error::Randomness`].
    pub fn encrypt(&self, lists: &[&[f64]]) -> Result<CompactCiphertexts> {
        self.encrypt_with(lists, &mut Entropy::system())
    }

    /// [`Self::encrypt`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_with(
        &self,
        lists: &[&[f64]],
        entropy: &mut Entropy,
    ) -> Result<CompactCiphertexts> {
        let ring = &self.ring;
        let (drawn, noise_seed) = (entropy.seed()?, entropy.seed()?);
        let mut seed = [0; 16];
        seed.copy_from_slice(&drawn[..16]);
        let key = self.secret.key_id();
        let mut out = CompactCiphertexts::masked(ring, key, seed, lists.len());
        let m = ring.table().modulus();
        for (index, turns) in lists.iter().enumerate() {
            let mut message = self.residues(turns)?;
            let mut constant = ring.mask(key, &seed, index);
            poly::mul_assign(&mut constant, &self.values, m);
            poly::neg_assign(&mut constant, m);
            ring.table().inverse(&mut constant);
            let mut noise = Zeroizing::new(vec![0; ring.messages()]);
            SmallPolynomial::gaussian(ring.messages(), &noise_seed, index as u64)
                .lift(&mut noise, m);
            poly::add_assign(&mut message, &noise, m);
            poly::add_assign(&mut constant, &message, m);
            round_to_bits(&mut constant, m.value(), ring.bits());
            out.push(&constant);
        }
        Ok(out)
    }

    /// q_0 times a fraction of a turn, rounded, for every number.
    fn residues(&self, turns: &[f64]) -> Result<Zeroizing<Vec<u64>>> {
        let most = self.ring.messages();
        let finite = turns.iter().all(|turn| turn.is_finite());
        if turns.len() > most || !finite {
            let found = if finite { "numbers" } else { "numbers, not all finite" };
            return Err(Error::Range {
                what: "a list of fractions of a turn",
                expected: format!("at most {most} finite numbers"),
                actual: format!("{} {found}", turns.len()),
            });
        }
        let m = self.ring.table().modulus();
        let mut out = Zeroizing::new(vec![0; most]);
        for (out, turn) in out.iter_mut().zip(turns) {
            // At most half a turn, exactly: below 2^49.
            let centred = turn - turn.round_ties_even();
            *out = m.from_i64((centred * m.value() as f64).round_ties_even() as i64);
        }
        Ok(out)
    }

    /// What a server switches ciphertexts of the half ring to the whole ring with.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn switch_key(&self) -> Result<RingSwitchKey> {
        self.switch_key_with(&mut Entropy::system())
    }

    /// [`Self::switch_key`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::switch_key`].
    pub fn switch_key_with(&self, entropy: &mut Entropy) -> Result<RingSwitchKey> {
        let params = self.ring.params();
        let mut half = Zeroizing::new(vec![0; self.ring.messages()]);
        let mut embed = |table: &NttTable| {
            self.ternary.lift(&mut half, table.modulus());
            let mut whole = Zeroizing::new(vec![0; params.degree()]);
            spread(&half, &mut whole);
            table.forward(&mut whole);
            whole
        };
        let [base, special] = tables(params).map(&mut embed);
        let from = Pair::new(&base, &special);
        let to = Pair::of(params, self.secret.values());
        let key = base_switch::generate(params, to, from, entropy)?;
        Ok(RingSwitchKey::from_parts(self.secret.key_id(), params.clone(), key))
    }
}

/// Coefficients of a polynomial in X as those of one in X².
fn spread(half: &[u64], whole: &mut [u64]) {
    for (pair, &coefficient) in whole.chunks_exact_mut(2).zip(half) {
        pair.copy_from_slice(&[coefficient, 0]);
    }
}
