//! Message power `(1 + n)^m` mod `n^(s+1)`.

use crate::additive::Messages;
use crate::biguint;
use crate::error::Result;
use crate::factoring::Group;
use ciphervec_arith::montgomery::Residues;
use crypto_bigint::BoxedUint;
use zeroize::Zeroizing;

/// What the binomial expansion needs, once for a key.
pub(crate) struct Binomial {
    /// `n^0` to `n^s`.
    powers: Vec<BoxedUint>,
    /// The inverses of 2 and 6 modulo `n^s`.
    half: BoxedUint,
    sixth: BoxedUint,
}

impl Binomial {
    /// For messages modulo `n^s`; `n` is odd and not a multiple of 3.
    pub(crate) fn new(n: &BoxedUint, s: u32) -> Option<Self> {
        let powers: Vec<BoxedUint> = (0..=s).map(|power| biguint::raised(n, power)).collect();
        let largest = &powers[s as usize];
        Some(Binomial {
            half: biguint::inverse_mod(&biguint::small(2), largest)?,
            sixth: biguint::inverse_mod(&biguint::small(6), largest)?,
            powers,
        })
    }

    /// `s`.
    pub(crate) fn s(&self) -> usize {
        self.powers.len() - 1
    }

    /// `n^s`: messages live modulo this.
    pub(crate) fn limit(&self) -> &BoxedUint {
        &self.powers[self.s()]
    }

    /// `((1 + n)^m - 1) / n` modulo `n^s`: `m + C(m, 2) n + C(m, 3) n^2`.
    pub(crate) fn expand(&self, m: &BoxedUint) -> BoxedUint {
        let s = self.s();
        let mut value = Zeroizing::new(biguint::resized(m, self.limit().bits_precision()));
        if s == 1 {
            return (*value).clone();
        }
        let one = biguint::small(1);
        // m (m - 1) / 2, then that times (m - 2) / 3; each only modulo what its power of n leaves
        // of n^s.
        let less = |by: u64, modulus: &BoxedUint| {
            let by = biguint::small(by);
            biguint::difference_mod(&biguint::reduced(m, modulus), &by, modulus)
        };
        let modulus = &self.powers[s - 1];
        let pair = biguint::product_mod(m, &less(1, modulus), modulus);
        let second = biguint::product_mod(&pair, &self.half, modulus);
        let mut add = |term: &BoxedUint, power: usize| {
            let term = biguint::product_mod(term, &self.powers[power], self.limit());
            let sum = biguint::sum(&value, &term);
            *value = biguint::reduced(&sum, self.limit());
        };
        add(&second, 1);
        if s == 3 {
            let modulus = &self.powers[1];
            let triple = biguint::product_mod(&pair, &less(2, modulus), modulus);
            let third = biguint::product_mod(&triple, &self.sixth, modulus);
            add(&biguint::product_mod(&third, &one, modulus), 2);
        }
        (*value).clone()
    }

    /// `(1 + n)^m` for every message, each below `n^s / 2` in absolute value.
    pub(crate) fn encode(
        &self,
        group: &Group,
        rows: usize,
        columns: usize,
        messages: &Messages,
    ) -> Result<Residues> {
        let (size, words) = (group.modulus.element_words(), group.modulus.words());
        let mut digits = Zeroizing::new(vec![0; size * messages.len()]);
        for (at, element) in digits.chunks_exact_mut(size).enumerate() {
            element[0] = 1;
            let m = crate::factoring::residue(messages.row(at), self.limit().as_words());
            if self.s() == 1 {
                element[words..].copy_from_slice(&m);
            } else {
                let value = Zeroizing::new(self.expand(&biguint::from_words(&m)));
                let rest = biguint::digits(&value, &group.n, self.s(), words);
                element[words..].copy_from_slice(&rest);
            }
        }
        Ok(Residues::from_digits(&group.modulus, rows, columns, &digits)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expansion_is_the_power() {
        let n = biguint::from_words(&[0xffff_ffff_ffff_ffc5, 3]);
        for s in 1..=3u32 {
            let binomial = Binomial::new(&n, s).unwrap();
            let modulus = biguint::raised(&n, s + 1);
            for m in [0u64, 1, 2, 3, 1 << 40, u64::MAX] {
                for negative in [false, true] {
                    let m = biguint::resized(&biguint::small(m), binomial.limit().bits_precision());
                    let zero = biguint::small(0);
                    let m = if negative {
                        biguint::difference_mod(&zero, &m, binomial.limit())
                    } else {
                        m
                    };
                    let base = biguint::trimmed(&biguint::sum(&n, &biguint::small(1)));
                    let base = biguint::resized(&base, modulus.bits_precision());
                    let expected = base.pow_mod(&m, &modulus.to_odd().unwrap());
                    let found = biguint::sum(
                        &biguint::product(&binomial.expand(&m), &n),
                        &biguint::small(1),
                    );
                    assert_eq!(biguint::reduced(&found, &modulus), expected, "{s}");
                }
            }
        }
    }
}
