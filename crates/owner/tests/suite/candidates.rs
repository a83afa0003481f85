//! Candidates: whatever noise an answer carries, no row that is left out is closer than they reach.

use ciphervec_arith::sample::Stream;
use ciphervec_owner::search::{
    Hit, Owner, QueryOptions, Reach, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};

const DIMENSION: usize = 32;
const ROWS: usize = 900;
const MANY: usize = 40;

fn random(rows: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * DIMENSION];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

/// Smaller is closer.
fn key(metric: Metric, x: &[f32], q: &[f32]) -> f64 {
    let pairs = || x.iter().zip(q).map(|(&x, &q)| (f64::from(x), f64::from(q)));
    let dot: f64 = pairs().map(|(x, q)| x * q).sum();
    let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    match metric {
        Metric::L2 => pairs().map(|(x, q)| (x - q).powi(2)).sum(),
        Metric::Cosine => -dot / norm(x) / norm(q),
        _ => -dot,
    }
}

fn asked(
    spec: IndexSpec,
    rows: &[f32],
    queries: &[f32],
    many: usize,
) -> Vec<(Vec<Hit>, Option<Reach>)> {
    let keys = Keys::generate().unwrap();
    let mut server = ServerIndex::new(spec.clone()).unwrap();
    let evaluation = keys.evaluation(&spec, 3).unwrap().unwrap();
    server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
    let (owner, mut directory) = (Owner::new(&keys, spec).unwrap(), SegmentDirectory::new());
    let ids: Vec<Id> = (0..ROWS as i64).map(Id::Number).collect();
    // A group whose rows are its sums, and one that has sums.
    for (rows, ids) in
        [(&rows[..100 * DIMENSION], &ids[..100]), (&rows[100 * DIMENSION..], &ids[100..])]
    {
        let sealed = owner.seal(rows, ids).unwrap();
        directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        server.add(sealed.segment).unwrap();
    }
    let options = QueryOptions { epoch: 3, ..QueryOptions::default() };
    let query = owner.query(queries, &directory, options).unwrap();
    let answer = server.evaluate(query.to_bytes()).unwrap();
    let opened =
        owner.open(&query, &answer.bytes, &directory, Retrieval::Candidates(many)).unwrap();
    opened.hits.into_iter().zip(opened.reaches).collect()
}

fn spec(metric: Metric) -> IndexSpec {
    IndexSpec::new("docs", DIMENSION as u32, metric, Mode::Sealed, Precision::Standard).unwrap()
}

#[test]
fn no_row_that_is_left_out_is_closer_than_candidates_reach() {
    // Rows between a hundredth and ten times as long as others.
    let lengths = random(ROWS, 2);
    let mut rows = random(ROWS, 1);
    for (row, length) in rows.chunks_exact_mut(DIMENSION).zip(lengths.chunks_exact(DIMENSION)) {
        row.iter_mut().for_each(|x| *x *= 10f32.powf(1.5 * length[0] - 0.5));
    }
    let queries = random(12, 3);
    for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2] {
        let sign = if metric.higher_is_closer() { -1.0 } else { 1.0 };
        let found = asked(spec(metric).with_incarnation([5; 16]), &rows, &queries, MANY);
        for (query, (hits, reach)) in queries.chunks_exact(DIMENSION).zip(found) {
            let Reach { closest, surely } = reach.unwrap();
            assert_eq!(hits.len(), MANY);
            let read: Vec<Id> = hits.into_iter().map(|hit| hit.id).collect();
            let of = |row: &[f32]| key(metric, row, query);
            let mut keys: Vec<_> = rows.chunks_exact(DIMENSION).map(of).zip(0i64..).collect();
            let left = keys.iter().filter(|(_, id)| !read.contains(&Id::Number(*id)));
            let nearest = left.map(|(key, _)| *key).fold(f64::INFINITY, f64::min);
            assert!(sign * closest <= nearest, "{metric:?}");
            assert!(sign * surely < sign * closest, "{metric:?}");
            // And not so far that nothing can be told.
            keys.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(keys[0].0 < sign * surely, "{metric:?}: {} {surely}", keys[0].0);
            assert!(sign * closest <= keys[MANY].0, "{metric:?}");
        }
    }
}

#[test]
fn candidates_that_are_all_rows_reach_everywhere_and_unchecked_rows_nowhere() {
    let (rows, queries) = (random(ROWS, 1), random(1, 3));
    for many in [ROWS, ROWS + 1] {
        let found = asked(spec(Metric::Cosine).with_incarnation([5; 16]), &rows, &queries, many);
        assert_eq!((found[0].0.len(), found[0].1), (ROWS, None));
    }
    // Without an incarnation dimensions have no signs, and a server may shift scores further.
    let found = asked(spec(Metric::Cosine), &rows, &queries, MANY);
    assert_eq!(found[0].1.unwrap().closest, f64::INFINITY);
}
