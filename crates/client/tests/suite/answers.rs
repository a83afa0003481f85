//! Queries and answers as bytes, which somebody else carries.

use ciphervec_client::{
    Choices, Client, Collection, Connection, Error, Face, QueryRequest, Wanted, block_on,
};
use ciphervec_owner::search::Probe;
use ciphervec_owner::{Error as SchemeError, Metric, Mode, Scheme};

use crate::support::{Server, connection, filled, keys, rows, vectors};

const DIMENSION: usize = 16;

fn choices(mode: Mode, metric: Metric) -> Choices {
    Choices { mode, metric, ..Choices::new("docs", DIMENSION) }
}

fn closest(within: f64) -> Wanted {
    Wanted { count: Some(1), within: Some(within), ..Wanted::default() }
}

fn first(
    docs: &Collection,
    host: &Connection,
    question: &[f32],
) -> (Vec<ciphervec_owner::Id>, Vec<f64>) {
    let request = QueryRequest {
        embeddings: question.to_vec(),
        n_results: Some(5),
        ..QueryRequest::default()
    };
    let found = block_on(docs.query(host, request)).unwrap().hits.remove(0);
    found.into_iter().map(|hit| (hit.row.id, hit.score)).unzip()
}

#[test]
fn an_answer_that_was_carried_is_the_answer_of_a_query() {
    let server = Server::start();
    let memory = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
    for (client, mode, metric) in [
        (&server.client(&keys()), Mode::Sealed, Metric::Cosine),
        (&memory, Mode::Sealed, Metric::L2),
        (&memory, Mode::SealedIndex, Metric::InnerProduct),
        (&memory, Mode::SealedQuery, Metric::Cosine),
        (&memory, Mode::Open, Metric::Cosine),
    ] {
        let (host, _warnings) = connection();
        let name = format!("{}-{}", mode.as_str(), metric.as_str());
        let choices = Choices { name, ..choices(mode, metric) };
        let docs = filled(client, &host, &choices, rows(120, DIMENSION, 1));
        let question = vectors(1, DIMENSION, 9);
        let query = block_on(docs.make_query(&host, question.clone())).unwrap();
        assert_eq!(query.len(), 1);
        let answer = block_on(docs.evaluate(&host, query.to_bytes())).unwrap();
        let wanted = Wanted { count: Some(5), ..Wanted::default() };
        let opened = block_on(docs.open_answer(&host, &query, &answer, &wanted)).unwrap();
        let (ids, scores) = first(&docs, &host, &question);
        assert_eq!(opened.hits[0].ids, ids);
        for (one, other) in opened.hits[0].scores.iter().zip(&scores) {
            assert!((one - other).abs() < 1e-3, "{one} {other}");
        }
        assert_eq!((opened.checked, &*opened.disqualified), (mode != Mode::Open, &[][..]));
        assert_eq!(opened.owners_only, matches!(mode, Mode::Sealed | Mode::SealedQuery));
        let among = Some(vec![ids[2].clone()]);
        let alone = block_on(docs.open_answer(&host, &query, &answer, &Wanted { among, ..wanted }));
        assert_eq!(alone.unwrap().hits[0].ids, ids[2..3]);
        let asked = block_on(docs.info(&host, None)).unwrap().query_key;
        // One that was carried, and one of `query`.
        assert_eq!(asked.map(|key| key.queries), docs_counts(mode));
    }
}

fn docs_counts(mode: Mode) -> Option<usize> {
    matches!(mode, Mode::Sealed | Mode::SealedQuery).then_some(2)
}

#[test]
fn an_owner_knows_the_cards_that_it_made_and_what_a_server_needs() {
    let (host, _warnings) = connection();
    let made = |scheme| {
        let memory = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
        let choices = Choices { scheme, ..choices(Mode::SealedIndex, Metric::Cosine) };
        filled(&memory, &host, &choices, rows(5, DIMENSION, 1))
    };
    let (docs, other) = (made(Scheme::Lattice), made(Scheme::Lattice));
    let (card, _) = block_on(docs.writer_card(&host, "door")).unwrap();
    assert!(block_on(docs.knows_card(&host, &card)).unwrap());
    assert!(!block_on(other.knows_card(&host, &card)).unwrap());
    assert!(block_on(docs.evaluation(&host)).unwrap().0.is_empty());
    assert!(!block_on(made(Scheme::ElGamal).evaluation(&host)).unwrap().0.is_empty());
}

#[test]
fn of_a_query_that_somebody_else_made_an_answer_is_refused_and_holds_nothing() {
    let (host, _warnings) = connection();
    let memory = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
    let given = rows(80, DIMENSION, 1);
    let docs = filled(&memory, &host, &choices(Mode::SealedIndex, Metric::Cosine), given.clone());
    let probe = Probe::new(docs.spec().clone(), None).unwrap();
    let row = |row: usize| &given.embeddings[row * DIMENSION..][..DIMENSION];
    let [one, other] = [3, 40].map(|at| probe.query(row(at)).unwrap());
    let answer = block_on(docs.evaluate(&host, &one)).unwrap();
    let [mine, others] =
        [&one, &other].map(|bytes| block_on(docs.read_query(&host, bytes)).unwrap());
    assert_eq!(mine.to_bytes(), one);
    let opened = block_on(docs.open_answer(&host, &mine, &answer, &closest(0.01))).unwrap();
    assert_eq!(opened.hits[0].ids, given.ids[3..4]);
    assert!(opened.checked && !opened.owners_only);
    let none = block_on(docs.open_answer(
        &host,
        &mine,
        &answer,
        &Wanted { among: Some(vec![given.ids[4].clone()]), ..closest(0.01) },
    ));
    assert!(none.unwrap().hits[0].ids.is_empty());
    let opened = block_on(docs.open_answer(&host, &others, &answer, &closest(0.01)));
    let Err(Error::Scheme(SchemeError::Mismatched { segments })) = opened else {
        panic!("{opened:?}");
    };
    assert_eq!(segments.len(), 1);
    assert!(block_on(docs.quarantined(&host)).unwrap().is_empty());
    assert!(block_on(docs.unchecked(&host)).unwrap().is_empty());
    // Whoever asks the server themselves knows whose fault it is.
    block_on(docs.hold(&host, &segments, "the cloud's answer does not belong to the query"))
        .unwrap();
    assert_eq!(block_on(docs.quarantined(&host)).unwrap(), segments);
    let opened = block_on(docs.open_answer(&host, &mine, &answer, &closest(0.01))).unwrap();
    assert!(opened.hits[0].ids.is_empty());
    let made = block_on(docs.make_query(&host, row(3).to_vec()));
    assert!(matches!(made, Err(Error::Quarantined { .. })), "{made:?}");
    // No probe at all.
    assert!(block_on(docs.read_query(&host, b"rubbish")).is_err());
    assert!(block_on(docs.evaluate(&host, b"rubbish")).is_err());
}

#[test]
fn a_wrong_answer_to_an_own_query_is_held_against_its_segments() {
    let (host, _warnings) = connection();
    let memory = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
    let docs =
        filled(&memory, &host, &choices(Mode::Sealed, Metric::Cosine), rows(700, DIMENSION, 1));
    let [one, other] =
        [5, 6].map(|seed| block_on(docs.make_query(&host, vectors(1, DIMENSION, seed))).unwrap());
    let answer = block_on(docs.evaluate(&host, one.to_bytes())).unwrap();
    let opened = block_on(docs.open_answer(&host, &other, &answer, &closest(2.0)));
    let Err(Error::Tampered { segments, .. }) = opened else { panic!("{opened:?}") };
    assert_eq!(block_on(docs.quarantined(&host)).unwrap(), segments);
    // Its session has ended with it.
    assert_eq!(block_on(docs.info(&host, None)).unwrap().query_key.unwrap().session, None);
    let damaged = block_on(docs.open_answer(&host, &one, &answer[..50], &closest(2.0)));
    assert!(matches!(damaged, Err(Error::Quarantined { .. })), "{damaged:?}");
}
