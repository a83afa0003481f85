//! Public key of Okamoto–Uchiyama.

use crate::additive::{Messages, SecurityStatement};
use crate::biguint;
use crate::error::{Error, Result};
use crate::factoring::noise::Source;
use crate::factoring::{FactoringKey, Group, NoiseSource, strength};
use crate::primes;
use crate::wire::{self, Kind, Reader, Scheme};
use ciphervec_arith::montgomery::{Comb, Residues};
use crypto_bigint::BoxedUint;
use std::sync::OnceLock;
use zeroize::Zeroizing;

const WHAT: &str = "a public key";
/// Bits by which messages are shorter than the secret prime: who decrypts a number of `p` or more
/// learns `p`, and this far below it nobody meets a multiple of `p` by trying.
pub(crate) const MARGIN: u32 = 66;

/// How long the exponents of the noise are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Noise {
    /// As long as `n`: indistinguishable from uniform ones. The default.
    Full = 0,
    /// A third of that, half as long as the order of `h`: three times as fast, on the further
    /// assumption that powers by such exponents look like powers by any.
    Short = 1,
}

impl Noise {
    fn exponent_bits(self, bits: u32) -> u32 {
        match self {
            Noise::Full => bits,
            Noise::Short => bits.div_ceil(3),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Noise::Full => "full",
            Noise::Short => "short",
        }
    }
}

/// Encrypts, adds, multiplies by plain numbers and re-randomises. Ciphertexts are
/// [`crate::factoring::Ciphertexts`].
pub struct PublicKey {
    group: Group,
    noise: Noise,
    g: BoxedUint,
    /// `g` in the form that products are computed in.
    generator: Residues,
    source: Source,
    narrow: OnceLock<Signed>,
    wide: OnceLock<Signed>,
}

/// Powers of `g` by signed exponents of up to `bits` bits: `g^(m + 2^(bits - 1))` and what takes
/// the shift back.
struct Signed {
    bits: u32,
    table: Comb,
    back: Residues,
}

impl Signed {
    fn new(generator: &Residues, bits: u32) -> Result<Self> {
        let mut shift = vec![0u64; bits.div_ceil(64) as usize];
        set_bit(&mut shift, bits - 1);
        let back = generator.pow(&shift).inverse_vartime()?;
        Ok(Signed { bits, table: Comb::new(generator, bits), back })
    }

    fn pow(&self, rows: usize, columns: usize, messages: &Messages) -> Residues {
        let words = self.table.exponent_words();
        let mut exponents = Zeroizing::new(vec![0; words * messages.len()]);
        for (at, exponent) in exponents.chunks_exact_mut(words).enumerate() {
            let message = messages.row(at);
            let sign = 0u64.wrapping_sub(message[message.len() - 1] >> 63);
            // m + 2^(bits - 1), which is not negative and below 2^bits.
            let mut carry = 0;
            for (place, word) in exponent.iter_mut().enumerate() {
                let top = (self.bits - 1) / 64 == place as u32;
                let shift: u64 = if top { 1 << ((self.bits - 1) % 64) } else { 0 };
                let digit = message.get(place).copied().unwrap_or(sign);
                let sum = u128::from(digit) + u128::from(carry) + u128::from(shift);
                (*word, carry) = (sum as u64, (sum >> 64) as u64);
            }
            let excess = 64 * words as u32 - self.bits;
            exponent[words - 1] &= u64::MAX >> excess;
        }
        let mut powers = self.table.pow(rows, columns, &exponents);
        powers.mul_assign(&self.back);
        powers
    }
}

fn set_bit(words: &mut [u64], bit: u32) {
    words[bit as usize / 64] |= 1 << (bit % 64);
}

impl core::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PublicKey(Okamoto–Uchiyama, |n| = {} bits, {})", self.bits(), self.group.key)
    }
}

impl PublicKey {
    /// A key whose parts are known to be good.
    #[doc(hidden)]
    pub fn assembled(n: &BoxedUint, noise: Noise, g: &BoxedUint) -> Result<Self> {
        let bits = n.bits_vartime();
        let mark = if bits < strength::MIN_BITS { "insecure " } else { "" };
        let description = format!("{mark}OkamotoUchiyama n={bits} noise={}", noise.as_str());
        let payload = payload(n, noise, g);
        let group = Group::new(Scheme::OkamotoUchiyama, &description, n, 1, &payload)?;
        let generator = group.element(&biguint::to_words(g, group.modulus.words()))?;
        let lift = group.n.as_words().to_vec();
        let source = Source::powers(generator.clone(), lift, noise.exponent_bits(bits));
        Ok(PublicKey {
            group,
            noise,
            g: biguint::trimmed(g),
            generator,
            source,
            narrow: OnceLock::new(),
            wide: OnceLock::new(),
        })
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
        let noise = match reader.u8()? {
            0 => Noise::Full,
            1 => Noise::Short,
            other => return Err(reader.error(format!("noise 0 or 1 expected, {other} came"))),
        };
        let bits = reader.u32()?;
        strength::check_bits(bits, insecure)?;
        let width = bits.div_ceil(8) as usize;
        let n = biguint::from_bytes(reader.take(width)?);
        let g = biguint::from_bytes(reader.take(width)?);
        primes::check_modulus(WHAT, &n, bits)?;
        let one = biguint::small(1);
        if g >= n || g <= one || g == n.wrapping_sub(&one) {
            return Err(reader.error("the generator is not between 1 and n - 1"));
        }
        if !biguint::is_one(&biguint::gcd(&n, &g)) {
            return Err(reader.error("the generator shares a factor with the modulus"));
        }
        Self::assembled(&n, noise, &g)
    }

    /// The key, framed.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.group.header(Kind::PublicKey).frame(&self.payload())
    }

    #[doc(hidden)]
    pub fn payload(&self) -> Vec<u8> {
        payload(&self.group.n, self.noise, &self.g)
    }

    /// Bits of `n`; each prime has a third of them.
    pub fn bits(&self) -> u32 {
        self.group.bits()
    }

    /// The generator.
    #[doc(hidden)]
    pub fn g(&self) -> &BoxedUint {
        &self.g
    }

    /// How long the exponents of the noise are.
    pub fn noise_kind(&self) -> Noise {
        self.noise
    }

    /// `n`, big-endian.
    pub fn modulus(&self) -> Vec<u8> {
        biguint::to_big_endian(&self.group.n)
    }

    /// `g`, big-endian.
    pub fn generator(&self) -> Vec<u8> {
        biguint::to_big_endian(&self.g)
    }

    /// What the key rests on; the bits are those of a modulus `n = p q` as long as `n = p^2 q`.
    pub fn security(&self) -> SecurityStatement {
        security(self.bits(), self.noise)
    }
}

/// Kind of noise, bits of `n`, `n`, `g`.
fn payload(n: &BoxedUint, noise: Noise, g: &BoxedUint) -> Vec<u8> {
    let bits = n.bits_vartime();
    let width = bits.div_ceil(8) as usize;
    let mut out = vec![noise as u8];
    out.extend(bits.to_le_bytes());
    biguint::write_bytes(n.as_words(), width, &mut out);
    biguint::write_bytes(g.as_words(), width, &mut out);
    out
}

/// Bits of `p` for an `n` of `bits` bits.
pub fn prime_bits(bits: u32) -> u32 {
    bits.div_ceil(3)
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
        prime_bits(self.bits()) - MARGIN
    }

    fn encode(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Residues> {
        let bits = FactoringKey::message_bits(self);
        Group::check_messages(rows, columns, messages, bits)?;
        // Two tables: most messages are a word, and lanes fill all that there is.
        let (slot, bits) =
            if messages.width() == 1 { (&self.narrow, 64) } else { (&self.wide, bits.max(64)) };
        if slot.get().is_none() {
            let made = Signed::new(&self.generator, bits)
                .map_err(|_| Error::malformed(WHAT, "the generator is not invertible"))?;
            let _ = slot.set(made);
        }
        let powers = slot.get().ok_or(Error::Fault)?;
        Ok(powers.pow(rows, columns, messages))
    }
}

/// What keys with a modulus of `bits` bits rest on.
pub(crate) fn security(bits: u32, noise: Noise) -> SecurityStatement {
    strength::statement(
        bits,
        match noise {
            Noise::Full => "the p-subgroup problem modulo n = p^2 q",
            Noise::Short => {
                "the p-subgroup problem modulo n = p^2 q, and that powers of h by exponents a \
                 third as long as n look like powers by any"
            }
        },
    )
}
