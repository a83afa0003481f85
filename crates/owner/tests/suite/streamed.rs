//! Answers that are opened as they come, from afar or from a server in this process: the same hits as from the whole, in
//! little memory, and the same errors.

use crate::short_answers::{Both, random};
use ciphervec_he_secret::lattice::ring::{Ciphertext, Expanded, Layout};
use ciphervec_he_secret::wire::HEADER_LEN;
use ciphervec_owner::search::{
    AnswerFormat, AnswerOpener, Expected, OpenOptions, Opened, Query, QueryOptions, Retrieval,
    Runner, Sink, TreeLender,
};
use ciphervec_owner::{Error, Id, Keys, Metric, Mode, Network, Precision};
use std::io::{self, Read};
use std::sync::Arc;

const HERE: Runner<'_> = &|work| work();

/// Gives so many bytes at once, and fails after `ends` if that is given.
struct Dribble<'a> {
    rest: &'a [u8],
    step: usize,
    ends: Option<usize>,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = &mut self.ends {
            if *left == 0 {
                return Err(io::Error::other("the line is cut"));
            }
            *left -= (*left).min(self.step);
        }
        let count = self.rest.len().min(self.step).min(out.len());
        let (now, later) = self.rest.split_at(count);
        out[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

fn dribble(bytes: &[u8], step: usize) -> Dribble<'_> {
    Dribble { rest: bytes, step, ends: None }
}

fn wanted(retrieval: Retrieval) -> OpenOptions<'static> {
    OpenOptions { retrieval, selection: None, newer: &[], flood: None }
}

fn stream(
    both: &Both,
    query: &Query,
    answer: &mut (dyn Read + Send),
    retrieval: Retrieval,
) -> ciphervec_owner::Result<Opened> {
    let directory = both.directory.snapshot();
    both.owner.open_stream(query, answer, &directory, &wanted(retrieval), HERE)
}

fn asked(both: &Both, questions: &[f32]) -> (Query, Vec<u8>) {
    let format = AnswerFormat::default();
    let query = both
        .owner
        .query(questions, &both.directory, QueryOptions { format, ..QueryOptions::default() })
        .unwrap();
    let answer = both.server.evaluate(query.to_bytes()).unwrap().bytes;
    (query, answer)
}

/// Every form, several segments, one query and several, closest rows and those within a threshold.
#[test]
fn any_cut_of_an_answer_gives_the_hits_of_the_whole() {
    let keys = Keys::generate().unwrap();
    let dimension = 16;
    for (mode, precision) in [
        (Mode::Open, Precision::Standard),
        (Mode::SealedIndex, Precision::Standard),
        (Mode::SealedIndex, Precision::Wide),
        (Mode::SealedQuery, Precision::Standard),
        (Mode::Sealed, Precision::Standard),
    ] {
        let mut both = Both::with(&keys, mode, precision, Metric::Cosine, dimension);
        let rows = random(2900, dimension, 1);
        for (index, part) in rows.chunks(1300 * dimension).enumerate() {
            both.add(part, 1300 * index as i64, &Expected::rows(2900));
        }
        both.directory.mark_deleted(&Id::Number(7));
        for count in [1, 3] {
            let (query, answer) = asked(&both, &random(count, dimension, 2));
            for retrieval in [Retrieval::TopK(20), Retrieval::Range(0.3)] {
                let whole = both.owner.open(&query, &answer, &both.directory, retrieval).unwrap();
                assert!(whole.hits.iter().all(|hits| hits.len() > 5));
                for step in [1, 7, 4096, usize::MAX] {
                    let opened =
                        stream(&both, &query, &mut dribble(&answer, step), retrieval).unwrap();
                    assert_eq!(opened.hits, whole.hits, "{mode:?} {precision:?} {step}");
                    assert_eq!(opened.exact, whole.exact);
                }
            }
        }
    }
}

/// Answers longer than a piece: a segment of several pieces a query, read block by block.
#[test]
fn long_segments_are_opened_in_several_pieces() {
    let keys = Keys::generate().unwrap();
    let dimension = 4;
    for mode in [Mode::Sealed, Mode::SealedIndex] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::L2, dimension);
        let count = 300_000;
        let slow = Network { bytes_per_second: 1e4, round_trip: 0.0 };
        both.add(&random(count, dimension, 1), 0, &Expected { rows: count, network: slow });
        let (query, answer) = asked(&both, &random(2, dimension, 2));
        assert!(answer.len() > 2 << 20);
        let retrieval = Retrieval::TopK(30);
        let whole = both.owner.open(&query, &answer, &both.directory, retrieval).unwrap();
        let opened = stream(&both, &query, &mut dribble(&answer, 100_000), retrieval).unwrap();
        assert_eq!(opened.hits, whole.hits, "{mode:?}");
    }
}

/// One error, but that an answer which is opened as it comes may have failed its check before it is known to be damaged.
fn assert_alike(whole: &str, streamed: &str) {
    let failed =
        whole.contains("checksum") && streamed.contains("was not computed from what was sealed");
    assert!(whole == streamed || failed, "{whole}; {streamed}");
}

/// Whatever is cut off or changed, nothing comes out, and the error is that of the whole, or that a check has failed.
#[test]
fn damage_and_truncation_say_what_they_say_of_a_whole_answer() {
    let keys = Keys::generate().unwrap();
    for mode in [Mode::Sealed, Mode::SealedIndex] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, 8);
        both.add(&random(60, 8, 1), 0, &Expected::rows(60));
        both.add(&random(9, 8, 2), 60, &Expected::rows(69));
        let (query, answer) = asked(&both, &random(1, 8, 3));
        let top = Retrieval::TopK(3);
        let says = |bytes: &[u8], step| {
            let whole = both.owner.open(&query, bytes, &both.directory, top).map(|_| ());
            let streamed = stream(&both, &query, &mut dribble(bytes, step), top).map(|_| ());
            let [whole, streamed] = [whole, streamed].map(|found| found.unwrap_err().to_string());
            assert_alike(&whole, &streamed);
            whole
        };
        let mut lengths: Vec<usize> = (0..100).collect();
        lengths.extend((100..answer.len()).step_by(answer.len() / 40));
        for length in lengths {
            assert!(says(&answer[..length], 13).contains("came"), "{length}");
        }
        says(&[&answer[..], &[0; 5]].concat(), 64);
        // A check sum of rows that fails on the way there is damage, and not a server that changes answers.
        for at in (32..answer.len()).step_by(answer.len() / 60) {
            let mut damaged = answer.clone();
            damaged[at] ^= 0x10;
            let whole = both.owner.open(&query, &damaged, &both.directory, top);
            assert!(!matches!(whole, Err(Error::Tampered { .. })), "{at}");
            says(&damaged, 29);
        }
        let mut cut = Dribble { rest: &answer, step: 50, ends: Some(answer.len() / 2) };
        let error = stream(&both, &query, &mut cut, top).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("the line is cut"), "{error}");
    }
}

/// One that arrives whole and is not what the segments give is refused as ever, after it has been read to its end.
#[test]
fn a_changed_answer_is_told_from_a_damaged_one() {
    let keys = Keys::generate().unwrap();
    let mut both = Both::with(&keys, Mode::SealedIndex, Precision::Standard, Metric::Cosine, 8);
    both.add(&random(60, 8, 1), 0, &Expected::rows(60));
    both.add(&random(60, 8, 2), 60, &Expected::rows(120));
    let (query, answer) = asked(&both, &random(1, 8, 3));
    let (header, payload) =
        ciphervec_he_secret::wire::open(ciphervec_he_secret::wire::Kind::Response, &answer)
            .unwrap();
    let mut payload = payload.to_vec();
    payload[8 + 4 + 1 + 4 + 22 + 5] ^= 1;
    let changed = header.frame(&payload);
    let top = Retrieval::TopK(3);
    let whole = both.owner.open(&query, &changed, &both.directory, top);
    let streamed = stream(&both, &query, &mut dribble(&changed, 11), top);
    for outcome in [whole, streamed] {
        assert!(matches!(outcome, Err(Error::Tampered { segments }) if segments.len() == 1));
    }
}

/// The pieces that an answer comes in, from a server in this process.
fn pieces(both: &Both, query: &Query) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    let mut write = |piece: &[u8]| {
        came.push(piece.to_vec());
        true
    };
    let mut sink = Sink { run: HERE, write: &mut write };
    both.server.evaluate_into(query.to_bytes(), None, &mut sink).unwrap();
    came
}

/// Every form: what comes in pieces is what comes at once, but for the checksum, and says the same.
#[test]
fn a_server_in_this_process_answers_in_pieces() {
    let keys = Keys::generate().unwrap();
    let dimension = 4;
    for (mode, precision) in [
        (Mode::Open, Precision::Standard),
        (Mode::SealedIndex, Precision::Standard),
        (Mode::SealedIndex, Precision::Wide),
        (Mode::SealedQuery, Precision::Standard),
        (Mode::Sealed, Precision::Standard),
    ] {
        let mut both = Both::with(&keys, mode, precision, Metric::Cosine, dimension);
        let (rows, segment) = (600_000, 65_536);
        let values = random(rows, dimension, 1);
        for (index, part) in values.chunks(segment * dimension).enumerate() {
            both.add(part, (index * segment) as i64, &Expected::rows(rows));
        }
        for (count, tag) in [(1, None), (3, None), (9, None), (3, Some([7; 16]))] {
            let format = AnswerFormat::default();
            let tags = tag.as_slice();
            let questions = random(count, dimension, 2);
            let query = both
                .owner
                .query(
                    &questions,
                    &both.directory,
                    QueryOptions { tags, format, ..QueryOptions::default() },
                )
                .unwrap();
            let whole = both.server.evaluate(query.to_bytes()).unwrap().bytes;
            let came = pieces(&both, &query);
            let together = came.concat();
            assert_eq!(together[..32], whole[..32]);
            assert!(together[HEADER_LEN..] == whole[HEADER_LEN..], "{mode:?} {count}");
            // Of encrypted queries no more than eight are expanded at once.
            let at_once = count > 8 && matches!(mode, Mode::Sealed | Mode::SealedQuery);
            let most = if at_once { whole.len() } else { (1 << 20) + whole.len() / 9 };
            assert!(came.iter().all(|piece| piece.len() <= most), "{mode:?} {count}");
            let retrieval = Retrieval::TopK(20);
            let directory = both.directory.snapshot();
            let wanted = wanted(retrieval);
            let local = both.owner.open_local(
                &query,
                &mut dribble(&together, 50_000),
                &directory,
                &wanted,
                HERE,
            );
            let hits = both.owner.open(&query, &whole, &both.directory, retrieval);
            assert_eq!(local.unwrap().hits, hits.unwrap().hits, "{mode:?} {count}");
            // From elsewhere it is damaged: nothing that has no checksum may be taken for whole.
            if !at_once {
                let afar = stream(&both, &query, &mut dribble(&together, 50_000), retrieval);
                assert!(afar.map(|_| ()).unwrap_err().to_string().contains("checksum"));
            }
            let cut = &together[..together.len() - 1];
            let cut =
                both.owner.open_local(&query, &mut dribble(cut, 50_000), &directory, &wanted, HERE);
            assert!(cut.map(|_| ()).unwrap_err().to_string().contains("promises"));
        }
    }
}

/// A sink that wants no more gets no more, and a query that is refused writes nothing.
#[test]
fn a_sink_may_stop_an_answer() {
    let keys = Keys::generate().unwrap();
    for mode in [Mode::Sealed, Mode::SealedIndex] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, 8);
        both.add(&random(60, 8, 1), 0, &Expected::rows(60));
        let (query, _) = asked(&both, &random(1, 8, 3));
        let mut written = 0;
        let mut write = |_: &[u8]| {
            written += 1;
            false
        };
        let mut sink = Sink { run: HERE, write: &mut write };
        both.server.evaluate_into(query.to_bytes(), None, &mut sink).unwrap();
        let cut = &query.to_bytes()[..query.to_bytes().len() - 1];
        assert!(both.server.evaluate_into(cut, None, &mut sink).is_err());
        assert_eq!(written, 1);
    }
}

/// Handed over piece by piece instead of being read: the same hits, and the same errors.
#[test]
fn an_answer_that_is_handed_over_opens_as_the_whole_does() {
    let keys = Keys::generate().unwrap();
    for (mode, dimension, count) in [
        (Mode::Open, 16, 500),
        (Mode::SealedQuery, 16, 500),
        (Mode::Sealed, 16, 500),
        (Mode::Sealed, 4, 300_000),
        (Mode::SealedIndex, 16, 500),
    ] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, dimension);
        let slow = Network { bytes_per_second: 1e4, round_trip: 0.0 };
        both.add(&random(count, dimension, 1), 0, &Expected { rows: count, network: slow });
        both.add(&random(60, dimension, 3), count as i64, &Expected::rows(60));
        let (query, answer) = asked(&both, &random(3, dimension, 2));
        let Both { owner, directory, .. } = both;
        let (owner, query) = (Arc::new(owner), Arc::new(query));
        let top = Retrieval::TopK(20);
        let handed = |bytes: &[u8], step: usize| {
            let both = (Arc::clone(&owner), Arc::clone(&query));
            let mut opener =
                AnswerOpener::new(both, directory.snapshot(), top, None, None, &|work| work());
            bytes.chunks(step).for_each(|piece| opener.write(piece));
            opener.finish()
        };
        let whole = owner.open(&query, &answer, &directory, top).unwrap();
        for step in [11, 4096, usize::MAX] {
            let opened = handed(&answer, step).unwrap();
            assert_eq!(opened.hits, whole.hits, "{mode:?} {step}");
            assert_eq!(opened.exact, whole.exact);
        }
        for at in (0..answer.len()).step_by(answer.len() / 12) {
            let mut damaged = answer.clone();
            damaged[at] ^= 0x10;
            let longer = [&answer[..], &[0; 5]].concat();
            for bytes in [&answer[..at], &damaged, &longer] {
                let whole = owner.open(&query, bytes, &directory, top).map(|_| ());
                let handed = handed(bytes, 4099).map(|_| ());
                let [whole, handed] = [whole, handed].map(|found| found.unwrap_err().to_string());
                assert_alike(&whole, &handed);
            }
        }
    }
}

/// Has no trees.
struct Stranger;

impl TreeLender for Stranger {
    fn expand(
        &self,
        query: usize,
        _: &[Ciphertext],
        _: &[Layout],
    ) -> ciphervec_owner::Result<Vec<Expanded>> {
        Err(Error::NoEvaluationKeys { epoch: query as u32 })
    }
}

/// The trees that an owner lends are those that the server would have grown, and serve the opening as well, which takes
/// no other answer for right.
#[test]
fn lent_trees_change_no_answer() {
    let keys = Keys::generate().unwrap();
    let (dimension, top) = (48, Retrieval::TopK(20));
    for mode in [Mode::Sealed, Mode::SealedQuery, Mode::SealedIndex] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, dimension);
        for (part, rows) in [3_000, 150].into_iter().enumerate() {
            let values = random(rows, dimension, part as u8);
            both.add(&values, 10_000 * part as i64, &Expected::rows(rows));
        }
        for count in [1, 3, 9] {
            let (query, whole) = asked(&both, &random(count, dimension, 7));
            let open = |answer: &[u8]| both.owner.open(&query, answer, &both.directory, top);
            let before = open(&whole).unwrap().hits;
            let lender = both.owner.lender(&query).unwrap();
            let beside = |lender| both.server.evaluate_beside(query.to_bytes(), lender);
            let lent = beside(lender.as_deref()).unwrap().bytes;
            assert!(lent == whole, "{mode:?} {count}");
            assert_eq!(open(&lent).unwrap().hits, before, "{mode:?} {count}");
            let encrypted = mode != Mode::SealedIndex;
            assert_eq!(lender.is_some(), encrypted);
            assert_eq!(beside(Some(&Stranger)).is_err(), encrypted);
            let mut changed = pieces(&both, &query).concat();
            let middle = changed.len() / 2;
            changed[middle..][..64].iter_mut().for_each(|byte| *byte ^= 0x80);
            let mut changed = dribble(&changed, 50_000);
            let directory = both.directory.snapshot();
            let opened =
                both.owner.open_local(&query, &mut changed, &directory, &wanted(top), HERE);
            assert!(matches!(opened, Err(Error::Tampered { .. })), "{mode:?} {count}");
        }
    }
}
