//! Half ring: sends fractions of a turn in few bytes, to become coefficients of a ciphertext of the
//! whole ring.
//!
//! A ciphertext of CKKS that is to be computed with carries all primes. One whose coefficients go
//! through functional bootstrapping next needs q_0 alone, and half the degree, as that reads half of
//! the coefficients: N/2 numbers take N/2 residues, rounded to as many bits as are wanted, and a seed
//! (IVE-PEL, arXiv 2606.03191, appendix A.6; docs/ckks.md, section 12).
//!
//! # To the ring of degree N, and the error
//!
//! **To the ring of degree N.** X ↦ X² takes a ciphertext under s_h to one under s_h(X²). Times 1 −
//! X^(N/2+1), coefficients 2t and 2t + 1 of the message are m_t and m_(t+N/4), t < N/4. Or a second
//! ciphertext takes the odd powers, a_0(X²) + X a_1(X²): then every coefficient is a number. A key
//! modulo q_0 p, p the one special prime, switches to s: samples under s, within the table at N.
//! s_h hides nothing of s, so no circle is closed. `place` and `place_in_pair` say which number
//! comes to which slot.
//!
//! **Error of x**, standard deviation over q_0: √(σ² + 1/12 + ((q_0/2^B)² + 1)/12 + δ (σ
//! q_0/p)²/12 + (1 + δ · 2/3)/12). At N = 2^16 all but B is 2^−42, so B decides: 2^−B/√12.

mod ciphertexts;
mod switch;

pub use ciphertexts::CompactCiphertexts;
pub use switch::RingSwitchKey;

use super::base_switch::tables;
use super::params::Params;
use super::spec::Ring;
use crate::error::{Error, Result};
use crate::params::{self, Security, SecurityStatement};
use ciphervec_arith::NttTable;
use ciphervec_arith::sample::GAUSSIAN_SIGMA;
use std::sync::Arc;

/// Fewest bits of a coefficient: below that nothing is told apart from its neighbours.
const LEAST_BITS: u32 = 8;

/// `Z[X]/(X^(N/2) + 1)` modulo q_0 beside the ring of degree N of some parameters, and how many bits
/// of a coefficient are sent.
#[derive(Debug)]
pub struct HalfRing {
    params: Arc<Params>,
    table: NttTable,
    bits: u32,
}

impl HalfRing {
    /// Beside the ring of `params`, which has complex slots and special primes. `bits` of each
    /// coefficient are sent: [`Self::deviation`] says what that costs, and all bits of q_0 cost
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Range`] for other parameters or another number of bits, [`Error::Insecure`] where
    /// q_0 is wider than the security table allows at degree N/2.
    pub fn new(params: &Arc<Params>, bits: u32) -> Result<Self> {
        let range =
            |what, expected: String, actual: String| Error::Range { what, expected, actual };
        if params.ring() != Ring::Standard || params.spec().special_primes == 0 {
            return Err(range(
                "parameters with a half ring beside them",
                "of the standard ring, with special primes".into(),
                format!("{:?}, {} of them", params.ring(), params.spec().special_primes),
            ));
        }
        let modulus = params.prime(0);
        if !(LEAST_BITS..=modulus.bits()).contains(&bits) {
            let expected = format!("{LEAST_BITS} to {}, those of q_0", modulus.bits());
            return Err(range("the bits of a coefficient", expected, bits.to_string()));
        }
        let degree = params.degree() / 2;
        if !params.is_insecure() {
            params::check(degree, modulus.bits(), params.spec().security)?;
        }
        let table = NttTable::new(degree, modulus.value())?;
        Ok(HalfRing { params: params.clone(), table, bits })
    }

    /// The parameters of the whole ring.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The transform modulo q_0.
    #[doc(hidden)]
    pub fn table(&self) -> &NttTable {
        &self.table
    }

    /// N/2: numbers of a ciphertext.
    pub fn messages(&self) -> usize {
        self.params.degree() / 2
    }

    /// Bits of a coefficient as it is sent.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Bytes of one ciphertext beside the seed, which all of a query share.
    pub fn bytes(&self) -> usize {
        self.messages() / 8 * self.bits as usize
    }

    /// The place of the number that coefficients-to-slots brings to `slot`, of a ciphertext that was
    /// switched alone: the real part of w_k, coefficient k, is number k/2, or for odd k number
    /// (k − 1)/2 + N/4.
    ///
    /// # Panics
    /// Unless `slot` is below N/2.
    pub fn place(&self, slot: usize) -> usize {
        let coefficient = self.coefficient(slot);
        coefficient / 2 + coefficient % 2 * (self.messages() / 2)
    }

    /// The same for a ciphertext that was switched as one of a pair: which of both, and the place in
    /// it of the number that comes to the real part of `slot`. That of the imaginary part is N/4
    /// places further on.
    ///
    /// # Panics
    /// Unless `slot` is below N/2.
    pub fn place_in_pair(&self, slot: usize) -> (usize, usize) {
        let coefficient = self.coefficient(slot);
        (coefficient % 2, coefficient / 2)
    }

    /// k of the w_k that comes to `slot`: the order of bits is reversed.
    fn coefficient(&self, slot: usize) -> usize {
        let messages = self.messages();
        assert!(slot < messages, "slot {slot} of {messages}");
        slot.reverse_bits() >> (usize::BITS - messages.trailing_zeros())
    }

    /// The standard deviation of what a number is off by after [`Self::switch`], in turns: fresh
    /// noise and the rounding of a message, the bits that are not sent, and the key switch.
    pub fn deviation(&self) -> f64 {
        let q = self.params.prime(0).value() as f64;
        let p = tables(&self.params)[1].modulus().value() as f64;
        let delta = self.params.expansion();
        let fresh = GAUSSIAN_SIGMA * GAUSSIAN_SIGMA + 1.0 / 12.0;
        let sent = (q / f64::exp2(f64::from(self.bits))).powi(2) / 12.0 + 1.0 / 12.0;
        let switched = delta * (GAUSSIAN_SIGMA * q / p).powi(2) / 12.0;
        let rounded = (1.0 + delta * 2.0 / 3.0) / 12.0;
        (fresh + sent + switched + rounded).sqrt() / q
    }

    /// What the secret of the half ring rests on: samples modulo q_0 of degree N/2, and none wider.
    pub fn security(&self) -> SecurityStatement {
        let (degree, bits) = (self.messages(), self.params.prime(0).bits());
        let insecure = self.params.is_insecure();
        let quantum = params::max_log_modulus(degree, Security::Quantum128);
        SecurityStatement {
            assumption: "ring learning with errors in degree N/2 modulo q_0",
            post_quantum: !insecure && quantum.is_some_and(|limit| bits <= limit),
            lattice: if insecure { None } else { params::estimate(degree, bits) },
            ..self.params.security()
        }
    }
}
