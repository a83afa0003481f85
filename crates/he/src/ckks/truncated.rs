//! Ciphertexts at level 0 cut to the high bits of their coefficients, for answers that travel.
//!
//! `x` modulo `q_0` is sent as `round(x 2^b / q_0)` modulo `2^b`, which is a switch to the modulus
//! `2^b` at a scale that nobody needs to know. A slot is off by `r_0 + r_1 s + r_2 s²`, each `r`
//! uniform: what `c_1` loses meets a value of the secret, so that `c_0` may lose more bits than
//! `c_1`, and `c_1` more than `c_2`. `docs/lookup.md`, section "Answers", derives how many.

use super::ciphertext::{Ciphertext, Meta};
use super::noise::Noise;
use super::params::Params;
use super::poly::{Coefficient, Poly};
use super::serialize::{pack_bits, unpack_bits};
use super::spec::{ParamsSpec, Ring};
use super::tail::deviations;
use crate::error::{Error, Result};
use crate::wire::KeyId;
use std::sync::{Arc, LazyLock};

/// −log2 of the chance that a slot is off by more than is said, for each part of a ciphertext.
const CHANCE_BITS: f64 = 67.0;
/// The variance of a ternary coefficient, and of a uniform one between −½ and ½.
const TERNARY: f64 = 2.0 / 3.0;
const ROUNDING: f64 = 1.0 / 12.0;
/// Roundings to whole residues that the widest words do not save: before words are made, and of
/// what they become again.
const WHOLE: f64 = 2.0;
/// Numbers of a truncated ciphertext, over which its modulus has room.
const ROOM: f64 = 2.0;

/// `round(x 2^bits / q)` modulo `2^bits`, for residues modulo `q`.
pub fn round_to_bits(residues: &mut [u64], q: u64, bits: u32) {
    let wide = u128::from(q);
    for residue in residues {
        let scaled = (u128::from(*residue) << bits) + wide / 2;
        *residue = (scaled / wide) as u64 & ((1 << bits) - 1);
    }
}

/// The residues modulo `q` that [`round_to_bits`] was given, as near as can be told.
pub(super) fn restore_from_bits(words: &mut [u64], q: u64, bits: u32) {
    let half = (1u128 << bits) / 2;
    for word in words {
        let wide = (u128::from(*word) * u128::from(q) + half) >> bits;
        *word = if wide == u128::from(q) { 0 } else { wide as u64 };
    }
}

/// What each part is within, in standard deviations. A uniform number and a ternary one have lighter
/// tails than Gaussian numbers of their variance, so that Chernoff's bound for those holds for sums of
/// these: of one such value in a slot, of the product of two, and for s² of each of three.
fn tails(ring: Ring) -> &'static [f64; 3] {
    static TAILS: LazyLock<[[f64; 3]; 2]> = LazyLock::new(|| {
        [Ring::Standard, Ring::ConjugateInvariant].map(|ring| {
            let within = |bits: f64, keyed: f64| deviations(bits, keyed, ring, 1.0);
            let each = within(CHANCE_BITS + 2.0, 0.0);
            [within(CHANCE_BITS, 0.0), within(CHANCE_BITS, 1.0), each * each * each]
        })
    });
    let [standard, real] = &*TAILS;
    if ring == Ring::Standard { standard } else { real }
}

/// How many bits a coefficient keeps of c_0, of c_1 and, in degree 2, of c_2.
#[derive(Clone, PartialEq, Debug)]
pub struct Truncation {
    log_degree: u32,
    ring: Ring,
    /// q_0, and the bits of a residue.
    prime: f64,
    most: u32,
    bits: Vec<u32>,
}

impl Truncation {
    /// The fewest bits, all parts together but for what whole bits leave, with which no slot is off
    /// by more than `error` at `scale`, except with a chance below 2⁻⁶⁵.
    ///
    /// # Errors
    /// [`Error::Range`] where all bits of the residues are too few, or for another degree than 1
    /// and 2.
    pub fn within(params: &Arc<Params>, degree: usize, scale: f64, error: f64) -> Result<Self> {
        Self::finest(params, degree)?.least(scale, error)
    }

    /// The same of a set of parameters whose primes are not there yet.
    ///
    /// # Errors
    /// As [`Self::within`].
    pub fn planned(spec: &ParamsSpec, degree: usize, scale: f64, error: f64) -> Result<Self> {
        let prime = f64::exp2(f64::from(spec.base_bits));
        Self::checked(spec, (prime, spec.base_bits), vec![spec.base_bits; degree + 1])?
            .least(scale, error)
    }

    fn least(self, scale: f64, error: f64) -> Result<Self> {
        let mut found = self;
        let share = error / found.bits.len() as f64;
        for part in 0..found.bits.len() {
            let fits = |bits: &u32| found.part_error(part, *bits) / scale <= share;
            found.bits[part] = (1..=found.most).find(fits).unwrap_or(found.most);
        }
        // A part that all of its bits do not bring within its share leaves less to the others.
        while found.error(scale) > error {
            let off = |part: &usize| found.part_error(*part, found.bits[*part]);
            let parts = (0..found.bits.len()).filter(|&part| found.bits[part] < found.most);
            let Some(part) = parts.max_by(|a, b| off(a).total_cmp(&off(b))) else { break };
            found.bits[part] += 1;
        }
        // Whole bits leave up to half of what a part may be off by: one of them may use it.
        for part in 0..found.bits.len() {
            found.bits[part] -= 1;
            if found.bits[part] == 0 || found.error(scale) > error {
                found.bits[part] += 1;
            }
        }
        let least = found.error(scale);
        if least <= error {
            return Ok(found);
        }
        Err(Error::Range {
            what: "the error of a truncated ciphertext",
            expected: format!("at least {least:.3e}, with all bits"),
            actual: format!("{error:.3e}"),
        })
    }

    /// All bits of every part.
    ///
    /// # Errors
    /// [`Error::Range`] for another degree than 1 and 2.
    pub fn finest(params: &Arc<Params>, degree: usize) -> Result<Self> {
        Self::of(params, vec![params.prime(0).bits(); degree + 1])
    }

    /// As it was read: a number of bits for every part.
    ///
    /// # Errors
    /// [`Error::Range`] for other than two or three parts, or bits that a residue does not have.
    pub fn of(params: &Arc<Params>, bits: Vec<u32>) -> Result<Self> {
        let q = params.prime(0);
        Self::checked(params.spec(), (q.value() as f64, q.bits()), bits)
    }

    fn checked(spec: &ParamsSpec, (prime, most): (f64, u32), bits: Vec<u32>) -> Result<Self> {
        let &ParamsSpec { log_degree, ring, .. } = spec;
        if (2..=3).contains(&bits.len()) && bits.iter().all(|bits| (1..=most).contains(bits)) {
            return Ok(Truncation { log_degree, ring, prime, most, bits });
        }
        Err(Error::Range {
            what: "the bits of a truncated ciphertext",
            expected: format!("1 to {most} for each of two or three parts"),
            actual: format!("{bits:?}"),
        })
    }

    /// Bits of a coefficient, part by part.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Bytes of one ciphertext.
    pub fn bytes(&self) -> usize {
        self.bits.iter().map(|bits| (1 << self.log_degree) / 8 * *bits as usize).sum()
    }

    /// What no slot is off by more, real or imaginary part, at `scale`, except with a chance below
    /// 2⁻⁶⁵.
    pub fn error(&self, scale: f64) -> f64 {
        let parts = self.bits.iter().enumerate();
        parts.map(|(part, bits)| self.part_error(part, *bits)).sum::<f64>() / scale
    }

    /// The standard deviation of the same.
    pub fn deviation(&self, scale: f64) -> f64 {
        let parts = self.bits.iter().enumerate();
        let square = |(part, bits): (usize, &u32)| {
            let moment = if part == 2 { 3.0 } else { 1.0 };
            moment * self.spread(part, *bits).powi(2)
        };
        parts.map(square).sum::<f64>().sqrt() / scale
    }

    /// What a part takes from a slot at the most, times the scale.
    fn part_error(&self, part: usize, bits: u32) -> f64 {
        tails(self.ring)[part] * self.spread(part, bits)
    }

    /// Refuses another ring or base prime.
    fn check(&self, params: &Params) -> Result<()> {
        let prime = params.prime(0).value() as f64;
        let spec = params.spec();
        if (spec.log_degree, spec.ring, prime) == (self.log_degree, self.ring, self.prime) {
            return Ok(());
        }
        Err(Error::Range {
            what: "the parameters of a truncated ciphertext",
            expected: format!("degree 2^{}, base prime {}", self.log_degree, self.prime),
            actual: format!("degree 2^{}, base prime {prime}", spec.log_degree),
        })
    }

    /// √(δ' (u² + 2)/12 · (2δ/3)^part) for a step u = q_0/2^bits, δ' being the part of δ that is in
    /// one coordinate of a slot.
    fn spread(&self, part: usize, bits: u32) -> f64 {
        let expansion = self.ring.expansion(self.log_degree);
        let step = self.prime / f64::exp2(f64::from(bits));
        let rounded = ROUNDING * (step * step + WHOLE) * expansion / self.ring.parts() as f64;
        (rounded * (TERNARY * expansion).powi(part as i32)).sqrt()
    }
}

impl Ciphertext {
    /// Appends the high bits of every coefficient, part by part.
    ///
    /// # Errors
    /// [`Error::Range`] unless the ciphertext is at level 0 and of the ring and degree of
    /// `truncation`.
    pub fn truncate(&self, truncation: &Truncation, out: &mut Vec<u8>) -> Result<()> {
        truncation.check(self.params())?;
        if self.level() != 0 || self.parts.len() != truncation.bits.len() {
            return Err(Error::Range {
                what: "a ciphertext to truncate",
                expected: format!("level 0 and degree {}", truncation.bits.len() - 1),
                actual: format!("level {} and degree {}", self.level(), self.degree()),
            });
        }
        let q = self.params().prime(0).value();
        for (part, bits) in self.parts.iter().zip(&truncation.bits) {
            let mut part = part.coefficients();
            round_to_bits(part.limb_mut(0), q, *bits);
            pack_bits(part.limb(0), *bits, out);
        }
        Ok(())
    }

    /// What [`Self::truncate`] wrote, of a ciphertext under `key` at `scale`, up to
    /// [`Truncation::error`].
    ///
    /// # Errors
    /// [`Error::Range`] for another ring or number of bytes, or a scale at which the modulus holds nothing.
    pub fn from_truncated(
        params: &Arc<Params>,
        truncation: &Truncation,
        (key, scale): (KeyId, f64),
        bytes: &[u8],
    ) -> Result<Self> {
        truncation.check(params)?;
        let q = params.prime(0).value();
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::Range {
                what: "the scale of a truncated ciphertext",
                expected: "positive and finite".into(),
                actual: scale.to_string(),
            });
        }
        if bytes.len() != truncation.bytes() {
            return Err(Error::Range {
                what: "the bytes of a truncated ciphertext",
                expected: truncation.bytes().to_string(),
                actual: bytes.len().to_string(),
            });
        }
        let mut rest = bytes;
        let read = |bits: &u32| {
            let (own, after) = rest.split_at(params.degree() / 8 * *bits as usize);
            rest = after;
            let mut part = Poly::<Coefficient>::scratch(params, 0);
            unpack_bits(own, *bits, part.limb_mut(0));
            restore_from_bits(part.limb_mut(0), q, *bits);
            part.into_ntt()
        };
        let parts = truncation.bits.iter().map(read).collect();
        let bound = scale * truncation.error(scale);
        let noise = Noise { std: bound / params.expansion().sqrt(), bound };
        let magnitude = q as f64 / (ROOM * scale);
        let meta = Meta { key, scale, slots: params.max_slots(), noise, magnitude };
        Ok(Ciphertext { parts, meta })
    }
}

#[cfg(all(test, feature = "hazmat"))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::params::Security;

    fn params(ring: Ring) -> Arc<Params> {
        Params::insecure_new(ParamsSpec {
            log_degree: 10,
            ring,
            base_bits: 50,
            scale_bits: 36,
            levels: 1,
            special_primes: 0,
            special_bits: 50,
            digits: 1,
            security: Security::Classical128,
        })
        .unwrap()
    }

    /// Numbers of a generator, as far as they go.
    fn residues(q: u64, count: usize) -> Vec<u64> {
        let number =
            |i: u64| (u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(q)) >> 64;
        let ends = [0, 1, q / 2, q / 2 + 1, q - 1];
        (0..count as u64).map(|i| number(i) as u64).chain(ends).map(|x| x % q).collect()
    }

    #[test]
    fn words_are_within_half_a_step_around_the_modulus() {
        for q in [(1u64 << 50) - 27, (1 << 42) - 11, 97] {
            for bits in [1, 7, 24, 33, 50] {
                let exact = residues(q, 500);
                let mut words = exact.clone();
                round_to_bits(&mut words, q, bits);
                assert!(words.iter().all(|word| word >> bits == 0));
                let mut found = words.clone();
                restore_from_bits(&mut found, q, bits);
                for (found, exact) in found.iter().zip(&exact) {
                    assert!(*found < q);
                    let apart = found.abs_diff(*exact);
                    // Around the modulus: what is just below it is rounded to 0.
                    let apart = u128::from(apart.min(q - apart));
                    // Half a step q/2^bits, and half a residue.
                    assert!(apart << (bits + 1) <= u128::from(q) + (1 << bits), "{q} {bits}");
                }
            }
        }
    }

    #[test]
    fn all_bits_give_the_residues_back_and_fewer_pack_and_unpack() {
        for bits in [1, 8, 25, 31, 47, 50] {
            let words: Vec<u64> = residues(1 << bits, 251);
            let mut packed = Vec::new();
            pack_bits(&words, bits, &mut packed);
            assert_eq!(packed.len(), 32 * bits as usize);
            let mut found = vec![0; 256];
            unpack_bits(&packed, bits, &mut found);
            assert_eq!(found, words);
        }
        let q = (1u64 << 50) - 27;
        let exact = residues(q, 99);
        let mut words = exact.clone();
        round_to_bits(&mut words, q, 50);
        restore_from_bits(&mut words, q, 50);
        assert!(
            words.iter().zip(&exact).all(|(a, b)| a.abs_diff(*b) <= 1 || a.abs_diff(*b) >= q - 1)
        );
    }

    #[test]
    fn the_fewest_bits_are_chosen_that_are_enough() {
        let params = params(Ring::ConjugateInvariant);
        let scale = f64::exp2(45.0);
        let finest = Truncation::finest(&params, 2).unwrap().error(scale);
        for (degree, error) in [(1, 1e-3), (1, 3e-6), (2, 1e-4), (2, 1.02 * finest), (2, finest)] {
            let found = Truncation::within(&params, degree, scale, error).unwrap();
            assert!(found.error(scale) <= error);
            for part in 0..=degree {
                let mut fewer = found.bits().to_vec();
                fewer[part] -= 1;
                let fewer = Truncation::of(&params, fewer).unwrap();
                assert!(fewer.error(scale) > error, "{degree} {error}");
            }
            // What meets the secret more often is rounded less.
            assert!(found.bits().is_sorted());
        }
        let refused = Truncation::within(&params, 1, scale, 1e-12).unwrap_err().to_string();
        assert!(refused.contains("all bits"), "{refused}");
    }
}
