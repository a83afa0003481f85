//! Public key of Damgård–Jurik and Paillier.

use super::message::Binomial;
use crate::additive::{Messages, SecurityStatement};
use crate::biguint;
use crate::error::{Error, Result};
use crate::factoring::noise::Source;
use crate::factoring::strength;
use crate::factoring::{FactoringKey, Group, NoiseSource};
use crate::primes;
use crate::wire::{self, Kind, Reader, Scheme};
use ciphervec_arith::montgomery::Residues;
use crypto_bigint::BoxedUint;

const WHAT: &str = "a public key";
/// Largest `s`.
pub const MAX_POWER: u32 = 3;

/// How a key draws its noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Noise {
    /// `r^(n^s)` for a uniform `r`: Paillier's scheme 1. Slow without the secret key, and without
    /// assumption beyond the scheme's own.
    Uniform = 0,
    /// `h^(n^s r)` for `h = -x^2` and an `r` half as long as `n`: Damgård, Jurik and Nielsen. The
    /// default.
    ShortExponent = 1,
    /// `h^(n^s r)` for an `h` in a secret subgroup of order `alpha_p alpha_q`, two primes of 256
    /// bits at 128 bits of security: Paillier's scheme 3. `r` is 128 bits longer than the order,
    /// which makes it uniform modulo that.
    Subgroup = 2,
}

impl Noise {
    fn from_byte(byte: u8) -> Option<Self> {
        [Noise::Uniform, Noise::ShortExponent, Noise::Subgroup]
            .into_iter()
            .find(|noise| *noise as u8 == byte)
    }

    fn as_str(self) -> &'static str {
        match self {
            Noise::Uniform => "uniform",
            Noise::ShortExponent => "short exponent",
            Noise::Subgroup => "subgroup",
        }
    }
}

/// Encrypts, adds, multiplies by plain numbers and re-randomises. Ciphertexts are
/// [`crate::factoring::Ciphertexts`].
pub struct PublicKey {
    group: Group,
    noise: Noise,
    /// The base of the noise modulo `n`; zero for uniform noise.
    h: BoxedUint,
    binomial: Binomial,
    source: Source,
}

impl core::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let scheme = self.group.scheme.as_str();
        write!(f, "PublicKey({scheme}, {} bits, s = {}, {})", self.bits(), self.s(), self.group.key)
    }
}

impl PublicKey {
    /// A key whose parts are known to be good.
    #[doc(hidden)]
    pub fn assembled(n: &BoxedUint, s: u32, noise: Noise, h: &BoxedUint) -> Result<Self> {
        let bits = n.bits_vartime();
        let payload = payload(n, s, noise, h);
        let scheme = if s == 1 { Scheme::Paillier } else { Scheme::DamgardJurik };
        let mark = if bits < strength::MIN_BITS { "insecure " } else { "" };
        let description = format!("{mark}{scheme:?} n={bits} s={s} noise={}", noise.as_str());
        let group = Group::new(scheme, &description, n, s as usize + 1, &payload)?;
        let binomial = Binomial::new(&group.n, s)
            .ok_or_else(|| Error::malformed(WHAT, "the modulus is a multiple of 2 or 3"))?;
        let lift = binomial.limit().as_words().to_vec();
        let source = match Self::exponent_bits(bits, noise) {
            None => Source::Uniform(lift),
            Some(exponent_bits) => {
                let digits = biguint::to_words(h, group.modulus.element_words());
                Source::powers(group.element(&digits)?, lift, exponent_bits)
            }
        };
        Ok(PublicKey { group, noise, h: biguint::trimmed(h), binomial, source })
    }

    fn exponent_bits(bits: u32, noise: Noise) -> Option<u32> {
        match noise {
            Noise::Uniform => None,
            Noise::ShortExponent => Some(bits.div_ceil(2)),
            Noise::Subgroup => Some(2 * strength::order_bits(bits) + 128),
        }
    }

    /// The key of another library: a modulus, big-endian; noise is uniform and `s` is 1.
    ///
    /// # Errors
    /// [`Error::Range`] for a length that key generation refuses too, unless
    /// `insecure`; [`Error::Malformed`] for a modulus that is even, prime, a square or has a small
    /// factor.
    pub fn from_modulus(n: &[u8], insecure: bool) -> Result<Self> {
        let n = biguint::from_big_endian(n);
        Self::checked(&n, n.bits_vartime(), 1, Noise::Uniform, &biguint::small(0), insecure)
    }

    /// A key from outside.
    fn checked(
        n: &BoxedUint,
        bits: u32,
        s: u32,
        noise: Noise,
        h: &BoxedUint,
        insecure: bool,
    ) -> Result<Self> {
        check_lengths(bits, s, insecure)?;
        primes::check_modulus(WHAT, n, bits)?;
        if noise != Noise::Uniform {
            let refuse = |detail: &str| Err(Error::malformed(WHAT, detail));
            let one = biguint::small(1);
            if h >= n || *h <= one || *h == n.wrapping_sub(&one) {
                return refuse("the base of the noise is not between 1 and n - 1");
            }
            if !biguint::is_one(&biguint::gcd(n, h)) {
                return refuse("the base of the noise shares a factor with the modulus");
            }
            // -x^2 for two primes that are 3 modulo 4, and a power of any other kind of odd order.
            if biguint::jacobi_vartime(h, n) != 1 {
                return refuse("the base of the noise has the wrong Jacobi symbol");
            }
        }
        Self::assembled(n, s, noise, h)
    }

    /// Reads a key, checking all that can be checked without its secret.
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
        let (header, payload) = wire::open(Kind::PublicKey, bytes)?;
        let mut reader = Reader::new(WHAT, payload);
        let key = Self::read_payload(&mut reader, insecure)?;
        reader.finish()?;
        key.group.check_header(WHAT, &header)?;
        Ok(key)
    }

    #[doc(hidden)]
    pub fn read_payload(reader: &mut Reader<'_>, insecure: bool) -> Result<Self> {
        let byte = reader.u8()?;
        let noise = Noise::from_byte(byte)
            .ok_or_else(|| reader.error(format!("noise 0, 1 or 2 expected, {byte} came")))?;
        let s = u32::from(reader.u8()?);
        let bits = reader.u32()?;
        check_lengths(bits, s, insecure)?;
        let width = bits.div_ceil(8) as usize;
        let n = biguint::from_bytes(reader.take(width)?);
        let h = match noise {
            Noise::Uniform => biguint::small(0),
            _ => biguint::from_bytes(reader.take(width)?),
        };
        Self::checked(&n, bits, s, noise, &h, insecure)
    }

    /// The key, framed.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.group.header(Kind::PublicKey).frame(&self.payload())
    }

    #[doc(hidden)]
    pub fn payload(&self) -> Vec<u8> {
        payload(&self.group.n, self.s(), self.noise, &self.h)
    }

    /// Bits of `n`.
    pub fn bits(&self) -> u32 {
        self.group.bits()
    }

    /// `s`: messages are modulo `n^s`.
    pub fn s(&self) -> u32 {
        self.binomial.s() as u32
    }

    /// What the noise is a power of.
    #[doc(hidden)]
    pub fn base(&self) -> &BoxedUint {
        &self.h
    }

    /// `n^s`, which messages live modulo.
    #[doc(hidden)]
    pub fn limit(&self) -> &BoxedUint {
        self.binomial.limit()
    }

    /// How noise is drawn.
    pub fn noise_kind(&self) -> Noise {
        self.noise
    }

    /// [`Scheme::Paillier`] for `s = 1`, [`Scheme::DamgardJurik`] above.
    pub fn scheme(&self) -> Scheme {
        self.group.scheme
    }

    /// `n`, big-endian.
    pub fn modulus(&self) -> Vec<u8> {
        biguint::to_big_endian(&self.group.n)
    }

    /// What the key rests on.
    pub fn security(&self) -> SecurityStatement {
        security(self.bits(), self.noise)
    }
}

/// Kind of noise, `s`, bits of `n`, `n`, and the base of the noise where there is one.
fn payload(n: &BoxedUint, s: u32, noise: Noise, h: &BoxedUint) -> Vec<u8> {
    let bits = n.bits_vartime();
    let width = bits.div_ceil(8) as usize;
    let mut out = vec![noise as u8, s as u8];
    out.extend(bits.to_le_bytes());
    biguint::write_bytes(n.as_words(), width, &mut out);
    if noise != Noise::Uniform {
        biguint::write_bytes(h.as_words(), width, &mut out);
    }
    out
}

/// Refuses a length of the modulus or a power that no key has.
pub fn check_lengths(bits: u32, s: u32, insecure: bool) -> Result<()> {
    strength::check_bits(bits, insecure)?;
    if (1..=MAX_POWER).contains(&s) && bits * (s + 1) <= ciphervec_arith::montgomery::MAX_BITS {
        return Ok(());
    }
    Err(Error::Range {
        what: "the power s",
        expected: format!("1 to {MAX_POWER}, with bits * (s + 1) at most 12288"),
        actual: format!("{s} at {bits} bits"),
    })
}

impl NoiseSource for PublicKey {
    fn group(&self) -> &Group {
        &self.group
    }

    fn noise(&self, rows: usize, columns: usize) -> Result<Residues> {
        self.source.draw(&self.group, rows, columns)
    }
}

impl FactoringKey for PublicKey {
    fn message_bits(&self) -> u32 {
        // |m| < 2^(bits - 2) <= n^s / 2.
        self.binomial.limit().bits_vartime() - 1
    }

    fn encode(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Residues> {
        Group::check_messages(rows, columns, messages, FactoringKey::message_bits(self))?;
        self.binomial.encode(&self.group, rows, columns, messages)
    }
}

/// What keys with a modulus of `bits` bits rest on.
pub(crate) fn security(bits: u32, noise: Noise) -> SecurityStatement {
    strength::statement(
        bits,
        match noise {
            Noise::Uniform => "decisional composite residuosity",
            Noise::ShortExponent => {
                "decisional composite residuosity, and that powers of h = -x^2 by exponents half \
                 as long as n look like powers by any"
            }
            Noise::Subgroup => {
                "decisional partial discrete logarithm: composite residuosity within a secret \
                 subgroup (Paillier 1999, section 6)"
            }
        },
    )
}
