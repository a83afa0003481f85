//! Bytes of parameter sets and ciphertexts; residues are packed to the bits of their prime.
//!
//! Scheme 7; the parameter id is that of the description of the set, with `insecure ` before it for test sets. A residue takes as
//! many bits as its prime, in little-endian bit order, limb after limb.
//!
//! |kind|payload|
//! |---|---|
//! |parameters (11)|security u8 (0 insecure, 1 classical, 2 quantum) · ring u8 · log2 N, bits of the base prime and of the scale, levels, special primes, their bits, digits: u32 each · bits of the last prime, u32, only where it has bits of its own; or, for stages, a u32 of 0, their number u32, and for each levels, bits of the primes, bits of the scale, u32 each|
//! |ciphertexts (8)|degree u8 · seeded u8 · level u32 · log2 of slots u32 · scale, std, bound, magnitude: f64 each · the seed of c_1 if seeded · c_0 and the parts that are not seeded|
//! |public key (6)|the seed of a · b|
//! |secret key (7)|the seed of s · the publishing policy τ u64, κ u32 (zero before the first use) · results published u64|
//! |evaluation keys (5)|level u32 · number of keys u32 · per key, ascending: Galois element u64 (0 for relinearisation) · seed · b of every digit, limbs of the level and special ones|
//! |bootstrapping keys (23)|the seed and b modulo q_0 and the first special prime of the key to the sparse secret · seed and b of the key back from it, as an evaluation key at the top level · three frames of evaluation keys, each after its length u64: slots-to-coefficients, reduction, coefficients-to-slots|
//! |compact ciphertexts (24)|a seed of 16 bytes · bits of a coefficient u8 · their number u32 · b of each, rounded to so many bits|
//! |ring switching key (25)|the seed and b modulo q_0 and the first special prime of the key from s_h(X²) to s|

use super::ciphertext::{Ciphertext, Meta, SeededCiphertext};
use super::noise::Noise;
use super::params::Params;
use super::poly::{Ntt, Poly};
use super::spec::{ParamsSpec, Ring};
use super::widths::{MAX_STAGES, Stage, Widths};
use crate::error::{Error, Result};
use crate::params::Security;
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use ciphervec_arith::{Modulus, NttTable};
use std::sync::Arc;

/// Bytes of what precedes the residues of a ciphertext.
const META_BYTES: usize = 2 + 4 + 4 + 4 * 8;
/// Largest absolute value of log2 of a scale, an error or a magnitude that is read: beyond any
/// modulus.
const MAX_LOG: f64 = 4096.0;

/// Bytes of one limb.
pub(super) fn limb_bytes(params: &Params, table: &NttTable) -> usize {
    params.degree() / 8 * table.modulus().bits() as usize
}

/// Appends words below 2^`bits`, a multiple of 8 of them, in little-endian bit order.
pub fn pack_bits(words: &[u64], bits: u32, out: &mut Vec<u8>) {
    let (mut pending, mut count) = (0u128, 0);
    for &word in words {
        pending |= u128::from(word) << count;
        count += bits;
        if count >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            count -= 64;
        }
    }
    out.extend_from_slice(&(pending as u64).to_le_bytes()[..count as usize / 8]);
}

/// Reads what [`pack_bits`] wrote; returns the largest word.
pub(super) fn unpack_bits(bytes: &[u8], bits: u32, out: &mut [u64]) -> u64 {
    let mut words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let (mut pending, mut count) = (0u128, 0);
    let mut largest = 0;
    for out in out {
        if count < bits {
            pending |= u128::from(words.next().unwrap_or(0)) << count;
            count += 64;
        }
        *out = pending as u64 & ((1 << bits) - 1);
        largest = largest.max(*out);
        pending >>= bits;
        count -= bits;
    }
    largest
}

/// Appends residues at the number of bits of their prime; degrees are multiples of 8.
pub(super) fn pack_limb(limb: &[u64], m: &Modulus, out: &mut Vec<u8>) {
    pack_bits(limb, m.bits(), out);
}

/// Reads one limb.
///
/// # Errors
/// Too few bytes, or a residue that is not below the prime.
pub(super) fn unpack_limb(reader: &mut Reader<'_>, m: &Modulus, limb: &mut [u64]) -> Result<()> {
    let bytes = reader.take(limb.len() / 8 * m.bits() as usize)?;
    let largest = unpack_bits(bytes, m.bits(), limb);
    if largest < m.value() {
        return Ok(());
    }
    Err(reader.error(format!("a residue is {largest}, not below the prime {}", m.value())))
}

/// Opens a frame of this scheme and of these parameters.
///
/// # Errors
/// Those of [`wire::open`]; another scheme or other parameters.
pub fn open<'a>(params: &Params, kind: Kind, bytes: &'a [u8]) -> Result<(Header, Reader<'a>)> {
    let (header, payload) = wire::open(kind, bytes)?;
    check(params, &header)?;
    Ok((header, Reader::new(kind.as_str(), payload)))
}

/// Refuses another scheme and other parameters.
pub(super) fn check(params: &Params, header: &Header) -> Result<()> {
    check_scheme(header)?;
    params.check_id(header.kind.as_str(), header.params)
}

fn check_scheme(header: &Header) -> Result<()> {
    if header.scheme == Scheme::Ckks {
        return Ok(());
    }
    let detail = format!("the scheme CKKS expected, {} found", header.scheme.as_str());
    Err(Error::malformed(header.kind.as_str(), detail))
}

impl Params {
    /// Serialises the description: everything else is computed from it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let spec = self.spec();
        let security = match spec.security {
            _ if self.is_insecure() => 0,
            Security::Classical128 => 1,
            Security::Quantum128 => 2,
        };
        let ring = match spec.ring {
            Ring::Standard => 0,
            Ring::ConjugateInvariant => 1,
        };
        let mut payload = vec![security, ring];
        let numbers = [
            spec.log_degree,
            spec.base_bits,
            spec.scale_bits,
            spec.levels as u32,
            spec.special_primes as u32,
            spec.special_bits,
            spec.digits as u32,
        ];
        let widths = match &self.chain().widths {
            Widths::Even => Vec::new(),
            Widths::Last(bits) => vec![*bits],
            Widths::Stages(stages) => {
                let numbers = |s: &Stage| [s.levels as u32, s.prime_bits, s.scale_bits];
                [0, stages.len() as u32]
                    .into_iter()
                    .chain(stages.iter().flat_map(numbers))
                    .collect()
            }
        };
        let numbers = numbers.into_iter().chain(widths);
        numbers.for_each(|number| payload.extend(number.to_le_bytes()));
        let header = Header {
            scheme: Scheme::Ckks,
            kind: Kind::Parameters,
            params: self.param_id(),
            key: KeyId::default(),
        };
        header.frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote. Test sets are refused, except in builds for tests.
    ///
    /// # Errors
    /// Damaged or foreign bytes, and whatever [`Params::new`] refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<Arc<Self>> {
        let Described { header, security, spec, widths } = Described::read(bytes)?;
        let params = Params::build(spec, widths, security == 0, None)?;
        params.check_id(Kind::Parameters.as_str(), header.params)?;
        Ok(params)
    }
}

impl ParamsSpec {
    /// What a frame of [`Params`] describes, before anything is computed from it: sizes to look at,
    /// which [`Params::from_bytes`] may still refuse. Also bits of the prime of level 1, if they are
    /// not those of the scale.
    ///
    /// # Errors
    /// Damaged or foreign bytes; [`Error::Range`] for a set with stages.
    pub fn described(bytes: &[u8]) -> Result<(Self, Option<u32>)> {
        let Described { spec, widths, .. } = Described::read(bytes)?;
        match widths {
            Widths::Even => Ok((spec, None)),
            Widths::Last(bits) => Ok((spec, Some(bits))),
            Widths::Stages(_) => Err(Error::Range {
                what: "the levels of a parameter set",
                expected: "all for the same use".into(),
                actual: format!("levels in stages:{}", widths.describe()),
            }),
        }
    }
}

/// A parameter set as its frame has it.
struct Described {
    header: Header,
    /// 0 for a set for tests.
    security: u8,
    spec: ParamsSpec,
    widths: Widths,
}

impl Described {
    fn read(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::Parameters, bytes)?;
        check_scheme(&header)?;
        let mut reader = Reader::new(Kind::Parameters.as_str(), payload);
        let security = reader.u8()?;
        let ring = match reader.u8()? {
            0 => Ring::Standard,
            1 => Ring::ConjugateInvariant,
            other => return Err(reader.error(format!("unknown ring {other}"))),
        };
        let mut spec = ParamsSpec {
            ring,
            log_degree: reader.u32()?,
            base_bits: reader.u32()?,
            scale_bits: reader.u32()?,
            levels: reader.u32()? as usize,
            special_primes: reader.u32()? as usize,
            special_bits: reader.u32()?,
            digits: reader.u32()? as usize,
            security: Security::Classical128,
        };
        let widths = read_widths(&mut reader)?;
        if header.key != KeyId::default() {
            return Err(reader.error("a frame of parameters names no key"));
        }
        match security {
            0 if cfg!(feature = "hazmat") => {}
            0 => return Err(reader.error("an insecure set for tests")),
            1 => {}
            2 => spec.security = Security::Quantum128,
            other => return Err(reader.error(format!("unknown security level {other}"))),
        }
        reader.finish()?;
        Ok(Described { header, security, spec, widths })
    }
}

/// What follows the sizes: nothing, the bits of the last prime, or a zero and stages.
fn read_widths(reader: &mut Reader<'_>) -> Result<Widths> {
    if reader.remaining() == 0 {
        return Ok(Widths::Even);
    }
    let bits = reader.u32()?;
    if bits != 0 {
        return Ok(Widths::Last(bits));
    }
    let count = reader.u32()? as usize;
    if count > MAX_STAGES {
        return Err(reader.error(format!("{count} stages of at most {MAX_STAGES}")));
    }
    let stage = |_| {
        let levels = reader.u32()? as usize;
        Ok(Stage { levels, prime_bits: reader.u32()?, scale_bits: reader.u32()? })
    };
    Ok(Widths::Stages((0..count).map(stage).collect::<Result<_>>()?))
}

impl Meta {
    fn append(&self, params: &Params, level: usize, shape: [u8; 2], out: &mut Vec<u8>) {
        // Zero times anything has less.
        let noise = self.noise.at_least(Noise::least(params.expansion()));
        out.extend(shape);
        out.extend((level as u32).to_le_bytes());
        out.extend(self.slots.ilog2().to_le_bytes());
        let numbers = [self.scale, noise.std, noise.bound, self.magnitude];
        numbers.iter().for_each(|number| out.extend(number.to_bits().to_le_bytes()));
    }

    /// Degree, whether c_1 is seeded, level and the rest.
    fn read(
        params: &Params,
        key: KeyId,
        reader: &mut Reader<'_>,
    ) -> Result<(usize, bool, usize, Self)> {
        let (degree, seeded) = (reader.u8()?, reader.u8()?);
        let (level, log_slots) = (reader.u32()? as usize, reader.u32()?);
        if !matches!((degree, seeded), (1, 0 | 1) | (2, 0)) {
            return Err(reader.error(format!("degree {degree}, seeded {seeded} found")));
        }
        if level > params.max_level() {
            return Err(reader.error(format!("level {level} of {}", params.max_level())));
        }
        if log_slots > params.max_slots().ilog2() {
            return Err(reader.error(format!("2^{log_slots} slots of {}", params.max_slots())));
        }
        let mut number = |what: &str| {
            let value = reader.f64()?;
            if value > 0.0 && value.log2().abs() <= MAX_LOG {
                return Ok(value);
            }
            Err(reader.error(format!("{what} is {value}")))
        };
        let scale = number("the scale")?;
        let noise = Noise { std: number("the error")?, bound: number("the bound of the error")? };
        let magnitude = number("the magnitude")?;
        let least = Noise::least(params.expansion());
        if noise.at_least(least) != noise {
            let Noise { std, bound } = noise;
            return Err(reader.error(format!(
                "an error of {std:e} with the bound {bound:e} is claimed, less than that of a \
                 fresh ciphertext ({:e}, {:e})",
                least.std, least.bound
            )));
        }
        let meta = Meta { key, scale, slots: 1 << log_slots, noise, magnitude };
        Ok((usize::from(degree), seeded == 1, level, meta))
    }
}

fn append_poly(poly: &Poly<Ntt>, out: &mut Vec<u8>) {
    let params = poly.params();
    poly.limbs().enumerate().for_each(|(index, limb)| pack_limb(limb, params.prime(index), out));
}

fn read_poly(params: &Arc<Params>, level: usize, reader: &mut Reader<'_>) -> Result<Poly<Ntt>> {
    let mut poly = Poly::scratch(params, level);
    for index in 0..=level {
        unpack_limb(reader, params.prime(index), poly.limb_mut(index))?;
    }
    Ok(poly)
}

fn poly_bytes(params: &Params, level: usize) -> usize {
    (0..=level).map(|index| limb_bytes(params, params.table(index))).sum()
}

fn header(params: &Params, key: KeyId) -> Header {
    Header { scheme: Scheme::Ckks, kind: Kind::Ciphertexts, params: params.param_id(), key }
}

impl Ciphertext {
    /// Bytes serialised, at `level` and of `degree`.
    pub fn bytes_at(params: &Params, level: usize, degree: usize) -> usize {
        wire::HEADER_LEN + META_BYTES + (degree + 1) * poly_bytes(params, level)
    }

    /// Serialises the ciphertext.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload =
            Vec::with_capacity(Self::bytes_at(self.params(), self.level(), self.degree()));
        let shape = [self.degree() as u8, 0];
        self.meta.append(self.params(), self.level(), shape, &mut payload);
        self.parts.iter().for_each(|part| append_poly(part, &mut payload));
        header(self.params(), self.meta.key).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] or [`SeededCiphertext::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, a residue that is not below its prime.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        let (head, mut reader) = open(params, Kind::Ciphertexts, bytes)?;
        let (degree, seeded, level, meta) = Meta::read(params, head.key, &mut reader)?;
        if seeded {
            let seed = reader.array()?;
            let constant = read_poly(params, level, &mut reader)?;
            reader.finish()?;
            return Ok(SeededCiphertext { seed, constant, meta }.expand());
        }
        let parts = (0..=degree).map(|_| read_poly(params, level, &mut reader));
        let parts = parts.collect::<Result<_>>()?;
        reader.finish()?;
        Ok(Ciphertext { parts, meta })
    }
}

impl SeededCiphertext {
    /// Bytes serialised, at `level`.
    pub fn bytes_at(params: &Params, level: usize) -> usize {
        wire::HEADER_LEN + META_BYTES + 32 + poly_bytes(params, level)
    }

    /// Serialises the ciphertext, with the seed for c_1.
    pub fn to_bytes(&self) -> Vec<u8> {
        let params = self.constant.params();
        let mut payload = Vec::with_capacity(Self::bytes_at(params, self.level()));
        self.meta.append(params, self.level(), [1, 1], &mut payload);
        payload.extend_from_slice(&self.seed);
        append_poly(&self.constant, &mut payload);
        header(params, self.meta.key).frame(&payload)
    }
}
