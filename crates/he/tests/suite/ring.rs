//! The ring form end to end, at every level, against exact inner products.

use crate::rows::{Rows, dot};
use ciphervec_arith::AlignedBytes;
use ciphervec_he::keys::MasterKey;
use ciphervec_he::lattice::Scales;
use ciphervec_he::lattice::ring::{
    self, AnswerWords, Binding, Ciphertext, EvaluationKeys, Layout, MaskSums, Masks, QueryKey,
    QueryOpener, Ring, SegmentKey, Vectors,
};
use ciphervec_he::wire::Reader;

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
        let keys =
            EvaluationKeys::generate(&ring, &key, master.key_id(), binding, dimension).unwrap();
        // Through the wire, as a server gets them.
        let bytes = keys.to_bytes();
        assert!(bytes.len() <= 1_500_000);
        let keys = EvaluationKeys::from_bytes(&ring, &bytes, dimension).unwrap();
        assert_eq!(*keys.binding(), binding);
        Owner { ring, master, key, keys, masks: Masks::new([8; 32], dimension) }
    }

    /// Packed words and the key that opens them, if they are sealed.
    pub fn pack(
        &self,
        layout: &Layout,
        rows: &Rows,
        vectors: Vectors,
    ) -> (AlignedBytes, Option<SegmentKey>) {
        if vectors == Vectors::Plain {
            return (ring::pack(&self.ring, layout, rows), None);
        }
        let (id, words) =
            ring::seal(&self.ring, &self.masks, &self.master, b"collection", layout, rows).unwrap();
        let count = rows.values.len() / rows.dimension;
        let key = SegmentKey::derive(&self.ring, &self.master, b"collection", id, layout, count);
        (words, Some(key))
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
        let count = rows.values.len() / rows.dimension;
        let (data, segment_key) = self.pack(layout, rows, vectors);
        let mut sent = Vec::new();
        let pieces =
            Ciphertext::encrypt(&self.ring, &self.key, layout, query, &[1; 32], &[2; 32], 40);
        pieces.iter().for_each(|piece| piece.append(&mut sent));
        let mut reader = Reader::new("a query", &sent);
        let read: Vec<Ciphertext> = (0..layout.chunks())
            .map(|piece| {
                Ciphertext::read(&self.ring, &mut reader, &[1; 32], 40 + piece as u64).unwrap()
            })
            .collect();
        assert_eq!(read, pieces);
        let expanded = ring::expand(&self.ring, &self.keys, &read, &[*layout]).unwrap().remove(0);
        let mut answer = vec![0; words.answer_len(layout, count)];
        for blocks in layout.ranges(count, 1) {
            let sums = ring::scan(&self.ring, layout, &data, count, blocks.clone(), &[&expanded]);
            ring::write_answer(&self.ring, layout, words, blocks, &sums[0], &mut answer);
        }
        let mask_sums = (vectors == Vectors::Sealed).then(|| {
            let mut bytes = vec![0; words.sums_len()];
            MaskSums::compute(&self.ring, &self.masks, layout, &[&expanded])[0]
                .write(&self.ring, words, &mut bytes);
            MaskSums::read(&self.ring, words, &mut Reader::new("a response", &bytes)).unwrap()
        });
        let opener = QueryOpener::new(&self.ring, &self.key, mask_sums.as_ref());
        let mut out = vec![0.0; count];
        opener.open(layout, segment_key.as_ref(), words, 0, &answer, &mut out);
        let unit = scales.vector * scales.query * f64::exp2(f64::from(layout.level()));
        out.iter().map(|score| score / unit).collect()
    }
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
                let words = Ring::answer_words(&layout, vectors, scales, true);
                let chosen = [
                    AnswerWords::FIRST,
                    words,
                    AnswerWords::new(words.linear() as u8, false).unwrap(),
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
            let words = Ring::answer_words(&layout, Vectors::Sealed, scales, level % 2 == 0);
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
        let (sealed, key) = owner.pack(&layout, &rows, Vectors::Sealed);
        let secrets = Some((&owner.masks, key.as_ref().unwrap()));
        let plain = ring::unseal(&owner.ring, &layout, secrets, &sealed, count).unwrap();
        assert!(plain.iter().zip(&rows.values).all(|(got, x)| (got - *x as f64).abs() <= 29.0));
        let packed = ring::pack(&owner.ring, &layout, &rows);
        let plain = ring::unseal(&owner.ring, &layout, None, &packed, count).unwrap();
        assert!(plain.iter().zip(&rows.values).all(|(got, x)| *got == *x as f64));
    }
}

#[test]
fn evaluation_keys_refuse_what_they_should() {
    let owner = Owner::new(64);
    let bytes = owner.keys.to_bytes();
    assert!(EvaluationKeys::from_bytes(&owner.ring, &bytes, 512).is_err());
    assert!(EvaluationKeys::from_bytes(&owner.ring, &bytes[..bytes.len() - 1], 64).is_err());
    let layout = Layout::new(512, 9).unwrap();
    let pieces =
        Ciphertext::encrypt(&owner.ring, &owner.key, &layout, &[0; 512], &[1; 32], &[2; 32], 0);
    assert!(ring::expand(&owner.ring, &owner.keys, &pieces, &[layout]).is_err());
}

/// Who knows a session's number can make its evaluation keys again; those of other epochs are drawn anew.
#[test]
fn evaluation_keys_of_a_session_are_derived() {
    let ring = Ring::new().unwrap();
    let master = MasterKey::from_bytes([3; 32]);
    let binding = Binding { index: [6; 8], mask_seed: [8; 32] };
    let made = |collection: &[u8], epoch| {
        let key = QueryKey::derive(&ring, &master, collection, epoch);
        let keys = EvaluationKeys::generate(&ring, &key, master.key_id(), binding, 64).unwrap();
        keys.to_bytes()
    };
    let session = ring::SESSION_EPOCHS + 5;
    assert!(ring::is_session(session) && !ring::is_session(ring::SESSION_EPOCHS - 1));
    let bytes = made(b"collection", session);
    assert_eq!(bytes, made(b"collection", session));
    assert_ne!(made(b"collection", 5), made(b"collection", 5));
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

/// Under a session's keys a tree is what it is under others.
#[test]
fn a_session_answers_as_any_epoch_does() {
    let dimension = 100;
    let mut owner = Owner::new(dimension);
    let binding = *owner.keys.binding();
    owner.key =
        QueryKey::derive(&owner.ring, &owner.master, b"collection", ring::SESSION_EPOCHS | 77);
    owner.keys = EvaluationKeys::generate(
        &owner.ring,
        &owner.key,
        owner.master.key_id(),
        binding,
        dimension,
    )
    .unwrap();
    let layout = Layout::new(dimension, 5).unwrap();
    let scales = owner.ring.scales(f64::exp2(18.0), 5);
    let (rows, exact) = Rows::random_unit(300, dimension, scales.vector, 1);
    let (query, exact_query) = Rows::random_unit(1, dimension, scales.query, 2);
    let words = AnswerWords::FIRST;
    let got = owner.scores(&layout, &rows, &query.values, Vectors::Sealed, scales, words);
    let bound = Ring::error_bound(&layout, Vectors::Sealed, scales, words);
    for (got, row) in got.iter().zip(exact.chunks_exact(dimension)) {
        assert!((got - dot(row, &exact_query)).abs() < bound.tail);
    }
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
            let words = Ring::answer_words(&layout, vectors, scales, true);
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
            assert!((0.7..=1.2).contains(&(deviation / bound.typical)), "{deviation:e} {bound:?}");
        }
        assert!(widths.is_sorted_by(|a, b| a >= b), "{widths:?}");
        // 4,096 rows take 4,096 coefficients of V and as many of U.
        let words =
            Ring::answer_words(&Layout::new(dimension, top).unwrap(), vectors, scales, true);
        let bytes = words.answer_len(&Layout::new(dimension, top).unwrap(), 1 << 20) as f64;
        assert!(bytes / f64::from(1 << 20) <= if vectors == Vectors::Sealed { 4.8 } else { 5.6 });
    }
}

#[test]
fn words_of_other_widths_are_refused() {
    for linear in [0, 19, 33, 255] {
        assert!(AnswerWords::new(linear, true).is_err());
    }
}
