//! Keys of schemes 1 and 3 that encrypt small messages with chosen values computed ahead. Owner
//! only.
//!
//! As Ryšavá & Ricci measured them in 2022, every precomputation on or off by itself, for remaking
//! their tables.
//!
//! Everything runs on plain long integers, one exponentiation after the other, as in their program:
//! [`super::generate`] makes the keys to use. Two things differ. A precomputed noise is of full
//! entropy and serves once, where the paper draws `r` from 1..100, which a hundred divisions open;
//! and the `alpha` of scheme 3 is the product of two primes.

use super::Noise;
use crate::biguint;
use crate::error::{Error, Result};
use crate::factoring::crt::Joiner;
use crate::factoring::inner::check_bits;
use crate::factoring::secret_primes::{Primes, check_primes, generate_primes, subgroup_root};
use crate::primes;
use crypto_bigint::BoxedUint;
use zeroize::{Zeroize, Zeroizing};

/// Which values are computed ahead (the paper's Table II, line by line).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrecomputeOptions {
    /// `g^m` for the messages that [`PrecomputeKey::prepare`] is given.
    pub message_table: bool,
    /// `r^n`, or `(g^n)^r` in scheme 3, each for one encryption.
    pub noise_pool: bool,
    /// `mu`, the inverse that decryption ends with.
    pub mu: bool,
    /// `n^2`.
    pub n_squared: bool,
    /// `g^n`, in scheme 3.
    pub g_n: bool,
}

/// A key of scheme 1 or 3 with some values computed ahead. Wiped on drop.
pub struct PrecomputeKey {
    n: BoxedUint,
    g: BoxedUint,
    /// `lambda` in scheme 1, `alpha` in scheme 3.
    exponent: BoxedUint,
    /// Bits of `r` in scheme 3.
    noise_bits: Option<u32>,
    messages: Vec<(u64, BoxedUint)>,
    noises: Option<Vec<BoxedUint>>,
    mu: Option<BoxedUint>,
    n_squared: Option<BoxedUint>,
    g_n: Option<BoxedUint>,
}

impl Drop for PrecomputeKey {
    fn drop(&mut self) {
        self.exponent.zeroize();
        self.mu.zeroize();
        self.noises.iter_mut().flatten().for_each(Zeroize::zeroize);
        self.messages.iter_mut().for_each(|(_, power)| power.zeroize());
    }
}

impl core::fmt::Debug for PrecomputeKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PrecomputeKey({} bits, redacted)", self.n.bits())
    }
}

impl PrecomputeKey {
    /// A fresh key of scheme 1 ([`Noise::Uniform`]) or scheme 3 ([`Noise::Subgroup`]) with nothing
    /// computed ahead.
    ///
    /// # Errors
    /// [`Error::Range`] for another noise, and for a length that [`super::generate`] refuses,
    /// unless `insecure`; [`Error::Randomness`].
    pub fn generate(bits: u32, noise: Noise, insecure: bool) -> Result<Self> {
        check_bits(bits, insecure)?;
        if noise == Noise::ShortExponent {
            return Err(Error::Range {
                what: "the noise",
                expected: "that of scheme 1 or 3".to_owned(),
                actual: format!("{noise:?}"),
            });
        }
        Self::assembled(&generate_primes(bits, noise == Noise::Subgroup)?)
    }

    /// The key of scheme 1 with these primes, big-endian and of any length: for worked examples.
    ///
    /// # Errors
    /// [`Error::Malformed`] for primes that cannot make a key.
    pub fn insecure_from_primes(p: &[u8], q: &[u8]) -> Result<Self> {
        let primes = Primes::new(biguint::from_big_endian(p), biguint::from_big_endian(q), None);
        check_primes(&primes, biguint::product(&primes.p, &primes.q).bits(), false)?;
        Self::assembled(&primes)
    }

    fn assembled(primes: &Primes) -> Result<Self> {
        let (p, q) = (&primes.p, &primes.q);
        let one = biguint::small(1);
        let n = biguint::trimmed(&biguint::product(p, q));
        let squared = biguint::product(&n, &n);
        let generator = biguint::sum(&n, &one);
        let (g, exponent) = match &primes.orders {
            None => {
                let (p1, q1) = (p.wrapping_sub(&one), q.wrapping_sub(&one));
                let shared = biguint::gcd(&p1, &q1);
                (generator, biguint::divided(&biguint::product(&p1, &q1), &shared).0)
            }
            Some([order_p, order_q]) => {
                // Of order n times of order alpha: of order n alpha.
                let roots = [subgroup_root(p, order_p)?, subgroup_root(q, order_q)?];
                let h = Joiner::new(p, q)?.join(&roots[0], &roots[1]);
                let h = biguint::power_mod(&h, &n, &squared);
                let g = biguint::product_mod(&h, &generator, &squared);
                (g, biguint::product(order_p, order_q))
            }
        };
        let noise_bits = primes.orders.as_ref().map(|_| exponent.bits() + 128);
        let exponent = biguint::trimmed(&exponent);
        Ok(PrecomputeKey {
            n,
            g,
            exponent,
            noise_bits,
            messages: Vec::new(),
            noises: None,
            mu: None,
            n_squared: None,
            g_n: None,
        })
    }

    /// Computes ahead what `options` name, and drops everything else: powers of `messages`, and
    /// `noises` noises.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn prepare(
        &mut self,
        options: PrecomputeOptions,
        messages: &[u64],
        noises: usize,
    ) -> Result<()> {
        self.n_squared = options.n_squared.then(|| biguint::product(&self.n, &self.n));
        self.g_n = options.g_n.then(|| self.power_of_g());
        self.mu = None;
        self.mu = options.mu.then(|| self.inverse()).transpose()?;
        self.noises = None;
        if options.noise_pool {
            let drawn: Result<Vec<_>> = (0..noises).map(|_| self.draw()).collect();
            self.noises = Some(drawn?);
        }
        self.messages.clear();
        if options.message_table {
            let power =
                |&m: &u64| (m, biguint::power_mod(&self.g, &biguint::small(m), &self.squared()));
            self.messages = messages.iter().map(power).collect();
        }
        Ok(())
    }

    /// Encrypts one message; the ciphertext is big-endian.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when the noises computed ahead are used up; [`Error::Randomness`].
    pub fn encrypt(&mut self, message: u64) -> Result<Vec<u8>> {
        let noise = match &mut self.noises {
            Some(noises) => noises.pop().ok_or(Error::Exhausted { asked: 1, left: 0 })?,
            None => self.draw()?,
        };
        Ok(self.encrypt_with(message, &Zeroizing::new(noise)))
    }

    /// Encrypts one message with noise `r^n` for a given `r`, big-endian: for worked examples.
    pub fn insecure_encrypt_with_root(&self, message: u64, root: &[u8]) -> Vec<u8> {
        let root = biguint::from_big_endian(root);
        self.encrypt_with(message, &biguint::power_mod(&root, &self.n, &self.squared()))
    }

    fn encrypt_with(&self, message: u64, noise: &BoxedUint) -> Vec<u8> {
        let squared = self.squared();
        let computed;
        let power = match self.messages.iter().find(|(known, _)| *known == message) {
            Some((_, power)) => power,
            None => {
                computed = biguint::power_mod(&self.g, &biguint::small(message), &squared);
                &computed
            }
        };
        biguint::to_big_endian(&biguint::product_mod(power, noise, &squared))
    }

    /// Decrypts one ciphertext, big-endian.
    ///
    /// # Errors
    /// [`Error::Malformed`] for one of `n^2` or more, or one that shares a factor with `n`;
    /// [`Error::Bound`] for a message that is no 64-bit number.
    pub fn decrypt(&self, ciphertext: &[u8]) -> Result<u64> {
        let c = biguint::from_big_endian(ciphertext);
        if c >= self.squared()
            || !biguint::is_one(&biguint::gcd(&self.n, &biguint::reduced(&c, &self.n)))
        {
            return Err(Error::malformed("a ciphertext", "a unit modulo n^2 expected"));
        }
        let logarithm = self.logarithm(&c);
        let message = match &self.mu {
            Some(mu) => biguint::product_mod(&logarithm, mu, &self.n),
            None => biguint::product_mod(&logarithm, &self.inverse()?, &self.n),
        };
        if message.bits() > 64 {
            return Err(Error::Bound);
        }
        Ok(message.as_words()[0])
    }

    fn squared(&self) -> BoxedUint {
        self.n_squared.clone().unwrap_or_else(|| biguint::product(&self.n, &self.n))
    }

    fn power_of_g(&self) -> BoxedUint {
        biguint::power_mod(&self.g, &self.n, &self.squared())
    }

    fn draw(&self) -> Result<BoxedUint> {
        match self.noise_bits {
            None => {
                let root = Zeroizing::new(primes::random_below(&self.n)?);
                Ok(biguint::power_mod(&root, &self.n, &self.squared()))
            }
            Some(bits) => {
                let exponent = Zeroizing::new(primes::random_bits(bits)?);
                let base = self.g_n.clone().unwrap_or_else(|| self.power_of_g());
                Ok(biguint::power_mod(&base, &exponent, &self.squared()))
            }
        }
    }

    /// `(x^exponent mod n^2 - 1) / n`.
    fn logarithm(&self, x: &BoxedUint) -> BoxedUint {
        let power = biguint::power_mod(x, &self.exponent, &self.squared());
        biguint::divided(&power.wrapping_sub(biguint::small(1)), &self.n).0
    }

    /// `mu`.
    fn inverse(&self) -> Result<BoxedUint> {
        biguint::inverse_mod(&self.logarithm(&self.g), &self.n)
            .ok_or_else(|| Error::malformed("a secret key", "the order of g misses n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_comes_out() {
        // vectors/SOURCES.md: n = 293 * 433, message 10100, r = 74384.
        let key = PrecomputeKey::insecure_from_primes(&[1, 37], &[1, 177]).unwrap();
        let c = key.insecure_encrypt_with_root(10_100, &74_384u32.to_be_bytes());
        assert_eq!(c, 935_906_717u32.to_be_bytes());
        assert_eq!(key.decrypt(&c).unwrap(), 10_100);
        assert_eq!(key.insecure_encrypt_with_root(1, &[1]), 126_870u32.to_be_bytes()[1..]);
    }

    #[test]
    fn every_choice_decrypts_to_the_same() {
        for noise in [Noise::Uniform, Noise::Subgroup] {
            let mut key = PrecomputeKey::generate(512, noise, true).unwrap();
            for choice in 0..32u32 {
                let on = |bit: u32| choice >> bit & 1 == 1;
                let options = PrecomputeOptions {
                    message_table: on(0),
                    noise_pool: on(1),
                    mu: on(2),
                    n_squared: on(3),
                    g_n: on(4),
                };
                key.prepare(options, &[7, 99], 3).unwrap();
                for message in [7, 99, 3] {
                    let c = key.encrypt(message).unwrap();
                    assert_eq!(key.decrypt(&c).unwrap(), message);
                }
                let fourth = key.encrypt(7);
                assert_eq!(matches!(fourth, Err(Error::Exhausted { .. })), options.noise_pool);
            }
        }
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(PrecomputeKey::generate(512, Noise::ShortExponent, true).is_err());
        assert!(PrecomputeKey::generate(512, Noise::Uniform, false).is_err());
        assert!(PrecomputeKey::insecure_from_primes(&[1, 37], &[1, 38]).is_err());
        let key = PrecomputeKey::insecure_from_primes(&[1, 37], &[1, 177]).unwrap();
        for bad in [&[1u8, 37][..], &[0], &[255; 8]] {
            assert!(matches!(key.decrypt(bad), Err(Error::Malformed { .. })));
        }
    }
}
