//! Products and powers of multi-limb residues against `crypto-bigint`'s, on every back-end.

use std::sync::Arc;

use ciphervec_arith::montgomery::{Comb, LANES, PowerModulus, Residues};
use ciphervec_arith::{ArithError, Backend, Stream};
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd};

/// Numbers that are easy to name: words from a stream.
struct Numbers(Stream);

impl Numbers {
    fn new(seed: u8) -> Self {
        Numbers(Stream::new(&[seed; 32], 0))
    }

    fn words(&mut self, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; 8 * count];
        self.0.fill(&mut bytes);
        bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }

    fn odd(&mut self, bits: usize) -> Vec<u64> {
        let mut words = self.words(bits.div_ceil(64));
        let top = words.len() - 1;
        words[top] &= u64::MAX >> (64 * words.len() - bits);
        words[top] |= 1 << ((bits - 1) % 64);
        words[0] |= 1;
        words
    }
}

fn number(words: &[u64]) -> BoxedUint {
    BoxedUint::from_words(words.iter().copied())
}

/// `Z/n^k` by schoolbook numbers: what the kernels are compared with.
struct Slow {
    n: NonZero<BoxedUint>,
    power: NonZero<BoxedUint>,
    digits: usize,
    words: usize,
}

impl Slow {
    fn new(modulus: &[u64], digits: usize) -> Self {
        let mut power = number(&[1]);
        for _ in 0..digits {
            power = power.concatenating_mul(&number(modulus));
        }
        let nonzero = |n: BoxedUint| NonZero::new(n).into_option().expect("not zero");
        Slow { n: nonzero(number(modulus)), power: nonzero(power), digits, words: modulus.len() }
    }

    fn random(&self, numbers: &mut Numbers) -> BoxedUint {
        number(&numbers.words(self.digits * self.words + 1)).rem_vartime(&self.power)
    }

    fn to_digits(&self, x: &BoxedUint) -> Vec<u64> {
        let (mut rest, mut out) = (x.clone(), Vec::new());
        for _ in 0..self.digits {
            let (quotient, digit) = rest.div_rem_vartime(&self.n);
            let mut words = digit.to_words().to_vec();
            words.resize(self.words, 0);
            out.extend(words);
            rest = quotient;
        }
        out
    }

    fn mul(&self, x: &BoxedUint, y: &BoxedUint) -> BoxedUint {
        x.concatenating_mul(y).rem_vartime(&self.power)
    }

    fn pow(&self, x: &BoxedUint, exponent: &[u64]) -> BoxedUint {
        let mut power = number(&[1]);
        for bit in (0..64 * exponent.len()).rev() {
            power = self.mul(&power, &power);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                power = self.mul(&power, x);
            }
        }
        power
    }

    fn inverse(&self, x: &BoxedUint) -> BoxedUint {
        let modulus = Odd::new(self.power.as_ref().clone()).into_option().expect("odd");
        x.invert_odd_mod_vartime(&modulus).into_option().expect("invertible")
    }

    fn pack(&self, numbers: &[BoxedUint]) -> Vec<u64> {
        numbers.iter().flat_map(|x| self.to_digits(x)).collect()
    }
}

const SHAPES: [(usize, usize); 9] =
    [(64, 1), (127, 1), (512, 1), (512, 2), (512, 4), (1024, 2), (1000, 3), (2048, 1), (2048, 2)];

/// Where the comparison is what takes time.
const SMALL: [(usize, usize); 5] = [(64, 1), (127, 1), (512, 2), (300, 3), (260, 4)];

fn everywhere(shapes: &[(usize, usize)], test: impl Fn(Arc<PowerModulus>, Slow, &mut Numbers)) {
    for backend in Backend::available() {
        for &(bits, digits) in shapes {
            let mut numbers = Numbers::new(bits as u8 ^ digits as u8);
            let modulus = numbers.odd(bits);
            let slow = Slow::new(&modulus, digits);
            backend
                .run(|| {
                    let fast = PowerModulus::new(&modulus, digits).expect("a modulus");
                    test(fast, slow, &mut numbers);
                })
                .expect("available");
        }
    }
}

#[test]
fn products_and_squares_are_exact() {
    everywhere(&SHAPES, |fast, slow, numbers| {
        for columns in [1, 3, 5, LANES, LANES + 3] {
            let x: Vec<_> = (0..2 * columns).map(|_| slow.random(numbers)).collect();
            let y: Vec<_> = (0..2 * columns).map(|_| slow.random(numbers)).collect();
            let table =
                |x| Residues::from_digits(&fast, 2, columns, &slow.pack(x)).expect("a table");
            assert_eq!(table(&x).to_digits(), slow.pack(&x));
            let mut product = table(&x);
            // A chain, so that digits in the lazy range meet each other.
            let mut expected = x.clone();
            for _ in 0..3 {
                product.mul_assign(&table(&y));
                product.square_assign();
                for (expected, y) in expected.iter_mut().zip(&y) {
                    *expected = slow.mul(expected, y);
                    *expected = slow.mul(expected, expected);
                }
            }
            assert_eq!(product.to_digits(), slow.pack(&expected), "{fast:?}, {columns} columns");
            let row = table(&y).rows_in(0..1);
            product.mul_assign(&row);
            for (at, expected) in expected.iter_mut().enumerate() {
                *expected = slow.mul(expected, &y[at % columns]);
            }
            assert_eq!(product.to_digits(), slow.pack(&expected));
            product.mul_assign(&row.columns_in(columns - 1..columns));
            expected.iter_mut().for_each(|e| *e = slow.mul(e, &y[columns - 1]));
            assert_eq!(product.to_digits(), slow.pack(&expected));
            let folded: Vec<_> =
                (0..columns).map(|c| slow.mul(&expected[c], &expected[columns + c])).collect();
            assert_eq!(product.product().to_digits(), slow.pack(&folded));
        }
    });
}

#[test]
fn extreme_digits_are_exact() {
    for backend in Backend::available() {
        for (bits, digits) in [(64, 1), (1024, 2), (2048, 2), (3072, 4), (12_288, 1)] {
            // The largest number of that length, and the largest and smallest digits below it.
            let modulus = vec![u64::MAX; bits / 64];
            let slow = Slow::new(&modulus, digits);
            let last = slow.power.as_ref().wrapping_sub(number(&[1]));
            let numbers = [number(&[1]), last.clone(), number(&[0]), last];
            backend
                .run(|| {
                    let fast = PowerModulus::new(&modulus, digits).expect("a modulus");
                    let mut x =
                        Residues::from_digits(&fast, 1, 4, &slow.pack(&numbers)).expect("4");
                    let y = x.clone();
                    x.mul_assign(&y);
                    x.square_assign();
                    x.mul_assign(&y);
                    let one = number(&[1]);
                    let expected =
                        [one.clone(), numbers[1].clone(), number(&[0]), numbers[1].clone()];
                    assert_eq!(x.to_digits(), slow.pack(&expected), "{fast:?}");
                })
                .expect("available");
        }
    }
}

#[test]
fn powers_are_exact() {
    everywhere(&SMALL, |fast, slow, numbers| {
        let x: Vec<_> = (0..5).map(|_| slow.random(numbers)).collect();
        let table = Residues::from_digits(&fast, 1, 5, &slow.pack(&x)).expect("a table");
        for words in [1, 2] {
            let exponents = numbers.words(5 * words);
            let common = &exponents[..words];
            let expected: Vec<_> = x.iter().map(|x| slow.pow(x, common)).collect();
            assert_eq!(table.pow(common).to_digits(), slow.pack(&expected), "{fast:?}");
            let expected: Vec<_> =
                x.iter().zip(exponents.chunks(words)).map(|(x, e)| slow.pow(x, e)).collect();
            assert_eq!(table.pow_each(&exponents).to_digits(), slow.pack(&expected));

            let base = table.columns_in(2..3);
            let expected: Vec<_> = exponents.chunks(words).map(|e| slow.pow(&x[2], e)).collect();
            for window in [1, 4, 5, 7] {
                let comb = Comb::with_window(&base, 64 * words as u32, window);
                let powers = comb.pow(1, 5, &exponents);
                assert_eq!(powers.to_digits(), slow.pack(&expected), "window {window}");
                assert_eq!(comb.pow_vartime(5, 1, &exponents).to_digits(), slow.pack(&expected));
                // Fewer than half the lanes share the windows.
                for count in 1..5 {
                    let (exponents, expected) = (&exponents[..count * words], &expected[..count]);
                    let powers = comb.pow(count, 1, exponents);
                    assert_eq!((powers.rows(), powers.columns()), (count, 1));
                    assert_eq!(powers.to_digits(), slow.pack(expected), "{count}, {window}");
                    let powers = comb.pow_vartime(1, count, exponents);
                    assert_eq!(powers.to_digits(), slow.pack(expected), "{count}, {window}");
                }
            }
        }
        assert_eq!(table.pow(&[0]).to_digits(), slow.pack(&vec![number(&[1]); 5]));
    });
}

#[test]
fn inverses_are_exact() {
    everywhere(&SHAPES, |fast, slow, numbers| {
        for (rows, columns) in [(1, 1), (3, 1), (2, 11)] {
            let x: Vec<_> = (0..rows * columns)
                .map(|_| {
                    // Not every number has an inverse; powers of two have.
                    slow.pow(&number(&[2]), &[numbers.words(1)[0] >> 50])
                })
                .collect();
            let table =
                Residues::from_digits(&fast, rows, columns, &slow.pack(&x)).expect("a table");
            let expected: Vec<_> = x.iter().map(|x| slow.inverse(x)).collect();
            assert_eq!(
                table.inverse_vartime().expect("inverses").to_digits(),
                slow.pack(&expected)
            );
        }
    });
}

#[test]
fn an_element_without_inverse_is_named() {
    let n = [0xffff_ffff_ffff_fffb_u64, 0, 1];
    let fast = PowerModulus::new(&n, 2).expect("a modulus");
    let mut digits = vec![0; 4 * fast.element_words()];
    for element in digits.chunks_mut(fast.element_words()) {
        element[0] = 8;
    }
    digits[2 * fast.element_words()] = 0;
    let table = Residues::from_digits(&fast, 2, 2, &digits).expect("a table");
    assert_eq!(table.inverse_vartime().err(), Some(ArithError::NotInvertible { index: 2 }));
}

#[test]
fn weighted_products_are_exact() {
    everywhere(&SMALL, |fast, slow, numbers| {
        // Three columns more than the lanes are raised one by one where that is cheaper.
        for (dimensions, columns, bound) in [
            (1, 3, 3),
            (2, 3, 1 << 11),
            (37, 3, 1 << 11),
            (37, 11, 1 << 11),
            (70, 1, 40),
            (5, 3, i64::MAX),
        ] {
            let x: Vec<_> = (0..dimensions * columns)
                .map(|_| slow.pow(&number(&[2]), &[numbers.words(1)[0] >> 52]))
                .collect();
            let mut weights: Vec<i64> = numbers
                .words(dimensions)
                .iter()
                .map(|&word| (i128::from(word as i64) % (i128::from(bound) + 1)) as i64)
                .collect();
            weights[0] = -bound;
            let expected: Vec<_> = (0..columns)
                .map(|column| {
                    weights.iter().enumerate().fold(number(&[1]), |product, (i, &w)| {
                        let power = slow.pow(&x[i * columns + column], &[w.unsigned_abs()]);
                        let factor = if w < 0 { slow.inverse(&power) } else { power };
                        slow.mul(&product, &factor)
                    })
                })
                .collect();
            let table =
                Residues::from_digits(&fast, dimensions, columns, &slow.pack(&x)).expect("a table");
            let sums = table.multi_exp_vartime(&weights).expect("sums");
            assert_eq!(sums.to_digits(), slow.pack(&expected), "{fast:?}, {dimensions}, {bound}");
            let along = table.columns_in(columns / 2..columns / 2 + 1).transposed();
            let sum = along.multi_exp_along_vartime(&weights).expect("a sum");
            assert_eq!(sum.to_digits(), slow.to_digits(&expected[columns / 2]));
        }
        let empty = Residues::ones(&fast, 0, 2).multi_exp_vartime(&[]).expect("ones");
        assert_eq!(empty.to_digits(), slow.pack(&vec![number(&[1]); 2]));
    });
}

/// Exponents of several words: random ones, ones that runs of equal bits make awkward, zero and the
/// largest, and more bases than one batch of tables holds.
#[test]
fn products_of_wide_powers_are_exact() {
    everywhere(&SMALL, |fast, slow, numbers| {
        let runs = [u64::MAX << 13, u64::MAX, 0xfff8_0000_0000_1fff];
        for (dimensions, columns, words) in
            [(1, 1, 1), (3, 2, 3), (17, 3, 2), (LANES, LANES + 1, 1), (67, 1, 1)]
        {
            let x: Vec<_> = (0..dimensions * columns)
                .map(|_| slow.pow(&number(&[2]), &[numbers.words(1)[0] >> 52]))
                .collect();
            let mut exponents = numbers.words(dimensions * words);
            exponents[..words].copy_from_slice(&runs[..words]);
            for (at, exponent) in exponents.chunks_mut(words).enumerate() {
                match at % 8 {
                    1 => exponent.fill(0),
                    2 => exponent.fill(u64::MAX),
                    3 => exponent[words - 1] >>= 61,
                    _ => {}
                }
            }
            let negative: Vec<bool> =
                numbers.words(dimensions).iter().map(|word| word & 1 == 1).collect();
            let expected: Vec<_> = (0..columns)
                .map(|column| {
                    let parts = [false, true].map(|sign| {
                        (0..dimensions).filter(|&i| negative[i] == sign).fold(
                            number(&[1]),
                            |product, i| {
                                let exponent = &exponents[i * words..(i + 1) * words];
                                slow.mul(&product, &slow.pow(&x[i * columns + column], exponent))
                            },
                        )
                    });
                    slow.mul(&parts[0], &slow.inverse(&parts[1]))
                })
                .collect();
            let table =
                Residues::from_digits(&fast, dimensions, columns, &slow.pack(&x)).expect("a table");
            let name = format!("{fast:?}, {dimensions} x {columns}, {words} words");
            let products = table.multi_pow_vartime(&exponents, &negative).expect("products");
            assert_eq!(products.to_digits(), slow.pack(&expected), "{name}");
            let along = table.columns_in(columns - 1..columns).transposed();
            let product = along.multi_pow_along_vartime(&exponents, &negative).expect("a product");
            assert_eq!(product.to_digits(), slow.to_digits(&expected[columns - 1]), "{name}");
        }
    });
}

#[test]
fn wide_powers_of_what_has_no_inverse_and_of_nothing() {
    let n = [0xffff_ffff_ffff_fffb_u64, 0, 1];
    let fast = PowerModulus::new(&n, 1).expect("a modulus");
    let one = Residues::ones(&fast, 1, 2).to_digits();
    let mut digits = one.clone();
    digits[0] = 0;
    let table = Residues::from_digits(&fast, 1, 2, &digits).expect("a table");
    // Digits 1 and 0 of 5 = 1 + 4 need no inverse; minus five does.
    let zero = table.multi_pow_along_vartime(&[5, 5], &[false; 2]).expect("a product");
    assert_eq!(zero.to_digits(), [0, 0, 0]);
    let refused = table.multi_pow_along_vartime(&[5, 5], &[false, true]).err();
    assert_eq!(refused, Some(ArithError::NotInvertible { index: 0 }));
    assert_eq!(table.multi_pow_vartime(&[0], &[true]).expect("ones").to_digits(), one);
    let length = |expected, actual| Some(ArithError::Length { expected, actual });
    assert_eq!(table.multi_pow_vartime(&[1, 1], &[false; 2]).err(), length(1, 2));
    assert_eq!(table.multi_pow_along_vartime(&[1; 3], &[false; 2]).err(), length(2, 3));
    let tall = table.transposed();
    assert_eq!(tall.multi_pow_along_vartime(&[1], &[false]).err(), length(1, 2));
    let none = Residues::ones(&fast, 0, 2).multi_pow_vartime(&[], &[]).expect("ones");
    assert_eq!(none.to_digits(), one);
    let none = Residues::ones(&fast, 1, 0).multi_pow_along_vartime(&[], &[]).expect("one");
    assert_eq!(none.to_digits(), one[..fast.element_words()]);
}

#[test]
fn tables_are_rearranged() {
    let mut numbers = Numbers::new(9);
    let modulus = numbers.odd(128);
    let slow = Slow::new(&modulus, 2);
    let fast = PowerModulus::new(&modulus, 2).expect("a modulus");
    let x: Vec<_> = (0..30).map(|_| slow.random(&mut numbers)).collect();
    let table = Residues::from_digits(&fast, 3, 10, &slow.pack(&x)).expect("a table");
    let turned: Vec<_> = (0..30).map(|i| x[i % 3 * 10 + i / 3].clone()).collect();
    assert_eq!(table.transposed().to_digits(), slow.pack(&turned));
    let beside = Residues::beside(&[&table.columns_in(0..4), &table.columns_in(4..10)]);
    assert_eq!(beside.to_digits(), slow.pack(&x));
    assert_eq!(table.rows_in(1..2).to_digits(), slow.pack(&x[10..20]));
    assert_eq!(table.reshaped(15, 2).to_digits(), slow.pack(&x));
    let exponents = numbers.words(30);
    let expected: Vec<_> = x.iter().zip(&exponents).map(|(x, &e)| slow.pow(x, &[e])).collect();
    assert_eq!(table.pow_each(&exponents).to_digits(), slow.pack(&expected));
}

#[test]
fn unusable_moduli_and_digits_are_refused() {
    for (words, digits) in [
        (vec![1u64 << 62, 1], 1),
        (vec![7], 1),
        (vec![u64::MAX; 2], 0),
        (vec![u64::MAX; 2], 5),
        (vec![u64::MAX; 97], 2),
        (vec![], 1),
    ] {
        assert!(matches!(PowerModulus::new(&words, digits), Err(ArithError::Wide { .. })));
    }
    let fast = PowerModulus::new(&[u64::MAX, 1], 1).expect("a modulus");
    let words = |x: &[u64]| Residues::from_digits(&fast, 1, 1, x).err();
    assert_eq!(words(&[u64::MAX, 1]), Some(ArithError::NotReduced { index: 0 }));
    assert_eq!(words(&[1]), Some(ArithError::Length { expected: 2, actual: 1 }));
    assert_eq!(words(&[u64::MAX - 1, 1]), None);
}
