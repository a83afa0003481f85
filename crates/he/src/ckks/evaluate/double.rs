//! Doubled product: ciphertexts enter; `2 a b − 1` or `2 a b − c` leaves, of degree 2. Server only.
//!
//! The step of every recurrence for cosines, T_{m+n} = 2 T_m T_n − T_{|m−n|}. As one operation it
//! writes each residue once, where a product, a factor 2 and a difference copy whole ciphertexts
//! between them.

use super::super::ciphertext::Ciphertext;
use super::super::expected::Expected;
use super::super::plaintext::residue;
use super::super::poly::{Ntt, Poly};
use super::Evaluator;
use super::multiply::{halves, linear};
use crate::error::{Error, Result};
use ciphervec_arith::poly;

/// How far the ratio of two scales may be from the integer that stands for it, relative to it.
const NEARLY: f64 = 1.0 / (1u64 << 34) as f64;

impl Evaluator {
    /// `2 a b − c`, or `2 a b − 1` without a `c`: of degree 2 and not rescaled, as
    /// [`Self::multiply`]. `c` may be of a higher level than the factors are multiplied at; it is
    /// brought to the product's scale by an integer.
    ///
    /// # Errors
    /// As [`Self::multiply`]; [`Error::Range`] for a `c` of degree 2 or a lower level,
    /// [`Error::Scale`] for one whose scale no integer takes to the product's.
    pub fn double_product(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        c: Option<&Ciphertext>,
    ) -> Result<Ciphertext> {
        linear("a factor", a)?;
        linear("a factor", b)?;
        let [a, b] = self.join(a, b)?;
        self.chain().check_room("twice a product", &a.expected(), 2.0 * b.scale())?;
        let product = self.chain().product("twice a product", &a.expected(), &b.expected())?;
        let (level, scale) = (a.level(), a.scale() * b.scale());
        let subtrahend = c.map(|c| self.subtrahend(c, &a, scale)).transpose()?;
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
        let minus = |index: usize| subtrahend.map(|(c, factor)| (&c.parts()[index], factor));
        let mut parts = vec![
            part(&[a0], &[b0], minus(0)),
            part(&[a0, a1], &[b1, b0], minus(1)),
            part(&[a1], &[b1], None),
        ];
        if subtrahend.is_none() {
            parts[0].for_limbs(|_, table, limb| {
                let m = table.modulus();
                let one = residue(scale.round(), m);
                limb.iter_mut().for_each(|value| *value = m.sub(*value, one));
            });
        }
        let twice = product.noise.times(2.0);
        let (noise, magnitude) = match subtrahend {
            Some((c, factor)) => (twice.plus(c.noise().times(factor)), c.magnitude()),
            None => (twice, 1.0),
        };
        let magnitude = 2.0 * a.magnitude() * b.magnitude() + magnitude;
        let slots = product.slots.max(c.map_or(0, Ciphertext::slots));
        Ok(a.become_with(parts, &Expected { slots, noise, magnitude, ..product }))
    }

    /// What is subtracted, with the integer that takes it to the product's scale.
    fn subtrahend<'a>(
        &self,
        c: &'a Ciphertext,
        factor: &Ciphertext,
        scale: f64,
    ) -> Result<(&'a Ciphertext, f64)> {
        self.check(c)?;
        factor.check_same(c)?;
        linear("what is subtracted", c)?;
        if c.level() < factor.level() {
            return Err(Error::Range {
                what: "the level of what is subtracted",
                expected: format!("at least {}, that of the product", factor.level()),
                actual: c.level().to_string(),
            });
        }
        let ratio = scale / c.scale();
        if ratio < 0.5 || (ratio.round() / ratio - 1.0).abs() > NEARLY {
            return Err(Error::Scale {
                operation: "a difference from twice a product",
                expected: format!("2^{:.9} divided by an integer", scale.log2()),
                actual: format!("2^{:.9}", c.scale().log2()),
                advice: "subtract after a rescale",
            });
        }
        Ok((c, ratio.round()))
    }
}
