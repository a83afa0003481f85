//! Raises a ciphertext from level 0 to the highest one, under a sparse secret. Server only; its
//! keys are public.
//!
//! Raising the modulus leaves multiples of q_0 in the coefficients, as many as the secret is heavy.
//! So the ciphertext is first switched to a secret with few coefficients that are not zero, raised
//! under it, and switched back (Bossuat, Troncoso-Pastoriza & Hubaux, IACR ePrint 2022/024). What is
//! known of the sparse secret is modulo q_0 and one special prime only, where it is as hard to find
//! as the dense one is modulo all of them.

use super::super::base_switch::BaseSwitchKey;
use super::super::key_switch::{KeySwitch, PostProcess};
use super::super::keys::KeySwitchKey;
use super::super::params::Params;
use super::super::poly::{Ntt, Poly};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::convert;
use std::sync::Arc;

/// The two keys.
pub struct Encapsulation {
    to_sparse: BaseSwitchKey,
    to_dense: KeySwitchKey,
}

impl Encapsulation {
    /// Keys to a sparse secret and back from it.
    pub fn from_parts(to_sparse: BaseSwitchKey, to_dense: KeySwitchKey) -> Self {
        Encapsulation { to_sparse, to_dense }
    }

    /// Bytes serialised.
    pub fn bytes_at(params: &Params) -> usize {
        BaseSwitchKey::bytes(params) + KeySwitchKey::bytes_at(params, params.max_level())
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.to_sparse.memory() + self.to_dense.memory()
    }

    /// The seed and b of the first key, then the second.
    pub fn append(&self, params: &Params, out: &mut Vec<u8>) {
        self.to_sparse.append(params, out);
        self.to_dense.append(params, out);
    }

    /// Reads what [`Self::append`] wrote.
    ///
    /// # Errors
    /// Too few bytes, or a residue that is not below its prime.
    pub fn read(params: &Params, reader: &mut Reader<'_>) -> Result<Self> {
        let to_sparse = BaseSwitchKey::read(params, reader)?;
        let to_dense = KeySwitchKey::read(params, params.max_level(), reader)?;
        Ok(Encapsulation { to_sparse, to_dense })
    }

    /// Both parts of a ciphertext at level 0, raised: c_0 + c_1 s is what it was modulo q_0, as a
    /// small integer in every coefficient, at the highest level.
    pub fn raise(&self, parts: [&Poly<Ntt>; 2]) -> Vec<Poly<Ntt>> {
        let [constant, linear] = parts;
        let [mut first, second] = self.to_sparse.switch(linear);
        first.add_assign(constant);
        let [first, second] = [first, second].map(|part| lifted(&part));
        let switch = KeySwitch {
            input: &second,
            key: &self.to_dense,
            plus: [Some(&first), None],
            post: PostProcess::Keep,
        };
        switch.run()
    }
}

/// The centred residues modulo q_0 at the highest level.
fn lifted(part: &Poly<Ntt>) -> Poly<Ntt> {
    let params: &Arc<Params> = part.params();
    let coefficients = part.coefficients();
    let mut out = Poly::scratch(params, params.max_level());
    out.for_limbs(|_, table, limb| {
        convert::recentre_to(limb, coefficients.limb(0), params.prime(0), table.modulus());
        table.forward(limb);
    });
    out
}
