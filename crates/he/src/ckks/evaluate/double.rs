//! Doubled product `2 a b − 1` or `2 a b − c` of ciphertexts, of degree 2. Server only.
//!
//! The step of every recurrence for cosines, T_{m+n} = 2 T_m T_n − T_{|m−n|}. As one operation it
//! writes each residue once, where a product, a factor 2 and a difference copy whole ciphertexts
//! between them.

use super::super::ciphertext::Ciphertext;
use super::super::plaintext::residue;
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use super::multiply::{halves, linear};
use crate::error::Result;
use ciphervec_arith::poly;

impl Evaluator {
    /// `2 a b − c`, or `2 a b − 1` without a `c`: of degree 2 and not rescaled, as
    /// [`Self::multiply`]. `c` may be of a higher level than the factors are multiplied at; it is
    /// brought to the product's scale by an integer.
    ///
    /// # Errors
    /// As [`Self::multiply`]; [`crate::Error::Range`] for a `c` of degree 2 or a lower level,
    /// [`crate::Error::Scale`] for one whose scale no integer takes to the product's.
    pub fn double_product(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        c: Option<&Ciphertext>,
    ) -> Result<Ciphertext> {
        linear("a factor", a)?;
        linear("a factor", b)?;
        let [a, b] = self.join(a, b)?;
        if let Some(c) = c {
            self.check(c)?;
            a.check_same(c)?;
        }
        let known = c.map(Ciphertext::expected);
        let (factor, expected) =
            self.chain().doubled(&a.expected(), &b.expected(), known.as_ref())?;
        let (level, scale) = (a.level(), expected.scale);
        let ([a0, a1], [b0, b1]) = (halves(&a)?, halves(&b)?);
        let part = |left: &[&Poly<Ntt>], right: &[&Poly<Ntt>], minus: Option<(&Poly<Ntt>, f64)>| {
            let mut out = Poly::scratch(&self.params, level);
            out.for_limbs(|i, table, limb| {
                let m = table.modulus();
                let [left, right] =
                    [left, right].map(|side| side.iter().map(|x| x.limb(i)).collect::<Vec<_>>());
                poly::dot(limb, &left, &right, m);
                poly::scalar_mul_assign(limb, 2, m);
                if let Some((minus, factor)) = minus {
                    let mut scaled = self.params.pool.take(limb.len());
                    scaled.copy_from_slice(minus.limb(i));
                    poly::scalar_mul_assign(&mut scaled, residue(factor, m), m);
                    poly::sub_assign(limb, &scaled, m);
                }
            });
            out
        };
        let minus = |index: usize| c.map(|c| (&c.parts()[index], factor));
        let mut parts = vec![
            part(&[a0], &[b0], minus(0)),
            part(&[a0, a1], &[b1, b0], minus(1)),
            part(&[a1], &[b1], None),
        ];
        if c.is_none() {
            parts[0].for_limbs(|_, table, limb| {
                let m = table.modulus();
                let one = residue(scale.round(), m);
                limb.iter_mut().for_each(|value| *value = m.sub(*value, one));
            });
        }
        Ok(a.become_with(parts, &expected))
    }
}
