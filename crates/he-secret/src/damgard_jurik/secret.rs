//! Secret key of Damgård–Jurik and Paillier. Owner only; wiped on drop.

use crate::additive::{Decrypt, Evaluate, Messages};
use crate::biguint;
use crate::error::{Error, Result};
use crate::factoring::crt::{Crt, Half, HalfNoise, Joiner};
use crate::factoring::multiplier::Multiplier;
use crate::factoring::secret_primes::{Primes, check_primes, generate_primes, subgroup_root};
use crate::factoring::{Ciphertexts, FactoringKey, Group, NoiseSource, signed};
use crate::primes;
use crate::wire::{self, Kind, Reader};
use ciphervec_arith::montgomery::Residues;
use ciphervec_he::damgard_jurik::inner::check_lengths;
use ciphervec_he::damgard_jurik::{Noise, PublicKey};
use crypto_bigint::BoxedUint;
use zeroize::{Zeroize, Zeroizing};

const WHAT: &str = "a secret key";
/// Bits by which a plaintext space exceeds a bound that is to reveal what was computed wrong.
const MARGIN: u32 = 66;

/// Decrypts, and encrypts faster than the public key can. Wiped on drop.
pub struct SecretKey {
    public: PublicKey,
    primes: Primes,
    crt: Crt,
    low: Decryption,
    high: Decryption,
    joiner: Joiner,
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SecretKey({:?}, redacted)", self.public)
    }
}

/// What decryption modulo a power of one prime needs.
struct Decryption {
    /// The order of the noise modulo the prime.
    exponent: BoxedUint,
    prime: BoxedUint,
    /// `prime^s`.
    power: BoxedUint,
    s: usize,
    /// Inverses of 2 and 3 modulo `prime^s`.
    halves: [BoxedUint; 2],
    /// Multiplies by the inverse of the logarithm of `(1 + n)^exponent`.
    scale: Multiplier,
}

impl Drop for Decryption {
    fn drop(&mut self) {
        self.exponent.zeroize();
        self.prime.zeroize();
        self.power.zeroize();
        self.halves.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Decryption {
    fn new(prime: &BoxedUint, other: &BoxedUint, exponent: &BoxedUint, s: u32) -> Result<Self> {
        let power = biguint::raised(prime, s);
        let inverse = |value: &BoxedUint| {
            biguint::inverse_mod(value, &power)
                .ok_or_else(|| Error::malformed(WHAT, "the primes divide each other's order"))
        };
        let mut decryption = Decryption {
            exponent: biguint::trimmed(exponent),
            prime: biguint::trimmed(prime),
            s: s as usize,
            halves: [inverse(&biguint::small(2))?, inverse(&biguint::small(3))?],
            scale: Multiplier::new(&biguint::small(1), &power),
            power: power.clone(),
        };
        // 1 + n = 1 + prime * other.
        let logarithm = decryption.logarithm(&biguint::reduced(other, &power));
        let scale = biguint::product_mod(&logarithm, exponent, &power);
        decryption.scale = Multiplier::new(&inverse(&scale)?, &power);
        Ok(decryption)
    }

    /// The logarithm of `1 + prime x` divided by the prime, modulo `prime^s`:
    /// `x - p x^2 / 2 + p^2 x^3 / 3`.
    fn logarithm(&self, x: &BoxedUint) -> BoxedUint {
        let mut sum = biguint::resized(x, self.power.bits_precision());
        let mut power = sum.clone();
        for (step, inverse) in self.halves.iter().enumerate().take(self.s - 1) {
            power = biguint::product_mod(&power, x, &self.power);
            power = biguint::product_mod(&power, &self.prime, &self.power);
            let term = biguint::product_mod(&power, inverse, &self.power);
            sum = if step % 2 == 0 {
                biguint::difference_mod(&sum, &term, &self.power)
            } else {
                biguint::reduced(&biguint::sum(&sum, &term), &self.power)
            };
        }
        power.zeroize();
        sum
    }

    /// The messages of `ciphertexts` modulo `prime^s`, and whether all of them could be ciphertexts
    /// of this key.
    fn decrypt(
        &self,
        half: &Half,
        ciphertexts: &[BoxedUint],
        touch: &(dyn Fn(&mut [u64]) + Sync),
    ) -> Result<(Vec<Zeroizing<BoxedUint>>, bool)> {
        let digits: Vec<u64> = ciphertexts.iter().flat_map(|c| half.digits(c)).collect();
        let digits = Zeroizing::new(digits);
        let residues = Residues::from_digits(&half.modulus, 1, ciphertexts.len(), &digits)?;
        let mut powers = Zeroizing::new(residues.pow(self.exponent.as_words()).to_digits());
        touch(&mut powers);
        let words = half.modulus.words();
        let mut sound = true;
        let messages = powers
            .chunks_exact(half.modulus.element_words())
            .map(|power| {
                // Without noise a power is 1 modulo the prime.
                let (lowest, rest) = power.split_at(words);
                sound &= lowest[0] == 1 && lowest[1..].iter().fold(0, |or, word| or | word) == 0;
                let x = Zeroizing::new(half.value(rest));
                let logarithm = Zeroizing::new(self.logarithm(&x));
                let logarithm = Zeroizing::new(biguint::to_words(&logarithm, self.scale.words()));
                Zeroizing::new(biguint::from_words(&self.scale.multiply(&logarithm)))
            })
            .collect();
        Ok((messages, sound))
    }
}

impl SecretKey {
    pub(crate) fn generate(bits: u32, s: u32, noise: Noise, insecure: bool) -> Result<Self> {
        check_lengths(bits, s, insecure)?;
        let primes = generate_primes(bits, noise == Noise::Subgroup)?;
        let n = biguint::product(&primes.p, &primes.q);
        let h = match (noise, &primes.orders) {
            (Noise::ShortExponent, _) => {
                let x = primes::random_below(&n)?;
                n.wrapping_sub(biguint::product_mod(&x, &x, &n))
            }
            (_, Some([order_p, order_q])) => {
                let low = subgroup_root(&primes.p, order_p)?;
                let high = subgroup_root(&primes.q, order_q)?;
                Joiner::new(&primes.p, &primes.q)?.join(&low, &high)
            }
            _ => biguint::small(0),
        };
        Self::assembled(primes, s, noise, &h)
    }

    /// The key of another library, from its two primes, big-endian; noise is uniform and `s` is 1.
    ///
    /// # Errors
    /// [`Error::Range`] for a length that [`crate::paillier::generate`] refuses too, unless
    /// `insecure`; [`Error::Malformed`] for primes that cannot make a key.
    pub fn from_primes(p: &[u8], q: &[u8], insecure: bool) -> Result<Self> {
        let primes = Primes::new(biguint::from_big_endian(p), biguint::from_big_endian(q), None);
        let bits = biguint::product(&primes.p, &primes.q).bits_vartime();
        check_lengths(bits, 1, insecure)?;
        check_primes(&primes, bits, false)?;
        Self::assembled(primes, 1, Noise::Uniform, &biguint::small(0))
    }

    fn assembled(primes: Primes, s: u32, noise: Noise, h: &BoxedUint) -> Result<Self> {
        let n = biguint::product(&primes.p, &primes.q);
        let public = PublicKey::assembled(&n, s, noise, h)?;
        let one = biguint::small(1);
        let exponent = |prime: &BoxedUint, at: usize| match &primes.orders {
            Some(orders) => orders[at].clone(),
            None => prime.wrapping_sub(&one),
        };
        let half = |prime: &BoxedUint, other: &BoxedUint, at: usize| {
            let own = biguint::raised(prime, s);
            let noise = match noise {
                Noise::Uniform => HalfNoise::Uniform(own),
                _ => {
                    // h^(n^s): the prime's own power reaches the subgroup, the other's only
                    // permutes it.
                    let order = exponent(prime, at);
                    let rest = biguint::power_small(other, s, &order);
                    HalfNoise::Powers {
                        root: public.base().clone(),
                        lift: biguint::product(&own, &rest),
                        order,
                    }
                }
            };
            Half::new(prime, s as usize + 1, noise)
        };
        let (p, q) = (&primes.p, &primes.q);
        let crt = Crt::new(half(p, q, 0)?, half(q, p, 1)?)?;
        let low = Decryption::new(p, q, &exponent(p, 0), s)?;
        let high = Decryption::new(q, p, &exponent(q, 1), s)?;
        let joiner = Joiner::new(&low.power, &high.power)?;
        Ok(SecretKey { public, primes, crt, low, high, joiner })
    }

    /// Reads a key, checking everything.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`]; [`Error::Range`] for an
    /// `insecure_` key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes, false)
    }

    /// The same for keys of any length.
    ///
    /// # Errors
    /// As [`Self::from_bytes`].
    pub fn insecure_from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes, true)
    }

    fn read(bytes: &[u8], insecure: bool) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SecretKey, bytes)?;
        let mut reader = Reader::new(WHAT, payload);
        let public = PublicKey::read_payload(&mut reader, insecure)?;
        let primes =
            Primes::read(&mut reader, public.bits(), public.noise_kind() == Noise::Subgroup)?;
        reader.finish()?;
        public.group().check_header(WHAT, &header)?;
        let noise = public.noise_kind();
        check_primes(&primes, public.bits(), noise != Noise::Uniform)?;
        if biguint::product(&primes.p, &primes.q) != *public.group().n() {
            return Err(Error::malformed(WHAT, "the primes do not make the modulus"));
        }
        if let Some(orders) = &primes.orders {
            for (prime, order) in [&primes.p, &primes.q].into_iter().zip(orders) {
                if !biguint::is_one(&biguint::power_mod(public.base(), order, prime)) {
                    return Err(Error::malformed(WHAT, "the base of the noise has another order"));
                }
            }
        }
        Self::assembled(primes, public.s(), noise, public.base())
    }

    /// The key, framed and **not encrypted**: for a key file that encrypts it.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut payload = Zeroizing::new(self.public.payload());
        self.primes.write(self.public.bits(), &mut payload);
        Zeroizing::new(self.public.group().header(Kind::SecretKey).frame(&payload))
    }

    /// What the key rests on.
    pub fn security(&self) -> crate::additive::SecurityStatement {
        self.public.security()
    }

    /// The messages modulo `n^s`, or modulo the smaller prime's power where `bits` leaves it room
    /// to reveal an error.
    fn decrypt_with(
        &self,
        table: &Ciphertexts,
        bits: u32,
        touch: &(dyn Fn(&mut [u64]) + Sync),
    ) -> Result<(Vec<Zeroizing<BoxedUint>>, &BoxedUint)> {
        let group = self.public.group();
        group.check(table)?;
        let most = FactoringKey::message_bits(&self.public);
        if !(1..=most).contains(&bits) {
            return Err(Error::Range {
                what: "the bits of a message",
                expected: format!("1 to {most}"),
                actual: bits.to_string(),
            });
        }
        let mut values = self.integers(&table.residues().to_digits());
        if bits + MARGIN <= self.low.power.bits() {
            let (messages, sound) = self.low.decrypt(&self.crt.low, &values, touch)?;
            return if sound { Ok((messages, &self.low.power)) } else { Err(Error::Bound) };
        }
        let limit = self.public.limit();
        // A message that fills its space leaves no room to see an error, so one more ciphertext
        // checks the others.
        let check = (bits + MARGIN > limit.bits()).then(|| self.combination(table)).transpose()?;
        if let Some(check) = &check {
            values.extend(self.integers(&check.ciphertext.residues().to_digits()));
        }
        let (low, high) = rayon::join(
            || self.low.decrypt(&self.crt.low, &values, &|_| {}),
            || self.high.decrypt(&self.crt.high, &values, touch),
        );
        let ((low, low_sound), (high, high_sound)) = (low?, high?);
        let mut messages: Vec<_> = low
            .iter()
            .zip(&high)
            .map(|(low, high)| Zeroizing::new(self.joiner.join(low, high)))
            .collect();
        if !(low_sound && high_sound) {
            return Err(Error::Bound);
        }
        if let Some(check) = check
            && !messages.pop().is_some_and(|found| check.holds(&messages, &found, limit))
        {
            return Err(Error::Fault);
        }
        Ok((messages, limit))
    }

    fn integers(&self, digits: &[u64]) -> Vec<BoxedUint> {
        let group = self.public.group();
        let size = group.modulus().element_words();
        let integer = |digits| biguint::joined(digits, group.n(), group.modulus().words());
        digits.chunks_exact(size).map(integer).collect()
    }

    /// A random combination of all ciphertexts, with a random message added.
    fn combination(&self, table: &Ciphertexts) -> Result<Combination> {
        let group = self.public.group();
        let digits = table.residues().to_digits();
        let count = digits.len() / group.modulus().element_words();
        let row = group.table(Residues::from_digits(group.modulus(), 1, count, &digits)?);
        let mut random = vec![0u8; 8 * (count + 1)];
        crate::random::fill(&mut random)?;
        // Shifted by one, so that a weight's absolute value fits too.
        let mut weights: Vec<i64> =
            random.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes) >> 1).collect();
        let added = weights.pop().unwrap_or(1);
        let sum = self.public.weighted_sum_along_vartime(&row, &weights)?;
        let ciphertext = self.public.add_plain(&sum, &Messages::from_i64(&[added]))?;
        Ok(Combination { ciphertext, weights, added })
    }

    /// Decryption as it would be without its check, and with a fault in the second half.
    #[cfg(feature = "hazmat")]
    pub fn hazmat_decrypt_unchecked(&self, table: &Ciphertexts) -> Result<Vec<u8>> {
        let values = self.integers(&table.residues().to_digits());
        let (low, _) = self.low.decrypt(&self.crt.low, &values, &|_| {})?;
        let (high, _) = self.high.decrypt(&self.crt.high, &values, &self.fault())?;
        Ok(biguint::to_big_endian(&self.joiner.join(&low[0], &high[0])))
    }

    /// Decryption as it is, with a fault in the second half.
    ///
    /// # Errors
    /// [`Error::Bound`] or [`Error::Fault`].
    #[cfg(feature = "hazmat")]
    pub fn hazmat_decrypt_faulty(&self, table: &Ciphertexts, bits: u32) -> Result<Messages> {
        let (messages, modulus) = self.decrypt_with(table, bits, &self.fault())?;
        signed(&messages, modulus, bits)
    }

    /// Changes the highest digit of the first element.
    #[cfg(feature = "hazmat")]
    fn fault(&self) -> impl Fn(&mut [u64]) + use<> {
        let size = self.crt.high.modulus.element_words();
        move |digits| digits[size - 2] ^= 1
    }

    /// Noise of the owner with a fault in the second half.
    ///
    /// # Errors
    /// [`Error::Fault`].
    #[cfg(feature = "hazmat")]
    pub fn hazmat_noise_faulty(&self, columns: usize) -> Result<()> {
        self.crt.noise_with(self.public.group(), 1, columns, self.fault()).map(drop)
    }
}

/// A ciphertext whose message is known to be a combination of others.
struct Combination {
    ciphertext: Ciphertexts,
    weights: Vec<i64>,
    added: i64,
}

impl Combination {
    fn holds(
        &self,
        messages: &[Zeroizing<BoxedUint>],
        found: &BoxedUint,
        modulus: &BoxedUint,
    ) -> bool {
        let residue = |weight: i64| {
            biguint::from_words(&crate::factoring::inner::residue(
                &[weight as u64],
                modulus.as_words(),
            ))
        };
        let sum = messages.iter().zip(&self.weights).fold(
            Zeroizing::new(residue(self.added)),
            |sum, (message, &weight)| {
                let term = Zeroizing::new(biguint::product(message, &residue(weight)));
                let sum = Zeroizing::new(biguint::sum(&term, &sum));
                Zeroizing::new(biguint::reduced(&sum, modulus))
            },
        );
        *sum == *found
    }
}

impl NoiseSource for SecretKey {
    fn group(&self) -> &Group {
        self.public.group()
    }

    fn noise(&self, rows: usize, columns: usize) -> Result<Residues> {
        self.crt.noise(self.public.group(), rows, columns)
    }
}

impl Decrypt for SecretKey {
    type Public = PublicKey;

    fn public(&self) -> &PublicKey {
        &self.public
    }

    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Ciphertexts> {
        let mut residues = self.public.encode(rows, columns, messages)?;
        residues.mul_assign(&self.noise(rows, columns)?);
        Ok(self.public.group().table(residues))
    }

    fn decrypt(&self, table: &Ciphertexts, bits: u32) -> Result<Messages> {
        let (messages, modulus) = self.decrypt_with(table, bits, &|_| {})?;
        signed(&messages, modulus, bits)
    }
}
