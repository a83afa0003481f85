//! Noise and numbers modulo `n` from the residues modulo two secret prime powers, by Chinese
//! remainders. Owner only.
//!
//! What is joined from two halves betrays a factor of `n` when one of them is wrong (Boneh,
//! DeMillo, Lipton 1997), so [`Crt::noise`] checks what it made against an independent computation
//! of the product of all its elements.

use super::Group;
use super::inner::{product_of_all, uniform};
use super::multiplier::Multiplier;
use crate::biguint;
use crate::error::{Error, Result};
use ciphervec_arith::montgomery::{Comb, PowerModulus, Residues};
use crypto_bigint::BoxedUint;
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};
use zeroize::{Zeroize, Zeroizing};

/// How one half of the noise is drawn.
pub(crate) enum HalfNoise {
    /// `r^e` for a uniform `r` modulo the prime.
    Uniform(BoxedUint),
    /// `(root^lift)^r` for a uniform `r` below the order of `root` modulo the prime.
    Powers { root: BoxedUint, lift: BoxedUint, order: BoxedUint },
}

impl Drop for HalfNoise {
    fn drop(&mut self) {
        match self {
            HalfNoise::Uniform(exponent) => exponent.zeroize(),
            HalfNoise::Powers { root, lift, order } => {
                root.zeroize();
                lift.zeroize();
                order.zeroize();
            }
        }
    }
}

/// Arithmetic modulo a power of one secret prime.
pub(crate) struct Half {
    pub(crate) prime: BoxedUint,
    pub(crate) power: BoxedUint,
    pub(crate) modulus: Arc<PowerModulus>,
    noise: HalfNoise,
    table: OnceLock<Comb>,
}

impl Drop for Half {
    fn drop(&mut self) {
        self.prime.zeroize();
        self.power.zeroize();
    }
}

impl Half {
    /// Arithmetic modulo `prime^exponent`.
    pub(crate) fn new(prime: &BoxedUint, exponent: usize, noise: HalfNoise) -> Result<Self> {
        Ok(Half {
            prime: biguint::trimmed(prime),
            power: biguint::raised(prime, exponent as u32),
            modulus: PowerModulus::new(biguint::trimmed(prime).as_words(), exponent)?,
            noise,
            table: OnceLock::new(),
        })
    }

    /// A number modulo the prime power, in base-prime digits.
    pub(crate) fn digits(&self, value: &BoxedUint) -> Vec<u64> {
        let residue = Zeroizing::new(biguint::reduced(value, &self.power));
        biguint::digits(&residue, &self.prime, self.modulus.digits(), self.modulus.words())
    }

    /// The number of these digits.
    pub(crate) fn value(&self, digits: &[u64]) -> BoxedUint {
        biguint::joined(digits, &self.prime, self.modulus.words())
    }

    /// Digits of `count` noises modulo the prime power and, last, of their product computed another
    /// way: beside them, where it often takes a lane that would be idle. `parities` are those that
    /// the exponents must have; if there are none yet, those of the exponents drawn.
    fn noise(
        &self,
        count: usize,
        parities: &mut Option<Zeroizing<Vec<u64>>>,
    ) -> Result<Zeroizing<Vec<u64>>> {
        match &self.noise {
            HalfNoise::Uniform(exponent) => {
                let size = self.modulus.element_words();
                let roots = uniform(&self.prime, count, size)?;
                let roots = Residues::from_digits(&self.modulus, 1, count, &roots)?;
                let product = product_of_all(roots.clone());
                let roots = Residues::beside(&[&roots, &product]);
                Ok(Zeroizing::new(roots.pow(exponent.as_words()).to_digits()))
            }
            HalfNoise::Powers { root, lift, order } => {
                let table = self.table(root, lift, order)?;
                let words = table.exponent_words();
                let mut exponents = uniform(order, count + 1, words)?;
                let (drawn, last) = exponents.split_at_mut(count * words);
                let even_order = order.as_words()[0] & 1 == 0;
                if even_order {
                    match parities {
                        None => {
                            let parity = |exponent: &[u64]| exponent[0] & 1;
                            let all = drawn.chunks_exact(words).map(parity).collect();
                            *parities = Some(Zeroizing::new(all));
                        }
                        Some(parities) => {
                            let drawn = drawn.chunks_exact_mut(words);
                            for (exponent, parity) in drawn.zip(parities.iter()) {
                                exponent[0] = exponent[0] & !1 | parity;
                            }
                        }
                    }
                }
                // The sum modulo the order, plus the order: the same power by other digits.
                let width = order.bits_precision() + 64;
                let mut sum = Zeroizing::new(biguint::resized(&biguint::small(0), width));
                for exponent in drawn.chunks_exact(words) {
                    let term = Zeroizing::new(biguint::from_words(exponent));
                    *sum = sum.wrapping_add(&*term);
                }
                let sum = Zeroizing::new(biguint::reduced(&sum, order));
                let sum = Zeroizing::new(biguint::sum(&sum, order));
                last.copy_from_slice(&Zeroizing::new(biguint::to_words(&sum, words)));
                Ok(Zeroizing::new(table.pow(1, count + 1, &exponents).to_digits()))
            }
        }
    }

    fn table(&self, root: &BoxedUint, lift: &BoxedUint, order: &BoxedUint) -> Result<&Comb> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let root = Residues::from_digits(&self.modulus, 1, 1, &self.digits(root))?;
        let base = root.pow(lift.as_words());
        Ok(self.table.get_or_init(|| Comb::new(&base, order.bits() + 1)))
    }
}

/// Joins residues of two coprime moduli, the first of which is the smaller (Garner's way).
pub(crate) struct Joiner {
    low: BoxedUint,
    high: BoxedUint,
    inverse: Multiplier,
}

impl Drop for Joiner {
    fn drop(&mut self) {
        self.low.zeroize();
        self.high.zeroize();
    }
}

impl Joiner {
    /// Joins modulo `low * high`.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless `low < high` and they are coprime.
    pub(crate) fn new(low: &BoxedUint, high: &BoxedUint) -> Result<Self> {
        let refused = || Error::malformed("a secret key", "the primes are not in order or equal");
        let inverse = biguint::inverse_mod(low, high).filter(|_| low < high).ok_or_else(refused)?;
        let inverse = Zeroizing::new(inverse);
        Ok(Joiner {
            low: biguint::trimmed(low),
            high: biguint::trimmed(high),
            inverse: Multiplier::new(&inverse, high),
        })
    }

    /// The number below `low * high` with these residues.
    pub(crate) fn join(&self, low: &BoxedUint, high: &BoxedUint) -> BoxedUint {
        let words = self.inverse.words();
        let [a, b] = [low, high].map(|value| Zeroizing::new(biguint::to_words(value, words)));
        let difference = Zeroizing::new(biguint::difference_words(&b, &a, self.high.as_words()));
        let steps = Zeroizing::new(biguint::from_words(&self.inverse.multiply(&difference)));
        biguint::product(&self.low, &steps).wrapping_add(low)
    }
}

/// Both halves of a modulus `low^i * high^j`.
pub(crate) struct Crt {
    pub(crate) low: Half,
    pub(crate) high: Half,
    joiner: Joiner,
}

impl Crt {
    /// Both halves, the smaller prime power first.
    pub(crate) fn new(low: Half, high: Half) -> Result<Self> {
        let joiner = Joiner::new(&low.power, &high.power)?;
        Ok(Crt { low, high, joiner })
    }

    /// Noise for a table: what the public key's full exponents would give, from exponents that are
    /// independent modulo the primes but for the parity that both orders share. Checked before it
    /// is handed out.
    ///
    /// # Errors
    /// [`Error::Fault`] when the check fails; [`Error::Randomness`].
    pub(crate) fn noise(&self, group: &Group, rows: usize, columns: usize) -> Result<Residues> {
        self.noise_with(group, rows, columns, |_| {})
    }

    /// The same with a hand on the digits of the second half, where tests put a fault.
    pub(crate) fn noise_with(
        &self,
        group: &Group,
        rows: usize,
        columns: usize,
        touch: impl Fn(&mut [u64]),
    ) -> Result<Residues> {
        let mut parities = None;
        let low = self.low.noise(rows * columns, &mut parities)?;
        let mut high = self.high.noise(rows * columns, &mut parities)?;
        touch(&mut high);
        let digits = self.joined(group, &low, &high);
        let (digits, expected) = digits.split_at(digits.len() - group.modulus().element_words());
        let noise = Residues::from_digits(group.modulus(), rows, columns, digits)?;
        if product_of_all(noise.clone()).to_digits() == expected {
            Ok(noise)
        } else {
            Err(Error::Fault)
        }
    }

    /// Base-`n` digits of the elements whose base-prime digits are given.
    fn joined(&self, group: &Group, low: &[u64], high: &[u64]) -> Zeroizing<Vec<u64>> {
        let (low_size, high_size) =
            (self.low.modulus.element_words(), self.high.modulus.element_words());
        let size = group.modulus().element_words();
        let mut out = Zeroizing::new(vec![0; low.len() / low_size * size]);
        out.par_chunks_exact_mut(size)
            .zip(low.par_chunks_exact(low_size).zip(high.par_chunks_exact(high_size)))
            .for_each(|(out, (low, high))| {
                let low = Zeroizing::new(self.low.value(low));
                let high = Zeroizing::new(self.high.value(high));
                let value = Zeroizing::new(self.joiner.join(&low, &high));
                let (count, words) = (group.modulus().digits(), group.modulus().words());
                out.copy_from_slice(&biguint::digits(&value, group.n(), count, words));
            });
        out
    }
}
