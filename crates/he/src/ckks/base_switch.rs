//! Base switching: takes a part of a ciphertext modulo q_0 to another secret, with a public key.
//!
//! The key is modulo q_0 and one special prime, whatever the chain: where a ciphertext has only q_0
//! left nothing wider is needed, and nothing wider is known of the secret that it switches to.

use super::params::Params;
use super::poly::{Ntt, Poly};
use super::serialize::{limb_bytes, pack_limb, unpack_limb};
use crate::error::Result;
use crate::wire::Reader;
use ciphervec_arith::sample::Stream;
use ciphervec_arith::{NttTable, convert, poly};

/// (b, a) modulo q_0 and the first special prime p, with b = −a s' + e + p s: from s to s'.
pub struct BaseSwitchKey {
    seed: [u8; 32],
    constant: [Vec<u64>; 2],
    linear: [Vec<u64>; 2],
}

/// The transforms modulo q_0 and p.
pub fn tables(params: &Params) -> [&NttTable; 2] {
    [params.table(0), &params.special_tables()[0]]
}

impl BaseSwitchKey {
    /// The key of a seed, the b that belongs to it and the a that [`Self::expand`] makes of it.
    pub fn from_parts(seed: [u8; 32], constant: [Vec<u64>; 2], linear: [Vec<u64>; 2]) -> Self {
        BaseSwitchKey { seed, constant, linear }
    }

    /// a of a seed.
    pub fn expand(params: &Params, seed: &[u8; 32]) -> [Vec<u64>; 2] {
        let mut stream = 0;
        tables(params).map(|table| {
            let mut limb = vec![0; params.degree()];
            Stream::new(seed, stream).uniform(table.modulus(), &mut limb);
            stream += 1;
            limb
        })
    }

    /// Bytes serialised.
    pub fn bytes(params: &Params) -> usize {
        32 + tables(params).iter().map(|table| limb_bytes(params, table)).sum::<usize>()
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        self.constant.iter().chain(&self.linear).map(|limb| 8 * limb.len()).sum()
    }

    /// The seed and b.
    pub fn append(&self, params: &Params, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seed);
        for (table, limb) in tables(params).iter().zip(&self.constant) {
            pack_limb(limb, table.modulus(), out);
        }
    }

    /// Reads what [`Self::append`] wrote, under parameters with special primes.
    ///
    /// # Errors
    /// Too few bytes, or a residue that is not below its prime.
    pub fn read(params: &Params, reader: &mut Reader<'_>) -> Result<Self> {
        let seed = reader.array()?;
        let mut constant = [(); 2].map(|()| vec![0; params.degree()]);
        for (table, limb) in tables(params).iter().zip(&mut constant) {
            unpack_limb(reader, table.modulus(), limb)?;
        }
        let linear = Self::expand(params, &seed);
        Ok(BaseSwitchKey { seed, constant, linear })
    }

    /// Of c_1 at level 0 both parts under the other secret: (c_1 b, c_1 a)/p, rounded.
    pub fn switch(&self, input: &Poly<Ntt>) -> [Poly<Ntt>; 2] {
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
