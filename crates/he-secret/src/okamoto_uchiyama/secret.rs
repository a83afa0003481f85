//! Secret key of Okamoto–Uchiyama. Owner only; wiped on drop.

use crate::additive::{Decrypt, Evaluate, Messages};
use crate::biguint;
use crate::error::{Error, Result};
use crate::factoring::crt::{Crt, Half, HalfNoise, Joiner};
use crate::factoring::inner::{check_bits, residue};
use crate::factoring::multiplier::Multiplier;
use crate::factoring::{Ciphertexts, Group, NoiseSource, signed};
use crate::primes;
use crate::wire::{self, Kind, Reader};
use ciphervec_arith::montgomery::Residues;
use ciphervec_he::okamoto_uchiyama::inner::prime_bits;
use ciphervec_he::okamoto_uchiyama::{Noise, PublicKey};
use crypto_bigint::BoxedUint;
use zeroize::{Zeroize, Zeroizing};

const WHAT: &str = "a secret key";

/// Decrypts, and encrypts faster than the public key can. Wiped on drop.
pub struct SecretKey {
    public: PublicKey,
    p: BoxedUint,
    q: BoxedUint,
    /// `q` and `p^2`.
    crt: Crt,
    /// Multiplies by the inverse of the logarithm of `g` modulo `p`.
    scale: Multiplier,
    /// Multiplies modulo `n` by the `e` with `1 + e = g` modulo `p^2` but for noise, and `e = 0`
    /// modulo `q`.
    generator: Multiplier,
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.p.zeroize();
        self.q.zeroize();
    }
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SecretKey({:?}, redacted)", self.public)
    }
}

impl SecretKey {
    pub(crate) fn generate(bits: u32, noise: Noise, insecure: bool) -> Result<Self> {
        check_bits(bits, insecure)?;
        loop {
            let p = primes::random_prime(prime_bits(bits), |_| true)?;
            let q = primes::random_prime(bits - 2 * prime_bits(bits), |_| true)?;
            if check_primes(&p, &q, bits, false).is_err() {
                continue;
            }
            let n = modulus(&p, &q);
            let g = primes::random_below(&n)?;
            if logarithm(&g, &p).is_some() && biguint::is_one(&biguint::gcd(&n, &g)) {
                return Self::assembled(p, q, noise, &g);
            }
        }
    }

    fn assembled(p: BoxedUint, q: BoxedUint, noise: Noise, g: &BoxedUint) -> Result<Self> {
        let n = modulus(&p, &q);
        let public = PublicKey::assembled(&n, noise, g)?;
        let log = logarithm(g, &p)
            .ok_or_else(|| Error::malformed(WHAT, "the order of the generator misses p"))?;
        let log = Zeroizing::new(log);
        let inverse = biguint::inverse_mod(&log, &p)
            .ok_or_else(|| Error::malformed(WHAT, "the order of the generator misses p"))?;
        let inverse = Zeroizing::new(inverse);
        let one = biguint::small(1);
        let root = biguint::power_mod(g, &n, &n);
        let noise = |prime: &BoxedUint| HalfNoise::Powers {
            root: root.clone(),
            lift: biguint::small(1),
            order: prime.wrapping_sub(&one),
        };
        let crt = Crt::new(Half::new(&q, 1, noise(&q))?, Half::new(&p, 2, noise(&p))?)?;
        // g = w (1 + p l) with w of an order that divides p - 1, and g^(p - 1) = 1 - p l modulo
        // p^2.
        let l = Zeroizing::new(biguint::difference_mod(&biguint::small(0), &log, &p));
        let high = Zeroizing::new(biguint::product(&p, &l));
        let join = Joiner::new(&crt.low.power, &crt.high.power)?;
        let e = Zeroizing::new(join.join(&biguint::small(0), &high));
        Ok(SecretKey {
            scale: Multiplier::new(&inverse, &p),
            generator: Multiplier::new(&e, &n),
            public,
            p,
            q,
            crt,
        })
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
        let width = prime_bits(public.bits()).div_ceil(8) as usize;
        let p = biguint::from_bytes(reader.take(width)?);
        let q = biguint::from_bytes(reader.take(width)?);
        reader.finish()?;
        public.group().check_header(WHAT, &header)?;
        check_primes(&p, &q, public.bits(), true)?;
        if modulus(&p, &q) != *public.group().n() {
            return Err(Error::malformed(WHAT, "the primes do not make the modulus"));
        }
        Self::assembled(p, q, public.noise_kind(), public.g())
    }

    /// The key, framed and **not encrypted**: for a key file that encrypts it.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut payload = Zeroizing::new(self.public.payload());
        let width = prime_bits(self.public.bits()).div_ceil(8) as usize;
        for prime in [&self.p, &self.q] {
            biguint::write_bytes(prime.as_words(), width, &mut payload);
        }
        Zeroizing::new(self.public.group().header(Kind::SecretKey).frame(&payload))
    }

    /// What the key rests on.
    pub fn security(&self) -> crate::additive::SecurityStatement {
        self.public.security()
    }

    /// The messages modulo `p`, and whether all could be ciphertexts of this key.
    fn residues(&self, table: &Ciphertexts) -> Result<(Vec<Zeroizing<BoxedUint>>, bool)> {
        let group = self.public.group();
        let half = &self.crt.high;
        let digits: Vec<u64> = table
            .residues()
            .to_digits()
            .chunks_exact(group.modulus().words())
            .flat_map(|c| half.digits(&biguint::from_words(c)))
            .collect();
        let digits = Zeroizing::new(digits);
        let count = digits.len() / half.modulus.element_words();
        let exponent = Zeroizing::new(self.p.wrapping_sub(biguint::small(1)));
        let powers = Residues::from_digits(&half.modulus, 1, count, &digits)?;
        let powers = Zeroizing::new(powers.pow(exponent.as_words()).to_digits());
        let words = half.modulus.words();
        let mut sound = true;
        let messages = powers
            .chunks_exact(2 * words)
            .map(|power| {
                // 1 + p L: the second digit is what (x - 1) / p is in the paper.
                let (lowest, log) = power.split_at(words);
                sound &= lowest[0] == 1 && lowest[1..].iter().fold(0, |or, word| or | word) == 0;
                Zeroizing::new(biguint::from_words(&self.scale.multiply(log)))
            })
            .collect();
        Ok((messages, sound))
    }

    /// Decryption as it would be without its bound: the message modulo `p`, big-endian.
    #[cfg(feature = "hazmat")]
    pub fn hazmat_decrypt_unchecked(&self, table: &Ciphertexts) -> Result<Vec<u8>> {
        Ok(biguint::to_big_endian(&self.residues(table)?.0[0]))
    }

    /// Noise of the owner with a fault in the second half.
    ///
    /// # Errors
    /// [`Error::Fault`].
    #[cfg(feature = "hazmat")]
    pub fn hazmat_noise_faulty(&self, columns: usize) -> Result<()> {
        self.crt.noise_with(self.public.group(), 1, columns, |digits| digits[0] ^= 1).map(drop)
    }
}

/// `p^2 q`.
fn modulus(p: &BoxedUint, q: &BoxedUint) -> BoxedUint {
    biguint::trimmed(&biguint::product(&biguint::product(p, p), q))
}

/// `(g^(p - 1) mod p^2 - 1) / p`, or `None` where that is zero or `g` shares a factor with `p`.
fn logarithm(g: &BoxedUint, p: &BoxedUint) -> Option<BoxedUint> {
    let one = biguint::small(1);
    let power = biguint::power_mod(g, &p.wrapping_sub(&one), &biguint::product(p, p));
    let (quotient, rest) = biguint::divided(&power, p);
    let log = biguint::resized(&quotient, p.bits_precision());
    (biguint::is_one(&rest) && bool::from(log.is_nonzero())).then_some(log)
}

/// Refuses primes that cannot make a key of `bits` bits.
fn check_primes(p: &BoxedUint, q: &BoxedUint, bits: u32, primality: bool) -> Result<()> {
    let refuse = |detail: &str| Err(Error::malformed(WHAT, detail));
    if p.bits() != prime_bits(bits) || modulus(p, q).bits() != bits || q.bits() + 4 < p.bits() {
        return refuse("the primes make a modulus of another length");
    }
    if primality && !(primes::is_prime(p) && primes::is_prime(q)) {
        return refuse("a prime is not prime");
    }
    if p.as_words()[0] & 3 != 3 || q.as_words()[0] & 3 != 3 {
        return refuse("a prime is not 3 modulo 4");
    }
    let one = biguint::small(1);
    let (p1, q1) = (p.wrapping_sub(&one), q.wrapping_sub(&one));
    if biguint::gcd(&p1, &q1) != biguint::small(2) {
        return refuse("the primes less one share more than 2");
    }
    if !biguint::is_one(&biguint::gcd(&modulus(p, q), &biguint::product(&p1, &q1))) || p == q {
        return refuse("a prime divides the other less one");
    }
    Ok(())
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

    /// `g^m` differs from `1 + m e` by noise, which uniform exponents swallow: one multiplication
    /// in place of a power.
    fn encrypt(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Ciphertexts> {
        let bits = Evaluate::message_bits(&self.public);
        Group::check_messages(rows, columns, messages, bits)?;
        let group = self.public.group();
        let words = group.modulus().words();
        let mut digits = Zeroizing::new(vec![0; words * messages.len()]);
        for (at, element) in digits.chunks_exact_mut(words).enumerate() {
            let m = residue(messages.row(at), group.n().as_words());
            element.copy_from_slice(&self.generator.multiply(&m));
            // A multiple of q is not n - 1, so one more stays below n.
            let mut carry = 1;
            for word in element {
                let (sum, more) = word.overflowing_add(carry);
                (*word, carry) = (sum, u64::from(more));
            }
        }
        let mut residues = Residues::from_digits(group.modulus(), rows, columns, &digits)?;
        residues.mul_assign(&self.noise(rows, columns)?);
        Ok(group.table(residues))
    }

    fn decrypt(&self, table: &Ciphertexts, bits: u32) -> Result<Messages> {
        self.public.group().check(table)?;
        let most = Evaluate::message_bits(&self.public);
        if !(1..=most).contains(&bits) {
            return Err(Error::Range {
                what: "the bits of a message",
                expected: format!("1 to {most}"),
                actual: bits.to_string(),
            });
        }
        let (messages, sound) = self.residues(table)?;
        if !sound {
            return Err(Error::Bound);
        }
        signed(&messages, &self.p, bits)
    }
}
