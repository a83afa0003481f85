//! Exact answers: results are functions of rows and queries; what the server or a writer changed is found.

use crate::pruned::reseal;
use ciphervec_arith::AlignedBytes;
use ciphervec_arith::sample::Stream;
use ciphervec_owner::search::{
    Exactness, Hit, Opened, Owner, Probe, Query, QueryOptions, Retrieval, SegmentDirectory,
    ServerIndex, Writer,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, SegmentId};

const DIMENSION: usize = 24;
const PRECISIONS: [Precision; 3] = [Precision::Standard, Precision::Small, Precision::Wide];
/// Bytes of an answer before the words of its first segment: frame, index, queries, no mask sums, segments; id, rows,
/// level, whether filtered.
const ANSWER_HEAD: usize = 64 + 8 + 4 + 1 + 4 + 16 + 4 + 1 + 1;

fn random(rows: usize, seed: u8) -> Vec<f32> {
    let mut words = vec![0u64; rows * DIMENSION];
    Stream::new(&[seed; 32], 0).uniform_bits(24, &mut words);
    words.iter().map(|&word| word as f32 / 8_388_608.0 - 1.0).collect()
}

fn rows(metric: Metric, rows: usize, seed: u8) -> Vec<f32> {
    let mut values = random(rows, seed);
    if metric == Metric::Hamming {
        values.iter_mut().for_each(|x| *x = x.signum());
    }
    values
}

struct Index {
    owner: Owner,
    server: ServerIndex,
    directory: SegmentDirectory,
}

fn index(master: u8, metric: Metric, precision: Precision) -> Index {
    let spec =
        IndexSpec::new("exact", DIMENSION as u32, metric, Mode::SealedIndex, precision).unwrap();
    let owner = Owner::new(&Keys::from_master([master; 32]), spec.clone()).unwrap();
    Index { owner, server: ServerIndex::new(spec).unwrap(), directory: SegmentDirectory::new() }
}

impl Index {
    fn add(&mut self, rows: &[f32], first: i64) {
        let ids: Vec<Id> = (first..).take(rows.len() / DIMENSION).map(Id::Number).collect();
        let sealed = self.owner.seal(rows, &ids).unwrap();
        self.directory.add(&self.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        self.server.add(sealed.segment).unwrap();
    }

    fn segment(&self) -> SegmentId {
        self.server.segments().next().unwrap().head().id
    }

    fn query(&self, rows: &[f32]) -> Query {
        self.owner.query(rows, &self.directory, QueryOptions::default()).unwrap()
    }

    fn answer(&self, query: &Query) -> Vec<u8> {
        self.server.evaluate(query.to_bytes()).unwrap().bytes
    }

    fn open(&self, query: &Query, answer: &[u8], ask: Retrieval) -> Result<Opened, Error> {
        self.owner.open(query, answer, &self.directory, ask)
    }

    /// Ids and the bits of values.
    fn hits(&self, queries: &[f32], ask: Retrieval) -> Vec<Vec<(Id, u64)>> {
        let query = self.query(queries);
        let opened = self.open(&query, &self.answer(&query), ask).unwrap();
        assert!(opened.exact && opened.checked && opened.disqualified.is_empty());
        let pair = |hit: &Hit| (hit.id.clone(), hit.value.to_bits());
        opened.hits.iter().map(|hits| hits.iter().map(pair).collect()).collect()
    }
}

/// The bytes with `edit` made and a checksum that fits.
fn forged(bytes: &[u8], edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    edit(&mut bytes);
    reseal(&mut bytes);
    bytes
}

#[test]
fn results_are_the_same_bits_under_every_key_and_noise() {
    for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming] {
        for precision in PRECISIONS {
            let (values, queries) = (rows(metric, 300, 1), rows(metric, 6, 2));
            let both = [3, 4].map(|master| {
                let mut index = index(master, metric, precision);
                index.add(&values[..200 * DIMENSION], 0);
                index.add(&values[200 * DIMENSION..], 200);
                index
            });
            let middle = f64::from_bits(both[0].hits(&queries, Retrieval::TopK(150))[0][149].1);
            for ask in [
                Retrieval::TopK(1),
                Retrieval::TopK(10),
                Retrieval::TopK(300),
                Retrieval::Range(middle),
            ] {
                let [one, other] = [&both[0], &both[1]].map(|index| index.hits(&queries, ask));
                assert_eq!(one, other, "{metric:?} {precision:?} {ask:?}");
                let again = both[0].hits(&queries[..DIMENSION], ask);
                assert_eq!(again[0], one[0], "a query alone is answered as among others");
            }
            // A row that lies exactly on the threshold is within it.
            let within = both[0].hits(&queries[..DIMENSION], Retrieval::Range(middle));
            assert!(within[0].len() >= 150, "{metric:?} {precision:?}");
            let best = both[0].hits(&queries, Retrieval::TopK(10));
            let all = both[0].hits(&queries, Retrieval::TopK(300));
            assert!(best.iter().zip(&all).all(|(best, all)| best[..] == all[..10]));
            let [one, other] = [&both[0], &both[1]].map(|index| {
                let segments = index.server.segments().map(|segment| {
                    let bytes = segment.to_bytes(index.server.spec()).unwrap().into_owned();
                    index.owner.unseal_rows(&bytes, None, &index.directory).unwrap()
                });
                segments.collect::<Vec<_>>()
            });
            assert_eq!(one, other, "{metric:?} {precision:?}");
        }
    }
}

/// An independent computation: the same roundings in whole numbers.
#[test]
fn a_score_is_a_whole_number_over_the_scales() {
    let scale = f64::exp2(15.4);
    let quantised = |row: &[f32]| -> Vec<i64> {
        let norm = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        row.iter().map(|&x| (f64::from(x) / norm * scale).round_ties_even() as i64).collect()
    };
    let (values, queries) = (rows(Metric::Cosine, 100, 1), rows(Metric::Cosine, 3, 2));
    let mut index = index(3, Metric::Cosine, Precision::Standard);
    index.add(&values, 0);
    let found = index.hits(&queries, Retrieval::TopK(100));
    for (query, hits) in queries.chunks_exact(DIMENSION).zip(&found) {
        let query = quantised(query);
        let product =
            |row: &[f32]| -> i64 { quantised(row).iter().zip(&query).map(|(x, q)| x * q).sum() };
        let mut expected: Vec<(i64, i64)> =
            (0..).zip(values.chunks_exact(DIMENSION).map(product)).collect();
        expected.sort_by_key(|&(row, product)| (-product, row));
        let expected: Vec<(Id, u64)> = expected
            .iter()
            .map(|&(row, product)| (Id::Number(row), (product as f64 / (scale * scale)).to_bits()))
            .collect();
        assert_eq!(*hits, expected);
    }
}

#[test]
fn a_changed_answer_is_refused_and_names_the_segment() {
    for precision in PRECISIONS {
        let mut index = index(3, Metric::Cosine, precision);
        index.add(&random(100, 1), 0);
        let query = index.query(&random(1, 2));
        let answer = index.answer(&query);
        let ask = Retrieval::TopK(3);
        index.open(&query, &answer, ask).unwrap();
        // A row's sum is shifted by one.
        let shifted = forged(&answer, |bytes| bytes[ANSWER_HEAD] ^= 1);
        let id = index.segment();
        match index.open(&query, &shifted, ask) {
            Err(Error::Tampered { segments }) => assert_eq!(segments, [id]),
            other => panic!("{:?}", other.err()),
        }
        // The answer to another query.
        let other = index.answer(&index.query(&random(1, 5)));
        assert!(matches!(index.open(&query, &other, ask), Err(Error::Tampered { .. })));
        // Words that were changed where they are stored.
        let segment = index.server.segments().next().unwrap();
        let bytes = segment.to_bytes(index.server.spec()).unwrap().into_owned();
        let damaged = forged(&bytes, |bytes| bytes[200] ^= 1);
        let unsealed = index.owner.unseal_rows(&damaged, None, &index.directory);
        assert!(matches!(unsealed, Err(Error::Tampered { .. })));
        // In quarantine it is passed over, and its rows stay closed.
        index.directory.quarantine(id);
        assert!(index.open(&query, &shifted, ask).unwrap().hits[0].is_empty());
        let closed = index.owner.unseal_rows(&bytes, None, &index.directory);
        assert!(matches!(closed, Err(Error::Quarantined(_))));
        assert!(index.directory.release(id) && !index.directory.release(id));
        assert_eq!(index.open(&query, &answer, ask).unwrap().hits[0].len(), 3);
    }
}

#[test]
fn a_query_of_somebody_else_is_not_opened_with_the_answer_to_another() {
    let mut index = index(3, Metric::Cosine, Precision::Standard);
    index.add(&random(100, 1), 0);
    let probe = Probe::new(index.owner.spec().clone(), None).unwrap();
    let bytes = probe.query(&random(1, 2)).unwrap();
    let query = index.owner.read_query(&bytes).unwrap();
    let answer = index.answer(&query);
    assert!(index.open(&query, &answer, Retrieval::TopK(1)).unwrap().exact);
    // One step of one coordinate away: the scores would tell the words of that coordinate.
    let near = forged(&bytes, |bytes| {
        let last = bytes.len() - 4;
        bytes[last] ^= 1;
    });
    let near = index.answer(&index.owner.read_query(&near).unwrap());
    for wrong in [&near, &forged(&answer, |bytes| bytes[ANSWER_HEAD] ^= 1)] {
        let opened = index.open(&query, wrong, Retrieval::TopK(1));
        assert!(matches!(opened, Err(Error::Mismatched { .. })), "{:?}", opened.err());
    }
}

#[test]
fn a_writers_bad_segment_costs_that_segment_and_not_the_answer() {
    let mut index = index(3, Metric::Cosine, Precision::Standard);
    index.add(&random(100, 1), 0);
    let writer = Writer::new(index.owner.writer_card("door", &[]).unwrap()).unwrap();
    let written =
        writer.seal(&random(20, 7), &(200..220).map(Id::Number).collect::<Vec<_>>(), vec![], 20, 1);
    let written = written.unwrap();
    let (sealed, wrap) = (written.sealed, written.wrap);
    index.directory.add_written(&index.owner, sealed.id, &sealed.sidecar, &wrap, &[]).unwrap();
    // Random words in place of what it sealed.
    let noise = forged(&sealed.segment, |bytes| Stream::new(&[9; 32], 1).fill(&mut bytes[128..]));
    index.server.add(AlignedBytes::from_slice(&noise)).unwrap();
    let probe = Probe::new(index.owner.spec().clone(), None).unwrap();
    let foreign = index.owner.read_query(&probe.query(&random(1, 2)).unwrap()).unwrap();
    for query in [index.query(&random(1, 2)), foreign] {
        let opened = index.open(&query, &index.answer(&query), Retrieval::TopK(100)).unwrap();
        assert_eq!(opened.disqualified, [sealed.id]);
        assert!(opened.exact && opened.hits[0].len() == 100);
        assert!(opened.hits[0].iter().all(|hit| hit.segment != sealed.id));
    }
}

/// Rows that are deleted stay where they are, and answers are checked with them: neither they nor others can be left out, or
/// shifted.
#[test]
fn deletions_end_no_check() {
    for precision in PRECISIONS {
        for count in [10usize, 100] {
            let mut index = index(3, Metric::Cosine, precision);
            index.add(&random(count, 1), 0);
            let id = index.segment();
            assert_eq!(index.directory.exactness(id), Some(Exactness::Exact));
            let gone: Vec<Id> = (5..count as i64).map(Id::Number).collect();
            for name in &gone {
                assert!(index.directory.mark_deleted(name).is_some());
            }
            assert_eq!(index.directory.unchecked_blocks(&index.owner), 0);
            assert_eq!(index.directory.unchecked(&index.owner).count(), 0);
            let query = index.query(&random(1, 2));
            let answer = index.answer(&query);
            let opened = index.open(&query, &answer, Retrieval::TopK(count)).unwrap();
            assert!(opened.checked && opened.hits[0].len() == 5);
            assert!(opened.hits[0].iter().all(|hit| !gone.contains(&hit.id)));
            let word = (answer.len() - ANSWER_HEAD) / count;
            for row in [0, 4, 5, count - 1] {
                let at = ANSWER_HEAD + row * word..ANSWER_HEAD + (row + 1) * word;
                for change in [None, Some(1u8)] {
                    let other = forged(&answer, |bytes| match change {
                        None => bytes[at.clone()].fill(0),
                        Some(by) => bytes[at.start] = bytes[at.start].wrapping_add(by),
                    });
                    let opened = index.open(&query, &other, Retrieval::TopK(1));
                    assert!(
                        matches!(opened, Err(Error::Tampered { .. })),
                        "{precision:?} {count} {row}"
                    );
                }
            }
        }
    }
}

/// Segments are opened some blocks at a time, fewer of them the more queries there are.
#[test]
fn many_queries_over_many_blocks_find_what_each_finds_alone() {
    for precision in [Precision::Standard, Precision::Wide] {
        let count = 2 * 4096 + 77;
        let values = rows(Metric::Cosine, count, 3);
        let mut index = index(5, Metric::Cosine, precision);
        index.add(&values, 0);
        let asked: Vec<f32> =
            (0..70).flat_map(|k| values[k * 117 * DIMENSION..][..DIMENSION].to_vec()).collect();
        for ask in [Retrieval::TopK(3), Retrieval::TopK(5000), Retrieval::Range(0.6)] {
            let together = index.hits(&asked, ask);
            for (k, query) in asked.chunks_exact(DIMENSION).enumerate().step_by(23) {
                assert_eq!(together[k], index.hits(query, ask)[0], "{precision:?} {ask:?} {k}");
                assert_eq!(together[k][0].0, Id::Number(k as i64 * 117));
            }
        }
        // Row by row against the definition, as far as rounding to stored steps allows.
        let cosine = |a: &[f32], b: &[f32]| {
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
            };
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        let all = &index.hits(&asked[..DIMENSION], Retrieval::TopK(count))[0];
        assert_eq!(all.len(), count);
        for (id, bits) in all {
            let Id::Number(row) = id else { panic!("an id of another kind") };
            let exact =
                cosine(&asked[..DIMENSION], &values[*row as usize * DIMENSION..][..DIMENSION]);
            assert!((f64::from_bits(*bits) - exact).abs() < 1e-3, "{precision:?} row {row}");
        }
    }
}
