//! Galois keys, one for each level of the tree: the owner makes them, and the server expands
//! queries with them. Public.
//!
//! A key for X ↦ X^g and digit i is (b, a) modulo q·P with b = −a t + e + P·B^i·t(X^g): hybrid key
//! switching with one special prime. Noise of an early step is doubled by every later one, so the
//! first steps, which are few, take two digits of 25 bits; the many later ones take a whole residue
//! as their only digit.
//!
//! A frame of kind 5: `index id 8 | mask seed 32 | epoch u32 | levels u32 | per level and digit: seed 32, two packed
//! polynomials, modulo q and modulo P`. An epoch from 2^31 on is that of a client's session, which no collection keeps.

use super::buffer_pool::Buffer;
use super::{DEGREE, Layout, POLY_BYTES, Ring, pack_poly, unpack_poly};
use crate::error::{Error, Result};
use crate::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{convert, poly};
use core::ops::Range;

/// Steps whose key switching takes two digits.
pub const FINE_LEVELS: u8 = 3;
/// Bits of such a digit.
pub const DIGIT_BITS: u32 = 25;

/// Digits of the key switching of a step, where the first `fine` ones have two.
pub fn digits(level: u8, fine: u8) -> usize {
    if level < fine { 2 } else { 1 }
}

/// A key-switching key: both components modulo q and modulo P, NTT form.
pub struct SwitchingKey {
    seed: [u8; 32],
    constant: [Vec<u64>; 2],
    linear: [Vec<u64>; 2],
}

impl SwitchingKey {
    /// Bytes of a serialised key.
    pub const BYTES: usize = 32 + 2 * POLY_BYTES;
    /// Bytes of its polynomials in memory.
    pub const MEMORY: usize = size_of::<u64>() * 4 * DEGREE;

    /// Appends the seed of a, and b modulo both primes.
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seed);
        self.constant.iter().for_each(|poly| pack_poly(poly, out));
    }

    /// Reads what [`Self::append`] wrote.
    pub fn read(ring: &Ring, reader: &mut Reader<'_>) -> Result<Self> {
        let what = reader.what();
        let seed = reader.array()?;
        let low = unpack_poly(what, reader.take(POLY_BYTES)?, ring.ciphertext.modulus())?;
        let high = unpack_poly(what, reader.take(POLY_BYTES)?, ring.special.modulus())?;
        let linear = Self::expand_linear(ring, &seed);
        Ok(SwitchingKey { seed, constant: [low, high], linear })
    }

    /// The key of a seed, the b that belongs to it and the a that [`Self::expand_linear`] makes of it.
    pub fn from_parts(seed: [u8; 32], constant: [Vec<u64>; 2], linear: [Vec<u64>; 2]) -> Self {
        SwitchingKey { seed, constant, linear }
    }

    /// a is public and uniform: its seed stands for it.
    pub fn expand_linear(ring: &Ring, seed: &[u8; 32]) -> [Vec<u64>; 2] {
        let expand = |stream, table: &ciphervec_arith::ntt::NttTable| {
            let mut poly = vec![0; DEGREE];
            Stream::new(seed, stream).uniform(table.modulus(), &mut poly);
            poly
        };
        [expand(0, &ring.ciphertext), expand(1, &ring.special)]
    }
}

/// What ties evaluation keys to one index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The public name of the index.
    pub index: [u8; 8],
    /// The seed of the index's public masks.
    pub mask_seed: [u8; 32],
}

/// The Galois keys of one collection and one epoch. Public to the server, useless for reading
/// anything.
pub struct EvaluationKeys {
    key: KeyId,
    binding: Binding,
    epoch: u32,
    tree: TreeKeys,
}

/// Keys that grow trees: per level, one a digit.
pub struct TreeKeys(pub Vec<Vec<SwitchingKey>>);

impl EvaluationKeys {
    /// Of one key a digit for each level. Hidden: the key of an epoch's queries makes them.
    #[doc(hidden)]
    pub fn from_parts(
        key: KeyId,
        binding: Binding,
        epoch: u32,
        levels: Vec<Vec<SwitchingKey>>,
    ) -> Self {
        EvaluationKeys { key, binding, epoch, tree: TreeKeys(levels) }
    }

    /// What trees are grown with.
    pub(super) fn tree(&self) -> &TreeKeys {
        &self.tree
    }

    /// The key id of the owner.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// The index they serve.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The epoch of the query key they belong to.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Levels they reach.
    pub fn levels(&self) -> u8 {
        self.tree.levels()
    }

    /// Bytes of their polynomials in memory.
    pub fn memory(&self) -> usize {
        self.tree.memory()
    }

    /// The frame: index id, mask seed, epoch, number of levels, then per level and digit a seed and
    /// two packed polynomials.
    pub fn to_bytes(&self) -> Vec<u8> {
        let keys = self.tree.0.iter().flatten();
        let mut payload = Vec::with_capacity(48 + keys.clone().count() * SwitchingKey::BYTES);
        payload.extend_from_slice(&self.binding.index);
        payload.extend_from_slice(&self.binding.mask_seed);
        payload.extend_from_slice(&self.epoch.to_le_bytes());
        payload.extend_from_slice(&u32::from(self.levels()).to_le_bytes());
        keys.for_each(|key| key.append(&mut payload));
        let header = Header {
            scheme: Scheme::Ring,
            kind: Kind::EvaluationKeys,
            params: Ring::param_id(),
            key: self.key,
        };
        header.frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote, for vectors of `dimension`.
    ///
    /// # Errors
    /// Damaged or foreign bytes, other parameters, another number of levels than `dimension` asks
    /// for.
    pub fn from_bytes(ring: &Ring, bytes: &[u8], dimension: usize) -> Result<Self> {
        let (header, payload) = wire::open(Kind::EvaluationKeys, bytes)?;
        let what = Kind::EvaluationKeys.as_str();
        if header.params != Ring::param_id() || header.scheme != Scheme::Ring {
            return Err(Error::Parameters {
                what,
                expected: Ring::param_id().to_string(),
                actual: header.params.to_string(),
            });
        }
        let mut reader = Reader::new(what, payload);
        let binding = Binding { index: reader.array()?, mask_seed: reader.array()? };
        let epoch = reader.u32()?;
        let count = reader.u32()?;
        let expected = Layout::top_level(dimension);
        if count != u32::from(expected) {
            return Err(reader.error(format!(
                "{expected} levels expected at dimension {dimension}, {count} came"
            )));
        }
        let tree = TreeKeys::read(ring, &mut reader, expected, FINE_LEVELS)?;
        reader.finish()?;
        Ok(EvaluationKeys { key: header.key, binding, epoch, tree })
    }
}

impl TreeKeys {
    /// Reads keys of so many levels, the first of which have two digits.
    pub fn read(ring: &Ring, reader: &mut Reader<'_>, levels: u8, fine: u8) -> Result<Self> {
        let level = |level| {
            let keys = 0..digits(level, fine);
            keys.map(|_| SwitchingKey::read(ring, reader)).collect::<Result<Vec<_>>>()
        };
        Ok(TreeKeys((0..levels).map(level).collect::<Result<_>>()?))
    }

    /// Levels they reach.
    pub fn levels(&self) -> u8 {
        self.0.len() as u8
    }

    /// Bytes of their polynomials in memory.
    pub fn memory(&self) -> usize {
        self.0.iter().flatten().count() * SwitchingKey::MEMORY
    }

    /// One step of the tree: `even` is (c0, c1), replaced by c + τ(c); `odd`, if wanted, becomes
    /// X^(2^level) (c − τ(c)). Of components that are not `wanted` both are left as they are: c1 of
    /// what comes out depends on c1 alone, c0 on both.
    pub(super) fn split(
        &self,
        ring: &Ring,
        level: u8,
        wanted: [bool; 2],
        even: &mut [u64],
        odd: Option<&mut [u64]>,
        scratch: &mut Scratch,
    ) {
        let keys = &self.0[usize::from(level)];
        let permutation = &ring.automorphisms[usize::from(level)];
        let q = ring.ciphertext.modulus();
        let (constant, linear) = even.split_at_mut(DEGREE);
        scratch.decompose(ring, keys.len(), |rotated| poly::permute(rotated, linear, permutation));
        if wanted[0] {
            poly::permute(&mut scratch.rotated, constant, permutation);
        }
        let mut odd = odd.map(|odd| odd.split_at_mut(DEGREE));
        let (monomial, mut unwanted) = (&ring.monomials[usize::from(level)], [0; PIECE]);
        for part in (0..2).filter(|&part| wanted[part]) {
            let whole: &mut [u64] = if part == 0 { constant } else { linear };
            let mut odd = odd.as_mut().map(
                |(constant, linear)| {
                    if part == 0 { &mut **constant } else { &mut **linear }
                },
            );
            scratch.switch(ring, keys, part, |at, low, high, rotated| {
                let odd = odd.as_mut().map_or(&mut unwanted[..], |odd| &mut odd[at.clone()]);
                let (outs, w) = ([&mut whole[at.clone()], odd], &monomial[at]);
                let rotated = (part == 0).then_some(rotated);
                poly::split(outs, low, high, &ring.special_inverse, rotated, w, q);
            });
        }
    }
}

/// A row whose message is multiplied by the secret t: `row` is (c0, c1) in NTT form, `keys` switch t² to t. What is
/// decrypted of (0, c0) + switch(c1) is c0 t + c1 t².
pub(in crate::lattice) fn times_secret(
    ring: &Ring,
    keys: &[SwitchingKey],
    row: [&[u64]; 2],
    out: [&mut [u64]; 2],
    scratch: &mut Scratch,
) {
    scratch.decompose(ring, keys.len(), |whole| whole.copy_from_slice(row[1]));
    for (part, out) in out.into_iter().enumerate() {
        scratch.switch(ring, keys, part, |at, low, high, _| {
            poly::sub_scale_assign(low, high, &ring.special_inverse, ring.modulus());
            if part == 1 {
                poly::add_assign(low, &row[0][at.clone()], ring.modulus());
            }
            out[at].copy_from_slice(low);
        });
    }
}

/// Words that a step works on from one end to the other before the next ones: what it needs of them stays in the
/// first-level cache.
const PIECE: usize = 512;

/// What one thread needs for a step.
pub(in crate::lattice) struct Scratch {
    /// Of what was decomposed, modulo q and modulo P, NTT form: Σ_i B^i digit_i.
    digits: [[Buffer; 2]; 2],
    high: Buffer,
    rotated: Buffer,
    /// Aligned as what goes through the loops beside it is: on the stack it costs a tenth of a tree.
    piece: Buffer,
}

impl Scratch {
    pub fn new() -> Self {
        let poly = || Buffer::take(DEGREE);
        let digits = [[poly(), poly()], [poly(), poly()]];
        Scratch { digits, high: poly(), rotated: poly(), piece: Buffer::take(PIECE) }
    }

    /// Cuts what `fill` writes, a polynomial modulo q in NTT form, into so many digits.
    fn decompose(&mut self, ring: &Ring, digits: usize, fill: impl FnOnce(&mut [u64])) {
        let (q, p) = (&ring.ciphertext, &ring.special);
        let Scratch { digits: out, rotated, .. } = self;
        if let [[low, high]] = &mut out[..digits] {
            fill(low);
            high.copy_from_slice(low);
            q.inverse(high);
            convert::recentre(high, q.modulus(), p.modulus());
            p.forward(high);
            return;
        }
        fill(rotated);
        q.inverse(rotated);
        for (index, [low, high]) in out[..digits].iter_mut().enumerate() {
            let shift = DIGIT_BITS * index as u32;
            low.iter_mut()
                .zip(&**rotated)
                .for_each(|(low, value)| *low = value >> shift & ((1 << DIGIT_BITS) - 1));
            high.copy_from_slice(low);
            q.forward(low);
            p.forward(high);
        }
    }

    /// Gives one component, 0 for c0 and 1 for c1, of the switched ciphertext to `take`, piece by piece: where it is, the two
    /// whose difference over P it is, and the words of `rotated` beside them.
    fn switch(
        &mut self,
        ring: &Ring,
        keys: &[SwitchingKey],
        part: usize,
        mut take: impl FnMut(Range<usize>, &mut [u64], &[u64], &[u64]),
    ) {
        let (q, p) = (ring.ciphertext.modulus(), ring.special.modulus());
        let Scratch { digits, high, rotated, piece } = self;
        let products = |out: &mut [u64], which: usize, at: Range<usize>, m| {
            for (index, (key, digit)) in keys.iter().zip(&*digits).enumerate() {
                let key = if part == 0 { &key.constant } else { &key.linear };
                let (digit, key) = (&digit[which][at.clone()], &key[which][at.clone()]);
                match index {
                    0 => poly::mul(out, digit, key, m),
                    _ => poly::mul_add_assign(out, digit, key, m),
                }
            }
        };
        products(high, 1, 0..DEGREE, p);
        // Key switching divides by P: `take` subtracts the value modulo P and multiplies by P⁻¹ modulo q.
        ring.special.inverse(high);
        convert::recentre(high, p, q);
        ring.ciphertext.forward(high);
        for first in (0..DEGREE).step_by(PIECE) {
            let at = first..first + PIECE;
            products(piece, 0, at.clone(), q);
            take(at.clone(), piece, &high[at.clone()], &rotated[at]);
        }
    }
}
