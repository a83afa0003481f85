//! The compact form end to end, against exact inner products.

use crate::rows::{Rows, dot};
use ciphervec_arith::Stream;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::SegmentId;
use ciphervec_he_secret::lattice::compact::{
    self, AnswerCheck, AskedQueries, CheckWeights, Compact, MaskedSum, Masks, Scratch, SealedRows,
    SegmentKey, Unmasked, Width, Witness, Words,
};

const WIDTHS: [Width; 3] = [Width::Standard, Width::Small, Width::Wide];

struct Setup {
    scheme: Compact,
    masks: Masks,
    master: MasterKey,
}

/// A segment with what opens it.
struct Sealed {
    rows: SealedRows,
    key: SegmentKey,
    check: AnswerCheck,
    count: usize,
    dimension: usize,
}

impl Setup {
    fn seal(&self, rows: &Rows) -> Sealed {
        let count = rows.values.len() / rows.dimension;
        let dimension = rows.dimension;
        let rows =
            compact::seal(&self.scheme, &self.masks, &self.master, b"collection", rows).unwrap();
        let (master, id) = (&self.master, rows.id);
        let key = SegmentKey::derive(&self.scheme, master, b"collection", id, count);
        let weights = CheckWeights::derive(&self.scheme, master, b"collection", id, count);
        let witness = Witness::read(&self.scheme, count, dimension, &rows.witness).unwrap();
        let check = AnswerCheck::new(weights, &witness, dimension);
        Sealed { rows, key, check, count, dimension }
    }

    fn witness<'a>(&self, sealed: &'a Sealed) -> Witness<'a> {
        let bytes = &sealed.rows.witness;
        Witness::read(&self.scheme, sealed.count, sealed.dimension, bytes).unwrap()
    }

    /// The server's answers, one after the other.
    fn scan(&self, sealed: &Sealed, queries: &[i64]) -> Vec<u8> {
        let mut sums = Vec::new();
        let width = self.scheme.width();
        compact::scan(
            width,
            &sealed.rows.words,
            sealed.count,
            sealed.dimension,
            queries,
            &mut sums,
        );
        sums
    }

    /// The sums with their noise, in units of 2^-drop.
    fn unmask(&self, sealed: &Sealed, queries: &[i64], answers: &[u8]) -> Vec<i64> {
        let width = self.scheme.width();
        let asked = AskedQueries::new(&self.scheme, &self.masks, queries);
        let mut out = vec![0; asked.count() * sealed.count];
        let answers = answers.chunks_exact(sealed.count * width.word_bytes());
        let (mut words, mut scratch) = (Words::zeroed(width, 0), Scratch::default());
        for (query, (out, answer)) in out.chunks_mut(sealed.count).zip(answers).enumerate() {
            for (block, sums) in out.chunks_mut(width.degree()).enumerate() {
                words.read(width, width.of_block(answer, block));
                let mut scaled = vec![0.0; sums.len()];
                let out = Unmasked { sums: &mut *sums, scaled: &mut scaled };
                let (asked, words) = ((&asked, query), (block, &words));
                let (scheme, key) = (&self.scheme, &sealed.key);
                let extent = compact::unmask(scheme, key, asked, words, 0.25, &mut scratch, out);
                assert_eq!(Some(extent.0), sums.iter().copied().min());
                assert_eq!(Some(extent.1), sums.iter().copied().max());
                assert!(scaled.iter().zip(sums).all(|(scaled, sum)| *scaled == *sum as f64 / 4.0));
            }
        }
        out
    }

    /// Whether every block of an answer passes its check.
    fn verify(&self, sealed: &Sealed, query: &[i64], answer: &[u8]) -> bool {
        let width = self.scheme.width();
        let asked = AskedQueries::new(&self.scheme, &self.masks, query);
        let mut words = Words::zeroed(width, 0);
        (0..self.scheme.blocks(sealed.count)).all(|block| {
            words.read(width, width.of_block(answer, block));
            sealed.check.verify(&asked, 0, block, &words)
        })
    }

    /// Σ q D of these rows.
    fn settle(
        &self,
        sealed: &Sealed,
        queries: &[i64],
        noisy: &[i64],
        rows: impl Iterator<Item = u32> + Clone,
    ) -> Vec<i64> {
        let sums: Vec<MaskedSum> = (0..queries.len() / sealed.dimension)
            .flat_map(|query| {
                let of = move |row: u32| noisy[query * sealed.count + row as usize];
                rows.clone().map(move |row| MaskedSum { query, row, sum: of(row) })
            })
            .collect();
        let witness = self.witness(sealed);
        compact::settle(&self.scheme, &self.masks, &sealed.key, &witness, queries, &sums)
    }
}

fn setup(width: Width, dimension: usize) -> Setup {
    let scheme = Compact::new(width).unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let masks = Masks::new(&scheme, [4; 32], dimension);
    Setup { scheme, masks, master }
}

/// Seal, scan, unmask, settle: scores in units of one.
fn scores(setup: &Setup, rows: &Rows, queries: &[i64]) -> Vec<f64> {
    let sealed = setup.seal(rows);
    let noisy = setup.unmask(&sealed, queries, &setup.scan(&sealed, queries));
    let settled = setup.settle(&sealed, queries, &noisy, 0..sealed.count as u32);
    settled.iter().map(|integer| *integer as f64).collect()
}

/// Integers of about `bits` bits from a stream of their own.
fn integers(count: usize, bits: u32, stream: u64) -> Vec<i64> {
    let mut words = vec![0u64; count];
    Stream::new(&[8; 32], stream).uniform_bits(bits, &mut words);
    words.iter().map(|word| *word as i64 - (1 << (bits - 1))).collect()
}

/// The inner products by the definition.
fn products(rows: &Rows, queries: &[i64]) -> Vec<i64> {
    let of = |query: &[i64], row: &[i64]| -> i64 {
        query.iter().zip(row).map(|(q, x)| q.wrapping_mul(*x)).fold(0, i64::wrapping_add)
    };
    queries
        .chunks_exact(rows.dimension)
        .flat_map(|query| rows.values.chunks_exact(rows.dimension).map(move |row| of(query, row)))
        .collect()
}

#[test]
fn settled_sums_are_the_integers_whatever_the_noise() {
    for width in WIDTHS {
        // Rows of single blocks, of several, and so many that whole blocks are transformed.
        for (count, dimension) in [(1, 1), (7, 3), (8, 70), (65, 64), (2300, 20), (4500, 33)] {
            let bits = match width {
                Width::Standard => 12,
                Width::Small => 8,
                Width::Wide => 28,
            };
            let rows = Rows { dimension, values: integers(count * dimension, bits, 1) };
            let queries = integers(3 * dimension, bits, 2);
            let expected = products(&rows, &queries);
            let setup = setup(width, dimension);
            let sealed = setup.seal(&rows);
            let noisy = setup.unmask(&sealed, &queries, &setup.scan(&sealed, &queries));
            let slack = { queries.chunks_exact(dimension) }.map(|query| width.slack(query));
            let slack: Vec<f64> = slack.collect();
            let scale = f64::exp2(f64::from(width.dropped_bits()));
            let mut off = 0.0f64;
            for (index, (noisy, exact)) in noisy.iter().zip(&expected).enumerate() {
                let error = (*noisy as f64 - *exact as f64 * scale).abs();
                assert!(error <= slack[index / count], "{width:?} {count}x{dimension}: {error}");
                off = off.max(error / slack[index / count]);
            }
            assert!(count < 1000 || off > 0.02, "the slack is loose: {off}");
            let all = setup.settle(&sealed, &queries, &noisy, 0..count as u32);
            assert_eq!(all, expected, "{width:?} {count}x{dimension}");
            // A few rows take the other way.
            let some = setup.settle(&sealed, &queries, &noisy, (0..count as u32).step_by(61));
            let of = |query: usize| (0..count).step_by(61).map(move |row| query * count + row);
            let expected: Vec<i64> = (0..3).flat_map(of).map(|index| expected[index]).collect();
            assert_eq!(some, expected);
            // The same rows under another nonce and other noise: the same integers.
            let other = setup.seal(&rows);
            assert_ne!(other.rows.words.as_slice(), sealed.rows.words.as_slice());
            assert_eq!(unsealed(&setup, &sealed).unwrap(), rows.values);
            assert_eq!(unsealed(&setup, &other).unwrap(), rows.values);
        }
    }
}

fn unsealed(setup: &Setup, sealed: &Sealed) -> Option<Vec<i64>> {
    let (scheme, masks, witness) = (&setup.scheme, &setup.masks, setup.witness(sealed));
    let secrets = (&sealed.key, &sealed.check);
    let words = &sealed.rows.words;
    compact::unseal_exact(scheme, masks, secrets, &witness, words, sealed.count)
}

/// What a server answers, it knows. So whatever it answers, and to whatever query, what is settled is
/// rows times the query that it is opened with, and a shift that the server knows: the noise, and
/// with it the secret, is in neither.
#[test]
fn whatever_the_answer_settled_sums_are_the_rows_and_a_known_shift() {
    let (width, count, dimension) = (Width::Standard, 300, 20);
    let rows = Rows { dimension, values: integers(count * dimension, 8, 1) };
    let (asked, opened) = (integers(dimension, 8, 2), integers(dimension, 8, 3));
    let setup = setup(width, dimension);
    let sealed = setup.seal(&rows);
    let mut answer = setup.scan(&sealed, &asked);
    let honest = setup.scan(&sealed, &opened);
    answer[7] ^= 0x15;
    let noisy = setup.unmask(&sealed, &opened, &answer);
    let settled = setup.settle(&sealed, &opened, &noisy, 0..count as u32);
    let words = |bytes: &[u8]| -> Vec<i64> {
        bytes.as_chunks::<4>().0.iter().map(|word| i64::from(i32::from_le_bytes(*word))).collect()
    };
    let shifts = words(&answer).into_iter().zip(words(&honest)).map(|(came, due)| came - due);
    for ((settled, product), shift) in settled.iter().zip(products(&rows, &opened)).zip(shifts) {
        assert_eq!(*settled as i32, (product + shift) as i32);
    }
}

#[test]
fn changed_answers_fail_their_check() {
    for width in WIDTHS {
        for count in [3usize, CheckWeights::MOST, 100, width.degree() + 5] {
            let (dimension, bytes) = (20, width.word_bytes());
            let rows = Rows { dimension, values: integers(count * dimension, 8, 1) };
            let query = integers(dimension, 8, 2);
            let setup = setup(width, dimension);
            let sealed = setup.seal(&rows);
            let answer = setup.scan(&sealed, &query);
            let holds = |query: &[i64], answer: &[u8]| setup.verify(&sealed, query, answer);
            assert!(holds(&query, &answer), "{width:?} {count}");
            for row in [0, count / 2, count - 1] {
                let mut shifted = answer.clone();
                shifted[row * bytes] ^= 1;
                assert!(!holds(&query, &shifted), "{width:?} {count} row {row}");
            }
            let mut other = query.clone();
            other[3] += 1;
            assert!(!holds(&other, &answer));
            // A row that is left out.
            let mut without = answer.clone();
            without[bytes..2 * bytes].fill(0);
            assert!(!holds(&query, &without));
            // Stored words, too.
            let mut damaged = setup.seal(&rows);
            assert!(unsealed(&setup, &damaged).is_some());
            damaged.rows.words.as_mut_slice()[5] ^= 1;
            assert!(unsealed(&setup, &damaged).is_none());
        }
    }
}

/// The worst change of a wrapping answer is by half of its range: a check sees its parity alone, so
/// that sixteen see all but one in 65,536.
#[test]
fn half_of_the_range_passes_a_check_in_two() {
    let (width, dimension, count) = (Width::Standard, 1, 64);
    let rows = Rows { dimension, values: integers(count, 8, 1) };
    let query = integers(dimension, 8, 2);
    let setup = setup(width, dimension);
    let mut passed = 0;
    for _ in 0..64 {
        let sealed = setup.seal(&rows);
        let answer = setup.scan(&sealed, &query);
        for row in 0..count {
            let mut shifted = answer.clone();
            shifted[row * 4 + 3] ^= 0x80;
            passed += u32::from(setup.verify(&sealed, &query, &shifted));
        }
    }
    // 4,096 tries at 2^-16: 1/16 on average, and above 6 with probability below 2^-40. With one
    // check less there would be 1/8; with half of them, 16.
    assert!(passed <= 6, "{passed}");
}

#[test]
fn scores_stay_inside_the_bounds() {
    for width in WIDTHS {
        for (count, dimension) in
            [(1, 1), (3, 2), (65, 7), (2048, 64), (2500, 130), (300, 512), (5000, 33)]
        {
            let scales = width.unit_scales();
            let (rows, exact) = Rows::random_unit(count, dimension, scales.vector, 1);
            let (queries, exact_queries) = Rows::random_unit(3, dimension, scales.query, 2);
            let setup = setup(width, dimension);
            let got = scores(&setup, &rows, &queries.values);
            let bound = width.error_bound(dimension, scales);
            let mut squares = 0.0;
            for (query, got) in got.chunks_exact(count).enumerate() {
                for (row, got) in got.iter().enumerate() {
                    let truth = dot(
                        &exact[row * dimension..][..dimension],
                        &exact_queries[query * dimension..][..dimension],
                    );
                    let error = (got / scales.vector / scales.query - truth).abs();
                    assert!(
                        error <= bound.tail,
                        "{width:?} d={dimension} row {row}: {error:e} > {:e}",
                        bound.tail
                    );
                    squares += error * error;
                }
            }
            let deviation = (squares / (3 * count) as f64).sqrt();
            assert!(
                deviation < 1.15 * bound.typical || count < 100,
                "{width:?} d={dimension}: {deviation:e} {bound:?}"
            );
            if count >= 2048 && dimension >= 64 {
                assert!(
                    deviation > 0.85 * bound.typical,
                    "the bound is loose: {deviation:e} {bound:?}"
                );
            }
        }
    }
}

#[test]
fn perfect_matches_and_opposites_do_not_wrap() {
    for width in WIDTHS {
        for dimension in [1, 2, 5, 512, 1500, 16384] {
            let scales = width.unit_scales();
            let (row, exact) = Rows::random_unit(1, dimension, scales.vector, 7);
            let query: Vec<i64> = exact.iter().map(|x| (x * scales.query).round() as i64).collect();
            let opposite: Vec<i64> = row.values.iter().map(|x| -x).collect();
            let rows = Rows { dimension, values: [row.values.clone(), opposite].concat() };
            let setup = setup(width, dimension);
            let got = scores(&setup, &rows, &query);
            let bound = width.error_bound(dimension, scales).tail;
            for (got, truth) in got.iter().zip([1.0, -1.0]) {
                assert!(
                    (got / scales.vector / scales.query - truth).abs() < bound,
                    "{width:?} d={dimension}: {got}"
                );
            }
        }
    }
}

#[test]
fn sign_vectors_decode_exactly() {
    for width in WIDTHS {
        for dimension in [1, 8, 100, 1024, 16384] {
            let scales = width.sign_scales(dimension);
            let bound = width.sign_error_bound(dimension, scales);
            assert!(bound.tail < 1.0, "{width:?} {dimension} {bound:?}");
            let sign = |i: usize, salt: usize| {
                if (i.wrapping_mul(2_654_435_761) ^ salt).count_ones().is_multiple_of(2) {
                    1i64
                } else {
                    -1
                }
            };
            let rows = 70;
            let bits: Vec<i64> = (0..rows * dimension).map(|i| sign(i, 12)).collect();
            let query: Vec<i64> = (0..dimension).map(|i| sign(i, 77)).collect();
            let scaled =
                Rows { dimension, values: bits.iter().map(|b| b * scales.vector as i64).collect() };
            let setup = setup(width, dimension);
            for (row, got) in scores(&setup, &scaled, &query).iter().enumerate() {
                let truth: i64 = bits[row * dimension..][..dimension]
                    .iter()
                    .zip(&query)
                    .map(|(b, q)| b * q)
                    .sum();
                let decoded = dimension as i64
                    - 2 * ((dimension as f64 - got / scales.vector) / 2.0).round() as i64;
                assert_eq!(decoded, truth, "{width:?} d={dimension} row {row}");
            }
        }
    }
}

#[test]
fn segments_with_other_nonces_do_not_open() {
    let width = Width::Standard;
    let scales = width.unit_scales();
    let (rows, exact) = Rows::random_unit(100, 64, scales.vector, 1);
    let setup = setup(width, 64);
    let sealed = setup.seal(&rows);
    let id = SegmentId([6; 16]);
    let wrong = SegmentKey::derive(&setup.scheme, &setup.master, b"collection", id, 100);
    let plain = compact::unseal(&setup.scheme, &setup.masks, &wrong, &sealed.rows.words, 100);
    let correlation = dot(&plain, &exact) / dot(&plain, &plain).sqrt() / dot(&exact, &exact).sqrt();
    assert!(correlation.abs() < 0.1, "{correlation}");
    // With the right one, but without the witness, the noise stays: up to 29 of one discarded unit,
    // and half a stored step.
    let plain = compact::unseal(&setup.scheme, &setup.masks, &sealed.key, &sealed.rows.words, 100);
    let limit = 29.0 / f64::exp2(f64::from(width.dropped_bits())) + 0.5;
    let mut off = plain.iter().zip(&rows.values).map(|(got, x)| (got - *x as f64).abs());
    assert!(off.all(|off| off <= limit));
    assert!(plain != rows.values.iter().map(|x| *x as f64).collect::<Vec<f64>>());
}
