//! Arithmetic modulo 2^255 − 19 on five limbs of 51 bits. No branch depends on a value.

use core::ops::{Add, Mul, Neg, Sub};

/// A number modulo p = 2^255 − 19.
///
/// Limbs of results stay below 2^52, of sums and differences below 2^54; products take both.
#[derive(Clone, Copy, Debug)]
pub struct Field([u64; 5]);

const MASK: u64 = (1 << 51) - 1;
/// 4 p: added before a subtraction, so that no limb falls below zero.
const FOUR_P: [u64; 5] = [4 * (MASK - 18), 4 * MASK, 4 * MASK, 4 * MASK, 4 * MASK];

impl Field {
    /// Zero.
    pub const ZERO: Field = Field([0; 5]);
    /// One.
    pub const ONE: Field = Field([1, 0, 0, 0, 0]);
    /// `d = −121665/121666` of edwards25519.
    pub const D: Field = Field([
        0x34dca135978a3,
        0x1a8283b156ebd,
        0x5e7a26001c029,
        0x739c663a03cbb,
        0x52036cee2b6ff,
    ]);
    /// The even square root of −1.
    const ROOT_OF_MINUS_ONE: Field =
        Field([0x61b274a0ea0b0, 0xd5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d]);

    /// The number in 32 little-endian bytes, unless it is p or more.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Field> {
        let word = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let limbs = [
            word(0) & MASK,
            (word(6) >> 3) & MASK,
            (word(12) >> 6) & MASK,
            (word(19) >> 1) & MASK,
            word(24) >> 12,
        ];
        let number = Field(limbs);
        (number.to_bytes() == *bytes).then_some(number)
    }

    /// 32 little-endian bytes of the number in `0 … p − 1`.
    pub fn to_bytes(self) -> [u8; 32] {
        let limbs = self.canonical();
        let words = [
            limbs[0] | limbs[1] << 51,
            limbs[1] >> 13 | limbs[2] << 38,
            limbs[2] >> 26 | limbs[3] << 25,
            limbs[3] >> 39 | limbs[4] << 12,
        ];
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The limbs of the number in `0 … p − 1`.
    fn canonical(self) -> [u64; 5] {
        let Field(mut limbs) = carried(self.0);
        // The number is below 2p: it is p or more exactly if adding 19 carries out of the top.
        let mut carry = 19;
        for limb in limbs {
            carry = (limb + carry) >> 51;
        }
        let mut carry = 19 * carry;
        for limb in &mut limbs {
            *limb += carry;
            carry = *limb >> 51;
            *limb &= MASK;
        }
        limbs
    }

    /// The low 64 bits of the even one of the number and its negative: a name for both.
    pub fn even_word(self) -> u64 {
        let limbs = self.canonical();
        let low = limbs[0] | limbs[1] << 51;
        // p is odd, so p − x is even exactly if x is odd; modulo 2^64 it is −19 − x.
        let negated = 19u64.wrapping_neg().wrapping_sub(low);
        let odd = 0u64.wrapping_sub(low & 1);
        (low & !odd) | (negated & odd)
    }

    /// The square.
    #[inline(always)]
    #[must_use]
    pub fn square(self) -> Field {
        let a = self.0;
        let m = |x: u64, y: u64| u128::from(x) * u128::from(y);
        let [d0, d1] = [2 * a[0], 2 * a[1]];
        let [n3, n4] = [19 * a[3], 19 * a[4]];
        folded([
            m(a[0], a[0]) + m(d1, n4) + m(2 * a[2], n3),
            m(d0, a[1]) + m(2 * a[2], n4) + m(a[3], n3),
            m(d0, a[2]) + m(a[1], a[1]) + m(2 * a[3], n4),
            m(d0, a[3]) + m(d1, a[2]) + m(a[4], n4),
            m(d0, a[4]) + m(d1, a[3]) + m(a[2], a[2]),
        ])
    }

    fn square_times(self, count: u32) -> Field {
        (0..count).fold(self, |x, _| x.square())
    }

    /// `x^(2^250 − 1)` and `x^11`, which inversion and roots share.
    fn common_powers(self) -> (Field, Field) {
        let two = self.square();
        let nine = self * two.square_times(2);
        let eleven = two * nine;
        let ones5 = nine * eleven.square();
        let ones10 = ones5.square_times(5) * ones5;
        let ones20 = ones10.square_times(10) * ones10;
        let ones40 = ones20.square_times(20) * ones20;
        let ones50 = ones40.square_times(10) * ones10;
        let ones100 = ones50.square_times(50) * ones50;
        let ones200 = ones100.square_times(100) * ones100;
        (ones200.square_times(50) * ones50, eleven)
    }

    /// The inverse, `x^(p − 2)`; zero for zero.
    #[must_use]
    pub fn invert(self) -> Field {
        let (ones250, eleven) = self.common_powers();
        ones250.square_times(5) * eleven
    }

    /// Replaces every number by its inverse, at one inversion and three multiplications each. None
    /// may be zero.
    pub fn invert_all(numbers: &mut [Field]) {
        let mut product = Field::ONE;
        let mut before = Vec::with_capacity(numbers.len());
        for number in numbers.iter() {
            before.push(product);
            product = product * *number;
        }
        let mut inverse = product.invert();
        for (number, before) in numbers.iter_mut().zip(before).rev() {
            (*number, inverse) = (inverse * before, inverse * *number);
        }
    }

    /// The even `r` with `r² x = 1`, or `None` if `x` is no square or zero.
    pub fn inverse_root(self) -> Option<Field> {
        // x^((p − 5)/8 · 7 + 3) as in RFC 9496, section 4.2, with u = 1: r = x³ (x⁷)^((p − 5)/8).
        let cube = self.square() * self;
        let seventh = cube.square() * self;
        let (ones250, _) = seventh.common_powers();
        let candidate = cube * ones250.square_times(2) * seventh;
        let check = candidate.square() * self;
        if check == Field::ONE {
            Some(candidate.abs())
        } else if check == -Field::ONE {
            Some((candidate * Field::ROOT_OF_MINUS_ONE).abs())
        } else {
            None
        }
    }

    /// Whether the number in `0 … p − 1` is odd, which is what "negative" means in RFC 9496.
    pub fn is_negative(self) -> bool {
        self.canonical()[0] & 1 == 1
    }

    /// The even one of the number and its negative.
    #[must_use]
    pub fn abs(self) -> Field {
        let mask = 0u64.wrapping_sub(u64::from(self.is_negative()));
        let other = -self;
        Field(core::array::from_fn(|i| self.0[i] ^ (mask & (self.0[i] ^ other.0[i]))))
    }
}

/// Limbs below 2^63 to limbs below 2^51 + 2^17.
#[inline(always)]
fn carried(limbs: [u64; 5]) -> Field {
    let carries: [u64; 5] = core::array::from_fn(|i| limbs[i] >> 51);
    Field([
        (limbs[0] & MASK) + 19 * carries[4],
        (limbs[1] & MASK) + carries[0],
        (limbs[2] & MASK) + carries[1],
        (limbs[3] & MASK) + carries[2],
        (limbs[4] & MASK) + carries[3],
    ])
}

/// Columns of a product, below 2^115, to limbs below 2^52.
#[inline(always)]
fn folded(mut columns: [u128; 5]) -> Field {
    let mask = u128::from(MASK);
    for i in 0..4 {
        columns[i + 1] += columns[i] >> 51;
    }
    let top = (columns[4] >> 51) as u64;
    let low = columns.map(|column| (column & mask) as u64);
    let first = low[0] + 19 * top;
    Field([first & MASK, low[1] + (first >> 51), low[2], low[3], low[4]])
}

impl Add for Field {
    type Output = Field;

    #[inline(always)]
    fn add(self, other: Field) -> Field {
        let (a, b) = (self.0, other.0);
        carried([a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]])
    }
}

impl Sub for Field {
    type Output = Field;

    #[inline(always)]
    fn sub(self, other: Field) -> Field {
        let (a, b) = (self.0, other.0);
        carried(core::array::from_fn(|i| a[i] + FOUR_P[i] - b[i]))
    }
}

impl Neg for Field {
    type Output = Field;

    #[inline(always)]
    fn neg(self) -> Field {
        Field::ZERO - self
    }
}

impl Mul for Field {
    type Output = Field;

    #[inline(always)]
    fn mul(self, other: Field) -> Field {
        let (a, b) = (self.0, other.0);
        let m = |x: u64, y: u64| u128::from(x) * u128::from(y);
        // 2^255 = 19: what passes limb 4 comes back nineteenfold.
        let [b1, b2, b3, b4] = [19 * b[1], 19 * b[2], 19 * b[3], 19 * b[4]];
        folded([
            m(a[0], b[0]) + m(a[4], b1) + m(a[3], b2) + m(a[2], b3) + m(a[1], b4),
            m(a[1], b[0]) + m(a[0], b[1]) + m(a[4], b2) + m(a[3], b3) + m(a[2], b4),
            m(a[2], b[0]) + m(a[1], b[1]) + m(a[0], b[2]) + m(a[4], b3) + m(a[3], b4),
            m(a[3], b[0]) + m(a[2], b[1]) + m(a[1], b[2]) + m(a[0], b[3]) + m(a[4], b4),
            m(a[4], b[0]) + m(a[3], b[1]) + m(a[2], b[2]) + m(a[1], b[3]) + m(a[0], b[4]),
        ])
    }
}

impl From<u32> for Field {
    fn from(number: u32) -> Field {
        Field([u64::from(number), 0, 0, 0, 0])
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Field) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Eq for Field {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers whose limbs, carries and reductions sit at their edges.
    fn numbers() -> Vec<Field> {
        let mut state = 1u64;
        let mut random = || {
            core::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 12
            })
        };
        let top = Field([(1 << 52) - 1; 5]);
        let p_minus = |n| Field::ZERO - Field::from(n);
        let mut out = vec![Field::ZERO, Field::ONE, p_minus(1), p_minus(19), p_minus(20), top];
        out.extend((0..20).map(|_| Field(random())));
        out
    }

    #[test]
    fn bytes_are_canonical() {
        for number in numbers() {
            assert_eq!(Field::from_bytes(&number.to_bytes()), Some(number));
            let negative = -number;
            let even = if number.is_negative() { negative } else { number };
            assert_eq!(even.to_bytes(), number.abs().to_bytes());
            let mut word = [0; 8];
            word.copy_from_slice(&even.to_bytes()[..8]);
            assert_eq!(number.even_word(), u64::from_le_bytes(word), "{number:?}");
        }
        for low in 0xed..=0xff {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, 0x7f);
            assert!(Field::from_bytes(&bytes).is_none(), "p + {}", low - 0xed);
            bytes[31] = 0xff;
            assert!(Field::from_bytes(&bytes).is_none());
        }
    }

    #[test]
    fn arithmetic_is_that_of_a_field() {
        let all = numbers();
        for (i, &a) in all.iter().enumerate() {
            assert_eq!(a.square(), a * a);
            assert_eq!(a + -a, Field::ZERO);
            let inverse = a.invert();
            assert!(a == Field::ZERO || a * inverse == Field::ONE);
            let b = all[(i + 7) % all.len()];
            let c = all[(i + 11) % all.len()];
            assert_eq!((a + b) * c, a * c + b * c);
            assert_eq!((a - b) * c, a * c - b * c);
            assert_eq!(a * b * c, a * (b * c));
            match a.inverse_root() {
                Some(root) => assert!(root.square() * a == Field::ONE && !root.is_negative()),
                // 2 is no square, so exactly one of a and 2a is one.
                None => assert!(a == Field::ZERO || (a + a).inverse_root().is_some()),
            }
        }
        let mut inverses: Vec<Field> = all.iter().copied().filter(|a| *a != Field::ZERO).collect();
        Field::invert_all(&mut inverses);
        let rest = all.iter().filter(|a| **a != Field::ZERO);
        assert!(rest.zip(inverses).all(|(a, inverse)| a.invert() == inverse));
    }

    #[test]
    fn known_products() {
        // p = 2^255 − 19, by Python's integers.
        let number = |hex: &str| {
            let mut bytes = [0; 32];
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&hex[62 - 2 * i..64 - 2 * i], 16).unwrap();
            }
            Field::from_bytes(&bytes).unwrap()
        };
        let a = number("6bb6a198f1446beab0c11fdecb91ce375bc8fbbcbde5c0994164d8399f767c45");
        let b = number("63529c3b77330bdbd7210dff076ce2ef87b0b125ec1d7da0a6eb8c9ebd69fe29");
        assert_eq!(
            a * b,
            number("515d5068df36918026b8d175a77c14f0d6b5c675a254a63f3b11217e011cf3c8")
        );
        assert_eq!(Field::D * Field::from(121_666), -Field::from(121_665));
        assert_eq!(Field::ROOT_OF_MINUS_ONE.square(), -Field::ONE);
    }
}
