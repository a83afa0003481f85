//! Parameters of the ring form: moduli and transforms.

use crate::error::{Error, Result};
use crate::lattice::Scales;
use crate::params::{self, ParamId, Security};
use ciphervec_arith::modulus::{Modulus, Shoup};
use ciphervec_arith::ntt::NttTable;
use ciphervec_arith::parallel::*;
use ciphervec_arith::ring;

/// Ring degree N.
pub const DEGREE: usize = 4096;
/// log2 N: the deepest level of the query tree.
pub const MAX_LEVEL: u8 = 12;
/// Bits of q, and of the special prime P.
pub const PRIME_BITS: u32 = 50;
/// Bytes of one packed polynomial.
pub const POLY_BYTES: usize = DEGREE * PRIME_BITS as usize / 8;

/// How much of q/2 a perfect match may fill: the rest is headroom for noise, so that ±1 never
/// wraps.
const FILL: f64 = 0.93;

/// Epochs from here on are sessions: a client draws one for some queries of its own, and its evaluation
/// keys follow from the number. Those before are counted up, one collection's for all its clients.
pub const SESSION_EPOCHS: u32 = 1 << 31;

/// Whether an epoch is a session of some client's.
pub fn is_session(epoch: u32) -> bool {
    epoch >= SESSION_EPOCHS
}

/// The parameter set of the ring form with its transform tables.
pub struct Ring {
    pub(super) ciphertext: NttTable,
    pub(super) special: NttTable,
    /// P⁻¹ mod q.
    pub(super) special_inverse: Shoup,
    /// NTT form of X^(2^k) for k = 0 … 11.
    pub(super) monomials: Vec<Vec<u64>>,
    /// Index maps of X ↦ X^(N/2^k + 1) on the NTT form.
    pub(super) automorphisms: Vec<Vec<u32>>,
}

impl Ring {
    /// Builds the tables.
    ///
    /// # Errors
    /// [`Error::Insecure`] if q·P were too wide for the degree.
    pub fn new() -> Result<Self> {
        params::check(DEGREE, 2 * PRIME_BITS, Security::Classical128)?;
        let primes = ciphervec_arith::ntt_primes(PRIME_BITS, DEGREE, 2)?;
        let ciphertext = NttTable::new(DEGREE, primes[0])?;
        let special = NttTable::new(DEGREE, primes[1])?;
        let q = ciphertext.modulus();
        let special_inverse = q.inv(q.reduce(primes[1])).ok_or_else(|| Error::Range {
            what: "the special prime",
            expected: "coprime to q".into(),
            actual: primes[1].to_string(),
        })?;
        let special_inverse = q.shoup(special_inverse);
        let monomials = (0..MAX_LEVEL)
            .map(|level| {
                let mut monomial = vec![0; DEGREE];
                monomial[1 << level] = 1;
                ciphertext.forward(&mut monomial);
                monomial
            })
            .collect();
        let automorphisms = (0..MAX_LEVEL)
            .map(|level| ciphertext.automorphism_permutation(galois_element(level)))
            .collect();
        Ok(Ring { ciphertext, special, special_inverse, monomials, automorphisms })
    }

    /// The ciphertext modulus q.
    pub fn modulus(&self) -> &Modulus {
        self.ciphertext.modulus()
    }

    /// The transforms modulo q and modulo the special prime.
    #[doc(hidden)]
    pub fn tables(&self) -> [&NttTable; 2] {
        [&self.ciphertext, &self.special]
    }

    /// What tree step `level` does to values in NTT form.
    #[doc(hidden)]
    pub fn automorphism(&self, level: u8) -> &[u32] {
        &self.automorphisms[usize::from(level)]
    }

    /// Refuses packed polynomials with a residue at or above q, as untrusted segments must be
    /// before they are scanned.
    ///
    /// # Errors
    /// [`Error::Malformed`] naming the residue.
    pub fn check_packed(&self, packed: &[u8]) -> Result<()> {
        packed.par_chunks(POLY_BYTES).enumerate().try_for_each(|(index, bytes)| {
            let count = bytes.len() / (PRIME_BITS as usize) * 8;
            let mut poly = [0; DEGREE];
            ring::unpack50(bytes, &mut poly[..count]);
            let bad = poly.iter().filter(|&&residue| residue >= self.modulus().value()).count();
            if bad == 0 {
                return Ok(());
            }
            let detail = format!("{bad} residues of polynomial {index} are not below the modulus");
            Err(Error::malformed("a segment", detail))
        })
    }

    /// The public name of the parameter set.
    pub fn param_id() -> ParamId {
        ParamId::of(
            "sealed ring: N=4096 q, P = two largest 50-bit primes = 1 mod 8192, ternary sigma=3.2",
        )
    }

    /// Scales for unit vectors under a query that serves levels up to `top_level`: 2^k Δq Δx ≤ 0.93
    /// q/2.
    ///
    /// `vector` is fixed when a segment is sealed; the query takes what is left.
    pub fn scales(&self, vector: f64, top_level: u8) -> Scales {
        let capacity = FILL * self.modulus().value() as f64 / 2.0;
        Scales { vector, query: capacity / vector / f64::exp2(f64::from(top_level)) }
    }
}

/// The Galois element of tree step k: X ↦ X^(N/2^k + 1) keeps X^(2^(k+1)) and negates X^(2^k).
pub(super) fn galois_element(level: u8) -> u64 {
    (DEGREE as u64 >> level) + 1
}

/// Packs canonical residues to 50 bits each.
pub(super) fn pack_poly(poly: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + POLY_BYTES, 0);
    ring::pack50(poly, &mut out[start..]);
}

/// Unpacks [`POLY_BYTES`] bytes; residues at or above q are refused.
pub fn unpack_poly(what: &'static str, bytes: &[u8], modulus: &Modulus) -> Result<Vec<u64>> {
    let mut poly = vec![0; DEGREE];
    ring::unpack50(bytes, &mut poly);
    match poly.iter().position(|&residue| residue >= modulus.value()) {
        None => Ok(poly),
        Some(index) => Err(Error::malformed(
            what,
            format!("residue {index} is {}, not below the modulus", poly[index]),
        )),
    }
}
