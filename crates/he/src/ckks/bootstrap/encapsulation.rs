//! Encapsulation: a ciphertext at level 0 enters, at the highest level it leaves. Server only.
//!
//! Raising the modulus leaves multiples of q_0 in the coefficients, as many as the secret is heavy.
//! So the ciphertext is first switched to a secret with few coefficients that are not zero, raised
//! under it, and switched back (Bossuat, Troncoso-Pastoriza & Hubaux, IACR ePrint 2022/024). What is
//! known of the sparse secret is modulo q_0 and one special prime only, where it is as hard to find
//! as the dense one is modulo all of them.

use super::super::key_switch::{KeySwitch, PostProcess};
use super::super::keys::KeySwitchKey;
use super::super::params::Params;
use super::super::poly::{Ntt, Poly};
use super::super::serialize::{limb_bytes, pack_limb, unpack_limb};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{NttTable, convert, poly};
use std::sync::Arc;
#[cfg(feature = "client")]
use {
    super::super::entropy::Entropy, super::super::small_polynomial::SmallPolynomial,
    zeroize::Zeroizing,
};

/// The two keys.
pub(super) struct Encapsulation {
    to_sparse: SparseKey,
    to_dense: KeySwitchKey,
}

/// (b, a) modulo q_0 and the first special prime p, with b = −a s' + e + p s for the sparse s'.
struct SparseKey {
    seed: [u8; 32],
    constant: [Vec<u64>; 2],
    linear: [Vec<u64>; 2],
}

/// The transforms modulo q_0 and p.
fn tables(params: &Params) -> [&NttTable; 2] {
    [params.table(0), &params.special_tables()[0]]
}

impl SparseKey {
    fn expand(params: &Params, seed: &[u8; 32]) -> [Vec<u64>; 2] {
        let mut stream = 0;
        tables(params).map(|table| {
            let mut limb = vec![0; params.degree()];
            Stream::new(seed, stream).uniform(table.modulus(), &mut limb);
            stream += 1;
            limb
        })
    }

    /// `sparse` and `dense` are the values of both secrets modulo q_0 and p.
    #[cfg(feature = "client")]
    fn generate(
        params: &Params,
        sparse: [&[u64]; 2],
        dense: [&[u64]; 2],
        entropy: &mut Entropy,
    ) -> Result<Self> {
        let seed = *entropy.seed()?;
        let noise_seed = entropy.seed()?;
        let noise = SmallPolynomial::gaussian(params.degree(), &noise_seed, 0);
        let linear = Self::expand(params, &seed);
        let special = tables(params)[1].modulus().value();
        let limb = |index: usize| {
            let table = tables(params)[index];
            let m = table.modulus();
            let mut b = vec![0; params.degree()];
            noise.lift(&mut b, m);
            table.forward(&mut b);
            let mut product = Zeroizing::new(vec![0; params.degree()]);
            poly::mul(&mut product, &linear[index], sparse[index], m);
            poly::sub_assign(&mut b, &product, m);
            if index == 0 {
                product.copy_from_slice(dense[index]);
                poly::scalar_mul_assign(&mut product, m.reduce(special), m);
                poly::add_assign(&mut b, &product, m);
            }
            b
        };
        let constant = [limb(0), limb(1)];
        Ok(SparseKey { seed, constant, linear })
    }

    /// Of c_1 at level 0 both parts under the sparse secret: (c_1 b, c_1 a)/p, rounded.
    fn switch(&self, input: &Poly<Ntt>) -> [Poly<Ntt>; 2] {
        let params = input.params();
        let [base, special] = tables(params);
        let (q, p) = (base.modulus(), special.modulus());
        let coefficients = input.coefficients();
        let mut wide = params.pool.take(params.degree());
        convert::recentre_to(&mut wide, coefficients.limb(0), q, p);
        special.forward(&mut wide);
        let negated = q.inv(q.reduce(p.value())).map_or(0, |inverse| q.neg(inverse));
        [&self.constant, &self.linear].map(|[modulo_q, modulo_p]| {
            let mut remainder = params.pool.take(params.degree());
            poly::mul(&mut remainder, &wide, modulo_p, p);
            special.inverse(&mut remainder);
            let mut out = Poly::scratch(params, 0);
            convert::recentre_to(out.limb_mut(0), &remainder, p, q);
            base.forward(out.limb_mut(0));
            poly::mul(&mut remainder, input.limb(0), modulo_q, q);
            // (x − r)/p as (r − x) (−1/p).
            poly::sub_scale_assign(out.limb_mut(0), &remainder, &q.shoup(negated), q);
            out
        })
    }
}

impl Encapsulation {
    /// Keys to a fresh sparse secret of `weight` and back from it, which nobody keeps; `dense` has
    /// the values of the secret modulo all primes.
    #[cfg(feature = "client")]
    pub fn generate(
        params: &Params,
        weight: usize,
        dense: &[u64],
        entropy: &mut Entropy,
    ) -> Result<Self> {
        let degree = params.degree();
        let secret = SmallPolynomial::sparse(degree, weight, &*entropy.seed()?, 0);
        let mut sparse = Zeroizing::new(vec![0; dense.len()]);
        for (table, limb) in params.tables().iter().zip(sparse.chunks_exact_mut(degree)) {
            secret.lift(limb, table.modulus());
            table.forward(limb);
        }
        let limbs = |values: &'_ [u64]| -> [core::ops::Range<usize>; 2] {
            debug_assert_eq!(values.len(), params.tables().len() * degree);
            [0, params.spec().primes()].map(|index| index * degree..(index + 1) * degree)
        };
        let [q, p] = limbs(dense);
        let to_sparse = SparseKey::generate(
            params,
            [&sparse[q.clone()], &sparse[p.clone()]],
            [&dense[q], &dense[p]],
            entropy,
        )?;
        let to_dense = KeySwitchKey::generate(params, params.max_level(), dense, &sparse, entropy)?;
        Ok(Encapsulation { to_sparse, to_dense })
    }

    /// Bytes serialised.
    pub fn bytes_at(params: &Params) -> usize {
        let limbs: usize = tables(params).iter().map(|table| limb_bytes(params, table)).sum();
        32 + limbs + KeySwitchKey::bytes_at(params, params.max_level())
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        let sparse = self.to_sparse.constant.iter().chain(&self.to_sparse.linear);
        sparse.map(|limb| 8 * limb.len()).sum::<usize>() + self.to_dense.memory()
    }

    /// The seed and b of the first key, then the second.
    pub fn append(&self, params: &Params, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_sparse.seed);
        for (table, limb) in tables(params).iter().zip(&self.to_sparse.constant) {
            pack_limb(limb, table.modulus(), out);
        }
        self.to_dense.append(params, out);
    }

    /// Reads what [`Self::append`] wrote.
    ///
    /// # Errors
    /// Too few bytes, or a residue that is not below its prime.
    pub fn read(params: &Params, reader: &mut Reader<'_>) -> Result<Self> {
        let seed = reader.array()?;
        let mut constant = [(); 2].map(|()| vec![0; params.degree()]);
        for (table, limb) in tables(params).iter().zip(&mut constant) {
            unpack_limb(reader, table.modulus(), limb)?;
        }
        let linear = SparseKey::expand(params, &seed);
        let to_dense = KeySwitchKey::read(params, params.max_level(), reader)?;
        Ok(Encapsulation { to_sparse: SparseKey { seed, constant, linear }, to_dense })
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
