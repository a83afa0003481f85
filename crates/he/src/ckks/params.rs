//! Immutable parameter set: primes, transforms and constants.

use super::buffer_pool::{self, BufferPool};
use super::depth;
use super::embedding::{Embedding, RealEmbedding};
use super::modulus_chain::ModulusChain;
use super::spec::{ParamsSpec, Ring};
use super::widths::{Stage, Widths};
use crate::additive::SecurityStatement;
use crate::error::{Error, Result};
use crate::params::{self, ParamId, Security};
use ciphervec_arith::basis::BasisConversion;
use ciphervec_arith::{Modulus, NttTable, Shoup};
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Polynomials over all primes whose buffers a parameter set keeps for reuse.
const POOLED_POLYS: usize = 32;
/// The same for sets with stages: as many as a bootstrapping holds at once.
const POOLED_STAGED: usize = 64;
/// Words of a transform's tables, of permutations and of basis conversions for each residue of a
/// polynomial, as a bound.
const TABLE_POLYS: u64 = 8;

/// The canonical embedding of the ring.
pub(super) enum Slots {
    Complex(Embedding),
    Real(RealEmbedding),
}

/// An immutable parameter set. Made once, shared by everything that is computed under it.
pub struct Params {
    chain: Arc<ModulusChain>,
    insecure: bool,
    id: ParamId,
    /// What the set was chosen for, in words.
    pub(super) why: Option<String>,
    /// Of q_0 … q_L, then of the special primes.
    tables: Vec<NttTable>,
    /// `[l][j]`: q_l⁻¹ modulo q_j, j < l.
    prime_inverses: Vec<Vec<Shoup>>,
    /// P⁻¹ modulo q_j.
    special_inverses: Vec<Shoup>,
    /// `[level][digit]`: from the primes of a digit to the other primes of the level and the
    /// special ones.
    mod_up: Vec<Vec<BasisConversion>>,
    /// `[level]`: from the special primes to those of the level.
    mod_down: Vec<BasisConversion>,
    /// `[level − 1]`: from the prime of the level and the special primes to those of the level
    /// below.
    mod_down_and_rescale: Vec<BasisConversion>,
    automorphisms: Mutex<BTreeMap<u64, Arc<[u32]>>>,
    slots: OnceLock<Slots>,
    pub(super) pool: Arc<BufferPool>,
}

impl Params {
    /// Finds the primes and prepares the tables.
    ///
    /// # Errors
    /// [`Error::Insecure`] if log2(QP), rounded up, is over the table's limit for the degree;
    /// [`Error::Range`] for sizes that no transform serves, or a P narrower than a digit.
    pub fn new(spec: ParamsSpec) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Even, false, None)
    }

    /// [`Self::new`] with a prime of `last_bits` at level 1, so that the scale at level 0 is 2^(2
    /// scale − last): small, where what comes last is a product with a plaintext matrix at level 0,
    /// which needs the room.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Range`] without a level, or for a scale at level 0 outside of 10
    /// to 49 bits.
    pub fn with_last_prime(spec: ParamsSpec, last_bits: u32) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Last(last_bits), false, None)
    }

    /// [`Self::new`] with stages of levels, from level 1 upwards, each with primes and a scale of
    /// its own (docs/ckks.md, section 3.3). `spec.levels` is the sum of theirs; `spec.scale_bits`
    /// is not used.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Range`] for stages of no levels, of other levels than the set's,
    /// or of widths that no prime or scale has.
    pub fn with_stages(spec: ParamsSpec, stages: &[Stage]) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Stages(stages.to_vec()), false, None)
    }

    /// [`Self::with_stages`] of a test set.
    ///
    /// # Errors
    /// [`Error::Range`] as for [`Self::with_stages`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_with_stages(spec: ParamsSpec, stages: &[Stage]) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Stages(stages.to_vec()), true, None)
    }

    /// The smallest ring for `depth` products in a row, whose results of magnitude 1 are right to
    /// `precision_bits` bits.
    ///
    /// # Errors
    /// [`Error::Range`] if no ring up to 2^17 or no prime below 2^50 is enough.
    pub fn for_depth(depth: usize, precision_bits: u32, security: Security) -> Result<Arc<Self>> {
        Self::for_depth_in(Ring::Standard, depth, precision_bits, security)
    }

    /// [`Self::for_depth`] in the ring of one's choice.
    ///
    /// # Errors
    /// As [`Self::for_depth`].
    pub fn for_depth_in(
        ring: Ring,
        depth: usize,
        precision_bits: u32,
        security: Security,
    ) -> Result<Arc<Self>> {
        let (spec, why) = depth::choose(ring, depth, precision_bits, security)?;
        Self::build(spec, Widths::Even, false, Some(why))
    }

    /// A set that the security table is not asked about, for tests. Its name starts with
    /// "insecure", which changes its id.
    ///
    /// # Errors
    /// [`Error::Range`] as for [`Self::new`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_new(spec: ParamsSpec) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Even, true, None)
    }

    /// [`Self::with_last_prime`] of a test set.
    ///
    /// # Errors
    /// [`Error::Range`] as for [`Self::with_last_prime`].
    #[cfg(feature = "hazmat")]
    pub fn insecure_with_last_prime(spec: ParamsSpec, last_bits: u32) -> Result<Arc<Self>> {
        Self::build(spec, Widths::Last(last_bits), true, None)
    }

    pub(super) fn build(
        spec: ParamsSpec,
        widths: Widths,
        insecure: bool,
        why: Option<String>,
    ) -> Result<Arc<Self>> {
        let chain = ModulusChain::checked(&spec, widths, insecure)?;
        let degree = 1usize << spec.log_degree;
        let all: Vec<u64> = chain.primes.iter().chain(&chain.special).copied().collect();
        let table = |prime: &u64| match spec.ring {
            Ring::Standard => NttTable::new(degree, *prime),
            Ring::ConjugateInvariant => NttTable::conjugate_invariant(degree, *prime),
        };
        let tables = all.iter().map(table).collect::<core::result::Result<Vec<_>, _>>()?;
        let moduli: Vec<Modulus> = tables.iter().map(|table| *table.modulus()).collect();
        let (primes, special) = moduli.split_at(spec.primes());
        let product: Vec<u64> = primes
            .iter()
            .map(|q| special.iter().fold(1, |p, s| q.mul(p, q.reduce(s.value()))))
            .collect();
        let inverse = |q: &Modulus, value: u64| -> Result<Shoup> {
            let inverse = q.inv(value).ok_or_else(|| Error::Range {
                what: "the primes of a parameter set",
                expected: "different from each other".into(),
                actual: q.value().to_string(),
            })?;
            Ok(q.shoup(inverse))
        };
        let prime_inverses = (0..primes.len())
            .map(|l| primes[..l].iter().map(|q| inverse(q, primes[l].value())).collect())
            .collect::<Result<_>>()?;
        let special_inverses =
            primes.iter().zip(&product).map(|(q, p)| inverse(q, *p)).collect::<Result<_>>()?;
        let mut mod_up = Vec::with_capacity(primes.len());
        let mut mod_down = Vec::with_capacity(primes.len());
        let mut mod_down_and_rescale = Vec::with_capacity(spec.levels);
        let levels = if special.is_empty() { 0 } else { primes.len() };
        for level in 0..levels {
            let present = &primes[..=level];
            mod_down.push(BasisConversion::new(special, present)?);
            if level > 0 {
                let dropped = [&present[level..], special].concat();
                mod_down_and_rescale.push(BasisConversion::new(&dropped, &present[..level])?);
            }
            let digits = (0..chain.digits(level)).map(|digit| {
                let range = chain.digit_range(level, digit);
                let others = [&present[..range.start], &present[range.end..], special].concat();
                Ok(BasisConversion::new(&present[range], &others)?)
            });
            mod_up.push(digits.collect::<Result<Vec<_>>>()?);
        }
        let staged = !chain.widths.stages().is_empty();
        let polys = if staged { POOLED_STAGED } else { POOLED_POLYS };
        let pooled = polys * tables.len() * degree;
        Ok(Arc::new(Params {
            insecure,
            id: spec.param_id(insecure, &chain.widths),
            why,
            prime_inverses,
            special_inverses,
            mod_up,
            mod_down,
            mod_down_and_rescale,
            chain: Arc::new(chain),
            automorphisms: Mutex::default(),
            slots: OnceLock::new(),
            pool: BufferPool::new(pooled),
            tables,
        }))
    }

    /// What was asked for.
    pub fn spec(&self) -> &ParamsSpec {
        &self.chain.spec
    }

    /// Bits of the prime of level 1, if they are not those of the scale.
    pub fn last_bits(&self) -> Option<u32> {
        self.chain.widths.last()
    }

    /// The stages of levels, from level 1 upwards; none where all levels are alike.
    pub fn stages(&self) -> &[Stage] {
        self.chain.widths.stages()
    }

    /// The public name of the set.
    pub fn param_id(&self) -> ParamId {
        self.id
    }

    /// Whether this is a test set that the security table was not asked about.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// The ring.
    pub fn ring(&self) -> Ring {
        self.chain.spec.ring
    }

    /// The degree N.
    pub fn degree(&self) -> usize {
        1 << self.chain.spec.log_degree
    }

    /// The most slots: N/2 complex ones or N real ones.
    pub fn max_slots(&self) -> usize {
        self.chain.max_slots()
    }

    /// The level of a fresh ciphertext.
    pub fn max_level(&self) -> usize {
        self.chain.spec.levels
    }

    /// Δ_l, the canonical scale of `level`.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn scale(&self, level: usize) -> f64 {
        self.chain.scale(level)
    }

    /// The prime q_`index` of the chain.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn prime(&self, index: usize) -> &Modulus {
        self.table(index).modulus()
    }

    /// The transform modulo q_`index`.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn table(&self, index: usize) -> &NttTable {
        &self.tables[..self.chain.spec.primes()][index]
    }

    /// log2 of Q_`level`, the product of q_0 to q_`level`.
    ///
    /// # Panics
    /// Above [`Self::max_level`].
    pub fn log_modulus(&self, level: usize) -> f64 {
        self.chain.log_modulus(level)
    }

    /// log2(QP), rounded up: what the security table is asked about.
    pub fn log_key_modulus(&self) -> u32 {
        let bits = self.tables.iter().map(|table| (table.modulus().value() as f64).log2());
        bits.sum::<f64>().ceil() as u32
    }

    /// A bound on the bytes that a parameter set takes in memory: tables, and the buffers that it
    /// keeps for reuse. Nothing is computed from the description.
    pub fn memory(spec: &ParamsSpec) -> u64 {
        let primes = spec.primes().saturating_add(spec.special_primes);
        (POOLED_POLYS as u64 + TABLE_POLYS).saturating_mul(Params::poly_memory(spec, primes))
    }

    /// Bytes that a polynomial over so many primes takes in memory.
    pub fn poly_memory(spec: &ParamsSpec, primes: usize) -> u64 {
        let degree = 1usize.checked_shl(spec.log_degree).unwrap_or(usize::MAX);
        buffer_pool::bytes(primes.saturating_mul(degree)) as u64
    }

    /// What the parameters rest on.
    pub fn security(&self) -> SecurityStatement {
        SecurityStatement {
            bits: if self.insecure { 0 } else { 128 },
            table: "community guidelines 2024, IACR ePrint 2024/463, table 5.2, uniform ternary \
                secret",
            assumption: match self.chain.spec.ring {
                Ring::Standard => {
                    "ring learning with errors, and circular security of the evaluation keys"
                }
                Ring::ConjugateInvariant => {
                    "ring learning with errors in the conjugate-invariant subring of degree N \
                     (Kim & Song 2018), taken to be as hard as in dimension N of the table, and \
                     circular security of the evaluation keys"
                }
            },
            post_quantum: !self.insecure
                && params::max_log_modulus(self.degree(), Security::Quantum128)
                    .is_some_and(|limit| self.log_key_modulus() <= limit),
            insecure: self.insecure,
            lattice: if self.insecure {
                None
            } else {
                params::estimate(self.degree(), self.log_key_modulus())
            },
        }
    }

    /// All transforms: of q_0 … q_L, then of the special primes.
    #[doc(hidden)]
    pub fn tables(&self) -> &[NttTable] {
        &self.tables
    }

    /// The transforms of the special primes.
    #[doc(hidden)]
    pub fn special_tables(&self) -> &[NttTable] {
        &self.tables[self.chain.spec.primes()..]
    }

    /// q_`dropped`⁻¹ modulo q_j for j < `dropped`.
    pub(super) fn prime_inverses(&self, dropped: usize) -> &[Shoup] {
        &self.prime_inverses[dropped]
    }

    /// P modulo q_`index`.
    #[doc(hidden)]
    pub fn special_residue(&self, index: usize) -> u64 {
        let q = self.prime(index);
        let special = self.special_tables().iter().map(|table| table.modulus().value());
        special.fold(1, |product, prime| q.mul(product, q.reduce(prime)))
    }

    /// P⁻¹ modulo q_j.
    pub(super) fn special_inverses(&self) -> &[Shoup] {
        &self.special_inverses
    }

    /// The primes and scales.
    pub(super) fn chain(&self) -> &Arc<ModulusChain> {
        &self.chain
    }

    /// The number of digits at `level`.
    #[doc(hidden)]
    pub fn digits(&self, level: usize) -> usize {
        self.chain.digits(level)
    }

    /// The primes of a digit at `level`.
    #[doc(hidden)]
    pub fn digit_range(&self, level: usize, digit: usize) -> Range<usize> {
        self.chain.digit_range(level, digit)
    }

    /// From the primes of a digit to the others of the level and the special ones.
    pub(super) fn mod_up(&self, level: usize, digit: usize) -> &BasisConversion {
        &self.mod_up[level][digit]
    }

    /// From the special primes to those of the level.
    pub(super) fn mod_down(&self, level: usize) -> &BasisConversion {
        &self.mod_down[level]
    }

    /// From the prime of the level and the special primes to those of the level below.
    pub(super) fn mod_down_and_rescale(&self, level: usize) -> &BasisConversion {
        &self.mod_down_and_rescale[level - 1]
    }

    /// The index map of `X ↦ X^galois` on values.
    #[doc(hidden)]
    pub fn automorphism(&self, galois: u64) -> Arc<[u32]> {
        let mut known = self.automorphisms.lock().unwrap_or_else(PoisonError::into_inner);
        let compute = || self.tables[0].automorphism_permutation(galois).into();
        known.entry(galois).or_insert_with(compute).clone()
    }

    /// The canonical embedding.
    pub(super) fn slots(&self) -> &Slots {
        self.slots.get_or_init(|| match self.chain.spec.ring {
            Ring::Standard => Slots::Complex(Embedding::new(self.chain.spec.log_degree)),
            Ring::ConjugateInvariant => Slots::Real(RealEmbedding::new(self.chain.spec.log_degree)),
        })
    }

    /// δ: the mean square of a value over that of a coefficient.
    #[doc(hidden)]
    pub fn expansion(&self) -> f64 {
        self.chain.expansion()
    }

    /// The mean square of a real part of a value over that of a coefficient.
    pub(super) fn part_expansion(&self) -> f64 {
        self.chain.part_expansion()
    }

    /// Refuses an object of other parameters.
    #[doc(hidden)]
    pub fn check_same(&self, what: &'static str, other: &Params) -> Result<()> {
        self.check_id(what, other.id)
    }

    /// Refuses an object whose header names other parameters.
    pub(super) fn check_id(&self, what: &'static str, actual: ParamId) -> Result<()> {
        if actual == self.id {
            return Ok(());
        }
        let (expected, actual) = (self.id.to_string(), actual.to_string());
        Err(Error::Parameters { what, expected, actual })
    }
}

impl core::fmt::Debug for Params {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Params({}, {})",
            self.id,
            self.chain.spec.description(self.insecure, &self.chain.widths)
        )
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Params {}
