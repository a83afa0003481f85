//! Answers fetched in halves against whole ones; tokens that serve once, and those that don't serve at all.

use crate::short_answers::{Both, random};
use ciphervec_he_secret::wire::{self, HEADER_LEN, Kind};
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::search::{
    AnswerFormat, Expected, Flood, HALF_VERSION, OpenOptions, QueryOptions, Retrieval, Token,
    TokenPool, merge_responses,
};
use ciphervec_owner::{Error, Id, Keys, Metric, Mode, Network, Precision, SegmentId};
use std::collections::HashSet;
use std::sync::Barrier;

const SHORT: AnswerFormat = AnswerFormat::Short;
const SLOW: Network = Network { bytes_per_second: 1e5, round_trip: 0.0 };

fn both(mode: Mode, dimension: usize) -> Both {
    let keys = Keys::generate().unwrap();
    let mut both = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, dimension);
    both.add(&random(900, dimension, 1), 0, &Expected { rows: 40_000, network: SLOW });
    both.add(&random(37, dimension, 2), 900, &Expected::rows(37));
    both.add(&random(1, dimension, 3), 937, &Expected::rows(1));
    both
}

fn fetch(both: &Both, count: usize, format: AnswerFormat) -> Vec<Token> {
    let request = both.owner.request_tokens(count, &both.directory, 0, format).unwrap();
    let answer = both.server.evaluate(request.to_bytes()).unwrap().bytes;
    assert!(both.server.answer_len(request.to_bytes()).unwrap() <= answer.len() as u64);
    both.owner.read_tokens(request, &answer, &both.directory).unwrap()
}

/// The masks that a question is encrypted under.
fn seeds(question: &[u8], count: usize) -> Vec<Vec<u8>> {
    let (version, _, payload) = wire::open_version(Kind::Query, 3, question).unwrap();
    assert_eq!(version, HALF_VERSION);
    let length = 32 + ciphervec_he_secret::lattice::ring::Ciphertext::BYTES;
    let body = &payload[payload.len() - count * length..];
    body.chunks(length).map(|query| query[..32].to_vec()).collect()
}

/// The whole question of the same ciphertext, which nothing but a test ever makes of one of version 3.
fn whole_of(question: &[u8]) -> Vec<u8> {
    let (_, header, payload) = wire::open_version(Kind::Query, 3, question).unwrap();
    let mut payload = payload.to_vec();
    let tags = usize::from(u16::from_le_bytes([payload[17], payload[18]]));
    let half = 19 + 16 * tags + usize::from(payload[12]) + 1;
    assert_eq!(payload.remove(half), 2);
    let mut frame = vec![0; HEADER_LEN];
    frame.extend(payload);
    header.seal_version(2, &mut frame);
    frame
}

/// Random rows in segments of several levels, some of them with filter tags.
#[test]
fn both_halves_are_the_whole_answer_bit_for_bit() {
    let keys = Keys::generate().unwrap();
    let mut mixed = 0;
    for (mode, dimension, rows) in [
        (Mode::Sealed, 5, 700),
        (Mode::Sealed, 96, 4200),
        (Mode::SealedQuery, 48, 3000),
        (Mode::Sealed, 5000, 300),
    ] {
        let mut both = Both::with(&keys, mode, Precision::Standard, Metric::L2, dimension);
        both.add(&random(rows, dimension, 1), 0, &Expected { rows: 60_000, network: SLOW });
        both.add(&random(rows / 9, dimension, 2), 10_000, &Expected::rows(rows / 9));
        let tag = both.owner.filter_tag("kind", b"even");
        let (count, mut tags) = (41, FilterTags::new());
        for row in 0..count {
            tags.push(if row % 2 == 0 { std::slice::from_ref(&tag) } else { &[] }).unwrap();
        }
        let ids: Vec<Id> = (20_000..20_000 + count).map(Id::Number).collect();
        let sealed = both.owner.seal(&random(count as usize, dimension, 3), &ids).unwrap();
        both.directory.add(&both.owner, sealed.id, &sealed.sidecar, &[]).unwrap();
        both.server.add_tagged(sealed.segment, tags).unwrap();
        let levels: HashSet<u8> = both.directory.segments().map(|segment| segment.2).collect();
        mixed += usize::from(levels.len() > 1);
        for tags in [&[][..], &[tag]] {
            let tokens = fetch(&both, 1, SHORT);
            let (row, directory) = (random(1, dimension, 9), &both.directory);
            let query = both.owner.query(
                &row,
                directory,
                QueryOptions {
                    tags,
                    format: SHORT,
                    tokens: Some(tokens),
                    ..QueryOptions::default()
                },
            );
            let query = query.unwrap();
            let online = both.server.evaluate(query.to_bytes()).unwrap().bytes;
            let whole = both.server.evaluate(&whole_of(query.to_bytes())).unwrap().bytes;
            let joined = both.owner.complete(&query, &online).unwrap();
            assert!(joined == whole, "{mode:?} {dimension} {}", tags.len());
        }
    }
    assert!(mixed >= 2, "collections of several levels");
}

/// Several questions a message, of which some share a scan: the same scores as those asked whole, under masks of their own.
#[test]
fn answers_in_halves_open_as_whole_ones_do() {
    for (mode, dimension) in [(Mode::Sealed, 24), (Mode::SealedQuery, 24), (Mode::Sealed, 4100)] {
        let both = both(mode, dimension);
        let all = Retrieval::TopK(938);
        for count in [1, 2, 3] {
            let tokens = fetch(&both, count, SHORT);
            assert_eq!(tokens.len(), count);
            let questions = random(count, dimension, 9);
            let owner = &both.owner;
            let query = owner
                .query(
                    &questions,
                    &both.directory,
                    QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
                )
                .unwrap();
            let online = both.server.evaluate(query.to_bytes()).unwrap().bytes;
            let joined = owner.complete(&query, &online).unwrap();
            let plain = owner
                .query(
                    &questions,
                    &both.directory,
                    QueryOptions { format: SHORT, ..QueryOptions::default() },
                )
                .unwrap();
            let whole = both.server.evaluate(plain.to_bytes()).unwrap().bytes;
            assert_eq!(joined.len(), whole.len());
            assert_eq!(wire::open_version(Kind::Response, 3, &joined).unwrap().0, 2);
            assert!(online.len() < whole.len() / 2, "{} {}", online.len(), whole.len());
            let opened = |query, answer: &[u8]| {
                owner.open(query, answer, &both.directory, all).unwrap().hits
            };
            let pairs = opened(&query, &joined).into_iter().zip(opened(&plain, &whole));
            for (joined, whole) in pairs {
                assert!(joined.len() == 938 && whole.len() == 938);
                let whole: std::collections::HashMap<_, _> =
                    whole.into_iter().map(|hit| (hit.id, hit.value)).collect();
                for hit in joined {
                    assert!((hit.value - whole[&hit.id]).abs() < 4e-4, "{mode:?} ");
                }
            }
        }
    }
}

#[test]
fn a_mask_is_sent_in_one_question_whatever_callers_do() {
    let both = both(Mode::Sealed, 8);
    let pool = TokenPool::default();
    pool.add(fetch(&both, 24, SHORT));
    assert!(pool.len() == 24 && pool.byte_len() > 24 * 1000);
    let barrier = Barrier::new(8);
    let ask = |thread: u8| {
        barrier.wait();
        let mut sent = Vec::new();
        for round in 0..5 {
            let count = usize::from(1 + (thread + round) % 3);
            let taken = both.owner.take_tokens(&pool, count, &both.directory, 0, SHORT).unwrap();
            let Some(tokens) = taken else { continue };
            // Every third question fails its checks: its tokens are gone all the same.
            let mut rows = random(count, 8, thread * 16 + round);
            rows[0] = if round % 3 == 2 { f32::NAN } else { rows[0] };
            let query = both.owner.query(
                &rows,
                &both.directory,
                QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
            );
            assert_eq!(query.is_err(), round % 3 == 2);
            if let Ok(query) = query {
                assert_eq!(query.to_bytes(), query.to_bytes());
                sent.extend(seeds(query.to_bytes(), count));
            }
        }
        sent
    };
    let sent: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let ask = &ask;
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || ask(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let distinct: HashSet<&Vec<u8>> = sent.iter().collect();
    assert!(distinct.len() == sent.len() && sent.len() >= 8, "{}", sent.len());
    assert!(pool.len() < 3);
    // Whole questions have masks of their own.
    let whole = both
        .owner
        .query(
            &random(1, 8, 4),
            &both.directory,
            QueryOptions { format: SHORT, ..QueryOptions::default() },
        )
        .unwrap();
    assert!(!sent.iter().any(|seed| whole.to_bytes().windows(32).any(|bytes| bytes == seed)));
}

#[test]
fn tokens_of_another_state_are_not_used() {
    let mut both = both(Mode::Sealed, 8);
    let (rows, all) = (random(1, 8, 5), Retrieval::TopK(3));
    let take = |both: &Both, pool: &TokenPool, epoch, format| {
        both.owner.take_tokens(pool, 1, &both.directory, epoch, format).unwrap()
    };
    let pool = TokenPool::default();
    pool.add(fetch(&both, 3, SHORT));
    assert!(take(&both, &pool, 0, AnswerFormat::First).is_none() && pool.len() == 3);
    let owner = &both.owner;
    assert!(owner.take_tokens(&pool, 4, &both.directory, 0, SHORT).unwrap().is_none());
    // A question that is made, and a commit before it arrives.
    let tokens = take(&both, &pool, 0, SHORT).unwrap();
    let late = owner
        .query(
            &rows,
            &both.directory,
            QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
        )
        .unwrap();
    let tokens = take(&both, &pool, 0, SHORT).unwrap();
    let early = both.server.evaluate(late.to_bytes()).unwrap().bytes;
    both.add(&random(20, 8, 6), 2000, &Expected::rows(20));
    let owner = &both.owner;
    let online = both.server.evaluate(late.to_bytes()).unwrap().bytes;
    assert!(matches!(owner.complete(&late, &online), Err(Error::Token { .. })));
    assert!(owner.complete(&late, &early).is_ok());
    let refused = owner.query(
        &rows,
        &both.directory,
        QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
    );
    assert!(matches!(refused, Err(Error::Token { .. })));
    // What is left of them goes at the next look.
    assert_eq!(pool.len(), 1);
    assert!(take(&both, &pool, 0, SHORT).is_none() && pool.is_empty());
    // Another epoch; tokens of a request that a commit overtook; a count that is another.
    pool.add(fetch(&both, 1, SHORT));
    assert!(take(&both, &pool, 1, SHORT).is_none() && pool.is_empty());
    let request = owner.request_tokens(1, &both.directory, 0, SHORT).unwrap();
    let answer = both.server.evaluate(request.to_bytes()).unwrap().bytes;
    both.add(&random(20, 8, 7), 3000, &Expected::rows(20));
    let read = both.owner.read_tokens(request, &answer, &both.directory);
    assert!(matches!(read, Err(Error::Directory { .. })));
    let tokens = fetch(&both, 2, SHORT);
    let refused = both.owner.query(
        &rows,
        &both.directory,
        QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
    );
    assert!(matches!(refused, Err(Error::Token { .. })));
    // Questions without tokens go on as ever.
    let query = both
        .owner
        .query(&rows, &both.directory, QueryOptions { format: SHORT, ..QueryOptions::default() })
        .unwrap();
    let answer = both.server.evaluate(query.to_bytes()).unwrap().bytes;
    assert!(both.owner.open(&query, &answer, &both.directory, all).is_ok());
    assert!(matches!(both.owner.complete(&query, &answer), Err(Error::Token { .. })));
}

/// Keys of the same epoch that were made anew give other halves; those who answered say which they took.
#[test]
fn halves_of_other_evaluation_keys_are_not_joined() {
    let keys = Keys::generate().unwrap();
    let mut both = Both::with(&keys, Mode::Sealed, Precision::Standard, Metric::Cosine, 8);
    both.add(&random(60, 8, 1), 0, &Expected::rows(60));
    let tokens = fetch(&both, 1, SHORT);
    let owner = &both.owner;
    let query = owner
        .query(
            &random(1, 8, 2),
            &both.directory,
            QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
        )
        .unwrap();
    // Others of the same epoch, as release 0.1 drew them: a seed that nothing else depends on is changed.
    let again = keys.evaluation(owner.spec(), 0).unwrap().unwrap().to_bytes();
    let (header, payload) = wire::open(Kind::EvaluationKeys, &again).unwrap();
    let mut payload = payload.to_vec();
    payload[48] ^= 1;
    both.server.set_evaluation_keys(&header.frame(&payload)).unwrap();
    let online = both.server.evaluate(query.to_bytes()).unwrap().bytes;
    assert!(matches!(both.owner.complete(&query, &online), Err(Error::Token { .. })));
}

/// What came in halves can be flooded, as whole answers can.
#[test]
fn answers_of_tokens_can_be_flooded() {
    let both = both(Mode::Sealed, 16);
    let flood = Flood::new(f64::exp2(-8.0)).unwrap();
    let tokens = fetch(&both, 1, SHORT);
    let rows = random(1, 16, 5);
    let query = both
        .owner
        .query(
            &rows,
            &both.directory,
            QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
        )
        .unwrap();
    let online = both.server.evaluate(query.to_bytes()).unwrap().bytes;
    let answer = both.owner.complete(&query, &online).unwrap();
    let three = Retrieval::TopK(3);
    let opened = both.owner.open(
        &query,
        &answer,
        &both.directory,
        OpenOptions { flood: Some(&flood), ..OpenOptions::new(three) },
    );
    assert_eq!(opened.unwrap().hits[0].len(), 3);
}

fn reframed(bytes: &[u8], change: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
    let (version, header, payload) = wire::open_version(Kind::Response, 3, bytes).unwrap();
    let mut frame = vec![0; HEADER_LEN];
    let mut payload = payload.to_vec();
    change(&mut payload);
    frame.extend(payload);
    header.seal_version(version, &mut frame);
    frame
}

/// The wrong half, another count, a segment twice, one left out, bytes cut off or added: refused, in bounded memory.
#[test]
fn hostile_halves_are_refused() {
    let both = both(Mode::Sealed, 8);
    let owner = &both.owner;
    let ask = || {
        let tokens = fetch(&both, 1, SHORT);
        owner
            .query(
                &random(1, 8, 5),
                &both.directory,
                QueryOptions { format: SHORT, tokens: Some(tokens), ..QueryOptions::default() },
            )
            .unwrap()
    };
    let query = ask();
    let online = both.server.evaluate(query.to_bytes()).unwrap().bytes;
    let request = || owner.request_tokens(1, &both.directory, 0, SHORT).unwrap();
    let ahead = both.server.evaluate(request().to_bytes()).unwrap().bytes;
    let read = |bytes: &[u8]| owner.read_tokens(request(), bytes, &both.directory).is_ok();
    let complete = |bytes: &[u8]| owner.complete(&query, bytes).is_ok();
    assert!(read(&ahead) && complete(&online) && !read(&online) && !complete(&ahead));
    for (bytes, accepts) in [(&ahead, &read as &dyn Fn(&[u8]) -> bool), (&online, &complete)] {
        // Index id, count, half, name of the keys, number of levels, number of segments.
        for at in [0, 8, 12] {
            assert!(!accepts(&reframed(bytes, &|payload| payload[at] ^= 1)), "{at}");
        }
        assert!(!accepts(&reframed(bytes, &|payload| payload[29] += 1)));
        assert!(!accepts(&reframed(bytes, &|payload| payload.truncate(payload.len() - 1))));
        assert!(!accepts(&reframed(bytes, &|payload| payload.push(0))));
        for length in (0..bytes.len()).step_by(bytes.len() / 50) {
            assert!(!accepts(&bytes[..length]), "{length}");
        }
    }
    assert!(!complete(&reframed(&online, &|payload| payload[13] ^= 1)), "the keys' name");
    // The last segment, of one row, once more, and not at all.
    let (_, _, payload) = wire::open_version(Kind::Response, 3, &online).unwrap();
    let id: [u8; 16] = both.directory.segments().find(|segment| segment.1 == 1).unwrap().0.0;
    let start = payload.windows(16).position(|bytes| bytes == id).unwrap();
    let counted = |payload: &[u8]| {
        let first: [u8; 16] = both.directory.segments().next().unwrap().0.0;
        payload.windows(16).position(|bytes| bytes == first).unwrap() - 4
    };
    let again = |payload: &mut Vec<u8>| {
        let last = payload[start..].to_vec();
        let at = counted(payload);
        payload[at] += 1;
        payload.extend(last);
    };
    let error = owner.complete(&query, &reframed(&online, &again)).unwrap_err().to_string();
    assert!(error.contains("answered twice"), "{error}");
    let fewer = |payload: &mut Vec<u8>| {
        let at = counted(payload);
        payload[at] -= 1;
        payload.truncate(start);
    };
    let joined = owner.complete(&query, &reframed(&online, &fewer)).unwrap();
    let opened = owner.open(&query, &joined, &both.directory, Retrieval::TopK(3));
    assert!(matches!(opened, Err(Error::Directory { .. })));
}

/// Shares of halves give what one server gives; a query of version 3 of a mode without halves is refused.
#[test]
fn halves_of_shares_are_merged_and_other_modes_have_none() {
    let both = both(Mode::Sealed, 8);
    let request = both.owner.request_tokens(3, &both.directory, 0, SHORT).unwrap();
    let whole = both.server.evaluate(request.to_bytes()).unwrap().bytes;
    let order: Vec<SegmentId> = both.directory.segments().map(|segment| segment.0).collect();
    let mut shares = [both.server.clone(), both.server.clone()];
    for (at, id) in order.iter().enumerate() {
        assert!(shares[at % 2].remove(*id));
    }
    let answers = shares.map(|share| share.evaluate(request.to_bytes()).unwrap().bytes);
    let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
    let spec = both.owner.spec();
    assert!(merge_responses(spec, request.to_bytes(), &order, &answers).unwrap() == whole);
    let keys = Keys::generate().unwrap();
    for mode in [Mode::Open, Mode::SealedIndex] {
        let mut other = Both::with(&keys, mode, Precision::Standard, Metric::Cosine, 8);
        other.add(&random(60, 8, 1), 0, &Expected::rows(60));
        let refused = other.owner.request_tokens(1, &other.directory, 0, SHORT);
        assert!(matches!(refused, Err(Error::Choice { .. })));
    }
    for count in [0, 100_000] {
        assert!(both.owner.request_tokens(count, &both.directory, 0, SHORT).is_err());
    }
}
