//! The ring form end to end, at every level, against exact inner products.

use crate::rows::{Rows, dot};
use ciphervec_arith::AlignedBytes;
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::lattice::Scales;
use ciphervec_he_secret::lattice::ring::{
    self, AnswerCheck, AnswerWords, AskedLevel, Binding, CheckWeights, Ciphertext, EvaluationKeys,
    Expanded, Layout, Masks, OpenedRows, Packed, QueryKey, QueryOpener, Ring, RowSigns, ScoreNoise,
    SegmentKey, Vectors,
};
use ciphervec_he_secret::wire::Reader;

pub struct Owner {
    pub ring: Ring,
    pub master: MasterKey,
    pub key: QueryKey,
    pub keys: EvaluationKeys,
    pub masks: Masks,
}

impl Owner {
    pub fn new(dimension: usize) -> Self {
        let ring = Ring::new().unwrap();
        let master = MasterKey::from_bytes([3; 32]);
        let key = QueryKey::derive(&ring, &master, b"collection", 0);
        let binding = Binding { index: [6; 8], mask_seed: [8; 32] };
        let keys = key.evaluation_keys(&ring, &master, b"collection", binding, dimension);
        // Through the wire, as a server gets them.
        let bytes = keys.to_bytes();
        assert!(bytes.len() <= 1_500_000);
        let keys = EvaluationKeys::from_bytes(&ring, &bytes, dimension).unwrap();
        assert_eq!(*keys.binding(), binding);
        Owner { ring, master, key, keys, masks: Masks::new([8; 32], dimension) }
    }

    /// Rows as a server has them, and what opens answers about them.
    pub fn pack(
        &self,
        layout: &Layout,
        rows: &Rows,
        (vectors, scales): (Vectors, Scales),
    ) -> Segment {
        let Owner { ring, master, masks, .. } = self;
        let count = rows.values.len() / rows.dimension;
        let packed = match vectors {
            Vectors::Plain => ring::pack(ring, master, b"collection", layout, rows, scales),
            Vectors::Sealed => ring::seal(ring, masks, master, b"collection", layout, rows, scales),
        };
        let Packed { id, words, sums } = packed.unwrap();
        let key = (vectors == Vectors::Sealed)
            .then(|| SegmentKey::derive(ring, master, b"collection", id, layout, count));
        let weights = CheckWeights::derive(master, b"collection", id, layout);
        let check = AnswerCheck::new(weights, layout, count, &sums, 0..layout.blocks(count));
        let signs = RowSigns::of(id, count);
        let (stored, check) = (sums.len(), check.unwrap());
        Segment { vectors, layout: *layout, count, words, key, signs, check, stored }
    }

    /// One query as it is sent.
    pub fn ask(&self, layout: &Layout, query: &[i64], noise: [u8; 32]) -> Vec<Ciphertext> {
        let mut sent = Vec::new();
        let seed = [1 ^ noise[0]; 32];
        let pieces = self.key.encrypt(&self.ring, layout, query, &seed, &noise, 40);
        pieces.iter().for_each(|piece| piece.append(&mut sent));
        let mut reader = Reader::new("a query", &sent);
        let read: Vec<Ciphertext> = (0..layout.chunks())
            .map(|piece| {
                Ciphertext::read(&self.ring, &mut reader, &seed, 40 + piece as u64).unwrap()
            })
            .collect();
        assert_eq!(read, pieces);
        read
    }

    /// A server's answer.
    pub fn answer(&self, segment: &Segment, tree: &Expanded, words: AnswerWords) -> Vec<u8> {
        let Segment { layout, count, words: data, .. } = segment;
        let mut answer = vec![0; words.answer_len(layout, *count)];
        for blocks in layout.ranges(*count, 1) {
            let sums = ring::scan(&self.ring, layout, data, *count, blocks.clone(), &[tree]);
            ring::write_answer(&self.ring, layout, words, blocks, &sums[0], &mut answer);
        }
        answer
    }

    /// What the owner makes of an answer, in units of one; `None` if it is refused.
    pub fn open(
        &self,
        segment: &Segment,
        asked: (&[i64], &[Ciphertext]),
        answer: &[u8],
        scales: Scales,
        words: AnswerWords,
    ) -> Option<Vec<f64>> {
        self.open_folded(segment, asked, answer, scales, words, 0.0)
    }

    /// The same of one that came through a fold of this variance.
    pub fn open_folded(
        &self,
        segment: &Segment,
        (query, pieces): (&[i64], &[Ciphertext]),
        answer: &[u8],
        scales: Scales,
        words: AnswerWords,
        fold: f64,
    ) -> Option<Vec<f64>> {
        let Segment { vectors, layout, count, key, signs, check, .. } = segment;
        let masks = key.is_some().then_some(&self.masks);
        let asked =
            AskedLevel::expand(&self.ring, &self.keys, &self.key, masks, pieces, &[*layout]);
        let asked = asked.unwrap().remove(0);
        let opener = QueryOpener::new(&self.ring, &self.key, &asked, words);
        let opened = OpenedRows { layout, key: key.as_ref(), signs, check: Some(check) };
        let noise = ScoreNoise::of(layout, *vectors, scales, words, false).with(fold);
        let mut out = vec![0.0; *count];
        let sound = opener.open(&opened, &noise, query, (0, answer), &mut out);
        let unit = scales.vector * scales.query * f64::exp2(f64::from(layout.level()));
        sound.then(|| out.iter().map(|score| score / unit).collect())
    }

    /// Query → bytes → server → bytes → scores, in units of one.
    fn scores(
        &self,
        layout: &Layout,
        rows: &Rows,
        query: &[i64],
        vectors: Vectors,
        scales: Scales,
        words: AnswerWords,
    ) -> Vec<f64> {
        let segment = self.pack(layout, rows, (vectors, scales));
        let pieces = self.ask(layout, query, [2; 32]);
        let tree = ring::expand(&self.ring, &self.keys, &pieces, &[*layout]).unwrap().remove(0);
        let answer = self.answer(&segment, &tree, words);
        self.open(&segment, (query, &pieces), &answer, scales, words).unwrap()
    }
}

/// A segment, at the server and at the owner.
pub struct Segment {
    pub vectors: Vectors,
    pub layout: Layout,
    pub count: usize,
    pub words: AlignedBytes,
    pub key: Option<SegmentKey>,
    pub signs: RowSigns,
    pub check: AnswerCheck,
    /// Bytes of what the check is made of.
    pub stored: usize,
}

#[test]
fn scores_stay_inside_the_bounds_at_every_level() {
    for (dimension, levels) in [
        (1, vec![0]),
        (3, vec![0, 1, 2]),
        (64, vec![0, 3, 6]),
        (300, vec![7]),
        (512, vec![0, 4, 7, 9]),
        (5000, vec![5]),
    ] {
        let owner = Owner::new(dimension);
        for level in levels {
            let layout = Layout::new(dimension, level).unwrap();
            let count = layout.vectors_per_block() + 3;
            for (vectors, delta) in [(Vectors::Sealed, 18.0), (Vectors::Plain, 16.0)] {
                let scales = owner.ring.scales(f64::exp2(delta), level);
                let (rows, exact) = Rows::random_unit(count, dimension, scales.vector, 1);
                let (query, exact_query) = Rows::random_unit(1, dimension, scales.query, 2);
                let words = Ring::answer_words(&layout, vectors, scales);
                let chosen = [
                    AnswerWords::FIRST,
                    words,
                    AnswerWords::new(words.linear() as u8 + 2).unwrap(),
                ];
                for words in chosen {
                    let got = owner.scores(&layout, &rows, &query.values, vectors, scales, words);
                    let bound = Ring::error_bound(&layout, vectors, scales, words);
                    let errors: Vec<f64> = got
                        .iter()
                        .zip(exact.chunks_exact(dimension))
                        .map(|(got, row)| got - dot(row, &exact_query))
                        .collect();
                    let worst = errors.iter().fold(0.0f64, |worst, error| worst.max(error.abs()));
                    let deviation = (dot(&errors, &errors) / count as f64).sqrt();
                    println!(
                        "d={dimension} k={level} {vectors:?} {words:?}: std {deviation:.2e} max {worst:.2e} bound {:.2e}",
                        bound.typical
                    );
                    assert!(
                        worst <= bound.tail,
                        "d={dimension} k={level} {vectors:?}: {worst:e} {bound:?}"
                    );
                    assert!(
                        count < 100 || deviation <= 1.2 * bound.typical,
                        "d={dimension} k={level} {vectors:?}: {deviation:e} {bound:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn perfect_matches_and_opposites_do_not_wrap_at_any_level() {
    for dimension in [1, 2, 7, 512, 1000, 4096, 16384] {
        let owner = Owner::new(dimension);
        let step = if dimension >= 1000 { 3 } else { 1 };
        for level in (0..=Layout::top_level(dimension)).step_by(step) {
            let layout = Layout::new(dimension, level).unwrap();
            let scales = owner.ring.scales(f64::exp2(18.0), level);
            let (row, exact) = Rows::random_unit(1, dimension, scales.vector, 7);
            let query: Vec<i64> = exact.iter().map(|x| (x * scales.query).round() as i64).collect();
            let opposite: Vec<i64> = row.values.iter().map(|x| -x).collect();
            let rows = Rows { dimension, values: [row.values, opposite].concat() };
            let words = Ring::answer_words(&layout, Vectors::Sealed, scales);
            let got = owner.scores(&layout, &rows, &query, Vectors::Sealed, scales, words);
            let bound = Ring::error_bound(&layout, Vectors::Sealed, scales, words);
            for (got, truth) in got.iter().zip([1.0, -1.0]) {
                assert!(
                    (got - truth).abs() < bound.tail,
                    "d={dimension} k={level}: {got} {bound:?}"
                );
            }
        }
    }
}

#[test]
fn unsealing_returns_the_rows() {
    let owner = Owner::new(100);
    for level in [0, 3, 7] {
        let layout = Layout::new(100, level).unwrap();
        let count = layout.vectors_per_block() + 5;
        let (rows, _) = Rows::random_unit(count, 100, f64::exp2(18.0), 9);
        for vectors in [Vectors::Sealed, Vectors::Plain] {
            let segment =
                owner.pack(&layout, &rows, (vectors, owner.ring.scales(f64::exp2(18.0), level)));
            let Segment { key, signs, check, words, .. } = &segment;
            let masks = key.is_some().then_some(&owner.masks);
            for check in [Some(check), None] {
                let opened = OpenedRows { layout: &layout, key: key.as_ref(), signs, check };
                let plain = ring::unseal(&owner.ring, masks, &opened, words, count).unwrap();
                let noise = if vectors == Vectors::Sealed { 29.0 } else { 0.0 };
                let plain = plain.unwrap();
                assert!(
                    plain.iter().zip(&rows.values).all(|(x, y)| (x - *y as f64).abs() <= noise)
                );
                // A small group's rows are known without noise.
                let last = &plain[plain.len() - 500..];
                let exact = last.iter().zip(&rows.values[rows.values.len() - 500..]);
                assert!(check.is_none() || exact.clone().all(|(x, y)| *x == *y as f64));
            }
        }
    }
}

#[test]
fn evaluation_keys_refuse_what_they_should() {
    let owner = Owner::new(64);
    let bytes = owner.keys.to_bytes();
    assert!(EvaluationKeys::from_bytes(&owner.ring, &bytes, 512).is_err());
    assert!(EvaluationKeys::from_bytes(&owner.ring, &bytes[..bytes.len() - 1], 64).is_err());
    let layout = Layout::new(512, 9).unwrap();
    let pieces = owner.key.encrypt(&owner.ring, &layout, &[0; 512], &[1; 32], &[2; 32], 0);
    assert!(ring::expand(&owner.ring, &owner.keys, &pieces, &[layout]).is_err());
}

/// Who knows an epoch's number can make its evaluation keys again.
#[test]
fn evaluation_keys_are_derived() {
    let ring = Ring::new().unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let binding = Binding { index: [6; 8], mask_seed: [8; 32] };
    let made = |collection: &[u8], epoch| {
        let key = QueryKey::derive(&ring, &master, collection, epoch);
        key.evaluation_keys(&ring, &master, collection, binding, 64).to_bytes()
    };
    let session = ring::SESSION_EPOCHS + 5;
    assert!(ring::is_session(session) && !ring::is_session(ring::SESSION_EPOCHS - 1));
    let bytes = made(b"collection", session);
    assert_eq!(bytes, made(b"collection", session));
    assert_eq!(made(b"collection", 5), made(b"collection", 5));
    // A seed of a mask and two polynomials of 25,600 bytes, after 112 bytes: no two keys of one session, of two sessions, or
    // of two collections share a mask.
    let mut seeds = std::collections::HashSet::new();
    let all = [bytes, made(b"collection", session + 1), made(b"other", session)];
    for bytes in &all {
        let keys = &bytes[112..];
        assert_eq!(keys.len(), 9 * (32 + 2 * 25_600));
        seeds.extend(keys.chunks_exact(32 + 2 * 25_600).map(|key| key[..32].to_vec()));
    }
    assert_eq!(seeds.len(), 27);
}

/// Rounding is at its worst where a query that serves deep trees meets a segment far above them.
#[test]
fn words_are_as_long_as_each_level_under_a_deeper_query_needs() {
    let dimension = 512;
    let owner = Owner::new(dimension);
    let top = Layout::top_level(dimension);
    for (vectors, delta) in [(Vectors::Sealed, 18.7), (Vectors::Plain, 16.0)] {
        let scales = owner.ring.scales(f64::exp2(delta), top);
        let mut widths = Vec::new();
        for level in [0, 5, 9] {
            let layout = Layout::new(dimension, level).unwrap();
            let words = Ring::answer_words(&layout, vectors, scales);
            let bound = Ring::error_bound(&layout, vectors, scales, words);
            widths.push(words.linear());
            let count = layout.vectors_per_block().max(500);
            let (rows, exact) = Rows::random_unit(count, dimension, scales.vector, 1);
            let (query, exact_query) = Rows::random_unit(1, dimension, scales.query, 2);
            let got = owner.scores(&layout, &rows, &query.values, vectors, scales, words);
            let errors: Vec<f64> = got
                .iter()
                .zip(exact.chunks_exact(dimension))
                .map(|(got, row)| got - dot(row, &exact_query))
                .collect();
            let deviation = (dot(&errors, &errors) / count as f64).sqrt();
            println!(
                "k={level} of {top} {vectors:?} {words:?}: {deviation:.2e}, {:.2e}",
                bound.typical
            );
            assert!(errors.iter().all(|error| error.abs() <= bound.tail));
            // Scores of small blocks are computed here.
            let least = if layout.vectors_per_block() > 128 { 0.7 } else { 0.0 };
            assert!(
                (least..=1.2).contains(&(deviation / bound.typical)),
                "{deviation:e} {bound:?}"
            );
        }
        assert!(widths.is_sorted_by(|a, b| a >= b), "{widths:?}");
        // 4,096 rows take 4,096 coefficients of V and as many of U.
        let words = Ring::answer_words(&Layout::new(dimension, top).unwrap(), vectors, scales);
        let bytes = words.answer_len(&Layout::new(dimension, top).unwrap(), 1 << 20) as f64;
        assert!(bytes / f64::from(1 << 20) <= if vectors == Vectors::Sealed { 4.8 } else { 5.6 });
    }
}

#[test]
fn words_of_other_widths_are_refused() {
    for linear in [0, 19, 33, 255] {
        assert!(AnswerWords::new(linear).is_err());
    }
}
