//! Checks of ring answers: how honest noise is distributed whatever the rows are, and what is refused.

use crate::ring::{Owner, Segment};
use crate::rows::Rows;
use ciphervec_he_secret::lattice::Scales;
use ciphervec_he_secret::lattice::ring::{
    self, AnswerWords, AskedLevel, Layout, OpenedRows, QueryOpener, Ring, RowSigns, ScoreNoise,
    Vectors,
};

/// Kinds of rows that have more in common than random ones.
const KINDS: [&str; 6] = ["random", "equal", "ten", "cone", "axis", "alternating"];

fn rows_of(kind: &str, count: usize, dimension: usize, scale: f64) -> Rows {
    let (random, unit) = Rows::random_unit(count, dimension, scale, 3);
    let (_, directions) = Rows::random_unit(10, dimension, scale, 4);
    let row = |row: usize| -> Vec<f64> {
        let own = &unit[row * dimension..][..dimension];
        let of = |index: usize| &directions[index * dimension..][..dimension];
        match kind {
            "equal" => of(0).to_vec(),
            "ten" => of(row % 10).to_vec(),
            "cone" => {
                own.iter().zip(of(0)).map(|(x, c)| 0.9 * c + (1.0f64 - 0.81).sqrt() * x).collect()
            }
            "axis" => (0..dimension).map(|i| f64::from(u8::from(i == 0))).collect(),
            _ => (0..dimension)
                .map(|i| if (i + row).is_multiple_of(2) { 1.0 } else { -1.0 })
                .collect(),
        }
    };
    if kind == "random" {
        return random;
    }
    let signs = ring::dimension_signs(&[7; 32], dimension);
    let values = (0..count).flat_map(|index| {
        let row = row(index);
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let signed = row.into_iter().zip(&signs);
        signed.map(move |(x, sign)| sign * (x / norm * scale).round() as i64).collect::<Vec<_>>()
    });
    Rows { dimension, values: values.collect() }
}

/// What the check sees of `queries` honest answers, group by group.
fn energies(
    owner: &Owner,
    segment: &Segment,
    scales: Scales,
    words: AnswerWords,
    queries: usize,
) -> Vec<f64> {
    let Segment { layout, count, key, check, vectors, .. } = segment;
    let noise = ScoreNoise::of(layout, *vectors, scales, words, true);
    let signs = RowSigns::positive();
    let opened = OpenedRows { layout, key: key.as_ref(), signs: &signs, check: None };
    let masks = key.is_some().then_some(&owner.masks);
    let mut all = Vec::new();
    for query in 0..queries {
        let seed = [(query % 256) as u8, (query / 256) as u8].repeat(16);
        let (asked, _) = Rows::random_unit(1, layout.dimension(), scales.query, query as u8);
        let pieces = owner.ask(layout, &asked.values, seed.try_into().unwrap());
        let tree = ring::expand(&owner.ring, &owner.keys, &pieces, &[*layout]).unwrap().remove(0);
        let answer = owner.answer(segment, &tree, words);
        let level =
            AskedLevel::expand(&owner.ring, &owner.keys, &owner.key, masks, &pieces, &[*layout]);
        let level = level.unwrap().remove(0);
        let mut scores = vec![0.0; *count];
        let opener = QueryOpener::new(&owner.ring, &owner.key, &level, words);
        assert!(opener.open(&opened, &noise, &asked.values, (0, &answer), &mut scores));
        for (block, scores) in scores.chunks(layout.vectors_per_block()).enumerate() {
            all.extend(check.energies(layout, &noise, &level, block, scores));
        }
    }
    all
}

/// One question about one segment, at its server and at its owner.
struct Asked {
    owner: Owner,
    segment: Segment,
    scales: Scales,
    words: AnswerWords,
    query: Vec<i64>,
    pieces: Vec<ring::Ciphertext>,
}

impl Asked {
    fn new(dimension: usize, level: u8, count: usize, vectors: Vectors, kind: &str) -> Self {
        let (owner, layout) = (Owner::new(dimension), Layout::new(dimension, level).unwrap());
        let delta = if vectors == Vectors::Sealed { 18.7 } else { 16.0 };
        let scales = owner.ring.scales(f64::exp2(delta), level);
        let words = Ring::answer_words(&layout, vectors, scales);
        let segment =
            owner.pack(&layout, &rows_of(kind, count, dimension, scales.vector), (vectors, scales));
        let query = Rows::random_unit(1, dimension, scales.query, 77).0.values;
        let pieces = owner.ask(&layout, &query, [9; 32]);
        Asked { owner, segment, scales, words, query, pieces }
    }

    fn answer_to(&self, pieces: &[ring::Ciphertext]) -> Vec<u8> {
        let Asked { owner, segment, words, .. } = self;
        let trees = ring::expand(&owner.ring, &owner.keys, pieces, &[segment.layout]).unwrap();
        owner.answer(segment, &trees[0], *words)
    }

    fn open(&self, answer: &[u8]) -> Option<Vec<f64>> {
        let Asked { owner, segment, scales, words, query, pieces } = self;
        owner.open(segment, (query, pieces), answer, *scales, *words)
    }

    /// Adds a share of a perfect score to coefficient `at` of block 0's V, or to the score of row `at`.
    fn shifted(&self, answer: &[u8], of_v: bool, at: usize, share: f64) -> Vec<u8> {
        let v = self.words.linear();
        let (start, bits) = if of_v { (0, v) } else { (ring::DEGREE * v as usize, v - 6) };
        // A perfect score is 0.93 q/2.
        let by = (0.465 * share * f64::exp2(f64::from(bits))).round() as i64 as u64;
        let (mut answer, bit) = (answer.to_vec(), start + at * bits as usize);
        let mut word = [0; 8];
        let end = answer.len().min(bit / 8 + 8);
        word[..end - bit / 8].copy_from_slice(&answer[bit / 8..end]);
        let (held, mask) = (u64::from_le_bytes(word), ((1u64 << bits) - 1) << (bit % 8));
        let changed = (held & !mask) | (held.wrapping_add(by << (bit % 8)) & mask);
        answer[bit / 8..end].copy_from_slice(&changed.to_le_bytes()[..end - bit / 8]);
        answer
    }
}

/// One unit of a score's noise at these levels, as a share of a perfect one.
const DEVIATION: f64 = 1.4e-5;

#[test]
fn honest_noise_is_white_whatever_rows_have_in_common() {
    for (dimension, level) in [(64, 6), (300, 5)] {
        for vectors in [Vectors::Sealed, Vectors::Plain] {
            for kind in KINDS {
                let count = Layout::new(dimension, level).unwrap().vectors_per_block() + 300;
                let asked = Asked::new(dimension, level, count, vectors, kind);
                let energies = energies(&asked.owner, &asked.segment, asked.scales, asked.words, 6);
                let mean = energies.iter().sum::<f64>() / energies.len() as f64;
                // 48 are expected, with a deviation of about 10, and of 15 where all rows are one.
                assert!((30.0..70.0).contains(&mean), "{kind} {vectors:?}: {energies:?}");
                assert!(energies.iter().all(|energy| *energy < 200.0), "{kind}: {energies:?}");
                assert!(asked.open(&asked.answer_to(&asked.pieces)).is_some());
            }
        }
    }
}

#[test]
fn what_a_liar_sends_is_refused() {
    for (dimension, level, vectors) in
        [(512, 7, Vectors::Sealed), (64, 6, Vectors::Sealed), (512, 7, Vectors::Plain)]
    {
        let count = Layout::new(dimension, level).unwrap().vectors_per_block() + 7;
        let asked = Asked::new(dimension, level, count, vectors, "random");
        let honest = asked.answer_to(&asked.pieces);
        let scores = asked.open(&honest).unwrap();
        // What shows a coefficient of the query key: all of a score, a hundredth, eight deviations.
        for share in [0.9, -0.9, 0.01, 8.0 * DEVIATION, -8.0 * DEVIATION] {
            for at in [0, 1, 4095] {
                assert!(asked.open(&asked.shifted(&honest, true, at, share)).is_none(), "{share}");
            }
        }
        // One row, up, down and far away.
        for share in [0.01, -0.01, 0.5, -1.0] {
            for row in [0, 500] {
                assert!(asked.open(&asked.shifted(&honest, false, row, share)).is_none());
            }
        }
        // Two scores exchanged.
        let far = (1..count - 7).find(|&row| (scores[row] - scores[0]).abs() > 0.02).unwrap();
        let off = scores[far] - scores[0];
        let sign = |row| if asked.segment.signs.negates(row) { -1.0 } else { 1.0 };
        let swapped = asked.shifted(&honest, false, 0, off * sign(0));
        assert!(asked.open(&asked.shifted(&swapped, false, far, -off * sign(far))).is_none());
        // The answer to an earlier question, and to the same one asked before: of plain rows that is as
        // right as any.
        let before = [(78, 10), (77, 11)];
        for (query, noise) in before.into_iter().take(1 + usize::from(vectors == Vectors::Sealed)) {
            let query = Rows::random_unit(1, dimension, asked.scales.query, query).0.values;
            let pieces = asked.owner.ask(&asked.segment.layout, &query, [noise; 32]);
            assert!(asked.open(&asked.answer_to(&pieces)).is_none());
        }
        assert!(asked.open(&vec![0; honest.len()]).is_none());
        // Half of the range, times a ternary key: nothing of it is seen modulo q.
        assert!(asked.open(&asked.shifted(&honest, true, 3, 1.0 / 0.93)).is_none());
    }
}

/// Rows of small groups are known, so that an answer has no part in what is returned, nor in whether anything is.
#[test]
fn a_small_blocks_scores_do_not_depend_on_the_answer() {
    for (level, count) in [(0, 1), (0, 21), (7, 3), (7, 128)] {
        let asked = Asked::new(512, level, count, Vectors::Sealed, "random");
        let honest = asked.answer_to(&asked.pieces);
        let scores = asked.open(&honest).unwrap();
        for share in [2e-6, -4e-6, 0.004, 0.5] {
            assert_eq!(asked.open(&asked.shifted(&honest, true, 9, share)).unwrap(), scores);
            assert_eq!(asked.open(&asked.shifted(&honest, false, 0, share)).unwrap(), scores);
        }
        let pieces = asked.owner.ask(&asked.segment.layout, &asked.query, [12; 32]);
        assert_eq!(asked.open(&asked.answer_to(&pieces)).unwrap(), scores);
    }
}

#[test]
fn stored_words_that_were_changed_do_not_decrypt() {
    for (count, vectors) in [(1100, Vectors::Sealed), (40, Vectors::Sealed), (1100, Vectors::Plain)]
    {
        let asked = Asked::new(512, 7, count, vectors, "random");
        let Segment { layout, key, signs, check, words, .. } = &asked.segment;
        let masks = key.is_some().then_some(&asked.owner.masks);
        let opened = OpenedRows { layout, key: key.as_ref(), signs, check: Some(check) };
        let unseal = |words: &[u8]| {
            ring::unseal(&asked.owner.ring, masks, &opened, words, count).unwrap().is_some()
        };
        assert!(unseal(words));
        for at in [0, 1000, words.len() - 100] {
            let mut changed = words.to_vec();
            changed[at] ^= 1;
            assert!(!unseal(&changed), "{count} {vectors:?} {at}");
        }
    }
}

/// Bytes of check sums a row, which say nothing of how rows lie.
#[test]
fn sums_are_as_long_for_all_rows() {
    for (dimension, level, most) in [(512, 7, 57.0), (512, 8, 30.0), (512, 9, 28.0), (96, 5, 9.0)] {
        let owner = Owner::new(dimension);
        let layout = Layout::new(dimension, level).unwrap();
        for (vectors, delta) in [(Vectors::Sealed, 18.7), (Vectors::Plain, 16.0)] {
            let scales = owner.ring.scales(f64::exp2(delta), level);
            let count = layout.vectors_per_block();
            let stored = KINDS.map(|kind| {
                let rows = rows_of(kind, count, dimension, scales.vector);
                owner.pack(&layout, &rows, (vectors, scales)).stored
            });
            assert!(stored.iter().all(|bytes| *bytes == stored[0]), "{stored:?}");
            let of_one = stored[0] as f64 / count as f64;
            assert!(of_one <= most, "{of_one} at level {level}, {vectors:?}");
        }
    }
}

/// Prints the distribution for each kind of rows: `cargo test … -- --ignored --nocapture energies`.
#[test]
#[ignore = "a table to look at, some minutes long"]
fn table_of_energies() {
    for (dimension, level, extra) in [(512, 7, 100), (64, 6, 900), (64, 4, 0), (512, 9, 0)] {
        let owner = Owner::new(dimension);
        let layout = Layout::new(dimension, level).unwrap();
        for (vectors, delta) in [(Vectors::Sealed, 18.7), (Vectors::Plain, 16.0)] {
            for kind in KINDS {
                let scales = owner.ring.scales(f64::exp2(delta), level);
                let words = Ring::answer_words(&layout, vectors, scales);
                let count = layout.vectors_per_block() + extra;
                let rows = rows_of(kind, count, dimension, scales.vector);
                let segment = owner.pack(&layout, &rows, (vectors, scales));
                let queries = if level == 9 { 12 } else { 60 };
                let mut energies = energies(&owner, &segment, scales, words, queries);
                energies.sort_by(f64::total_cmp);
                let count = energies.len() as f64;
                let mean = energies.iter().sum::<f64>() / count;
                let square = energies.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                println!(
                    "d={dimension} k={level} {vectors:?} {kind}: {count} groups, mean {mean:.1} deviation {:.1} most {:.1}",
                    square.sqrt(),
                    energies[energies.len() - 1]
                );
            }
        }
    }
}
