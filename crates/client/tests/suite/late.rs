//! Rows of many vectors: the order of MaxSim over all rows, in a folder and in memory, while rows come, change and go.

use ciphervec_client::{
    CANDIDATES, Choices, Client, Collection, Connection, Error, Face, Fetch, Muvera, Parts,
    QueryRequest, Records, Selection, Tokens, block_on,
};
use ciphervec_owner::{Id, Metric, Mode};

use crate::support::{connection, keys, vectors};

const WIDTH: usize = 8;
const ROWS: usize = 40;
const MUVERA: Muvera =
    Muvera { width: 8, k_sim: 2, repetitions: 3, d_proj: 4, dimension: 32, seed: Some(1) };

fn tokens(count: usize, seed: u64) -> Tokens {
    Tokens { width: WIDTH, values: vectors(count, WIDTH, seed) }
}

fn choices(mode: Mode) -> Choices {
    Choices {
        mode,
        metric: Metric::InnerProduct,
        multi: Some(MUVERA),
        ..Choices::new(format!("pages-{mode:?}"), MUVERA.dimension as usize)
    }
}

fn records(rows: &[(Id, Tokens)]) -> Records {
    let (ids, multi) = rows.iter().cloned().unzip();
    Records { ids, multi, ..Records::default() }
}

/// MaxSim of the tokens as they were given.
fn plain(query: &Tokens, document: &Tokens) -> f64 {
    let product = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    let of = |token: &[f32]| {
        let products = document.values.chunks_exact(WIDTH).map(|other| product(token, other));
        products.fold(f64::NEG_INFINITY, f64::max)
    };
    query.values.chunks_exact(WIDTH).map(of).sum()
}

fn check(docs: &Collection, host: &Connection, rows: &[(Id, Tokens)], query: &Tokens) {
    let request = QueryRequest {
        multi: vec![query.clone()],
        n_results: Some(ROWS),
        parts: Parts { multi: true, fetch: Fetch::Segments, ..Parts::default() },
        ..QueryRequest::default()
    };
    let found = block_on(docs.query(host, request)).unwrap();
    let hits = &found.hits[0];
    assert_eq!((hits.len(), found.bounds.len()), (rows.len(), 1));
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
    for hit in hits {
        let (_, given) = rows.iter().find(|(id, _)| *id == hit.row.id).unwrap();
        assert!((hit.score - plain(query, given)).abs() <= found.bounds[0]);
        assert_eq!(hit.distance, 1.0 - hit.score);
        let kept = hit.row.tokens.as_ref().unwrap();
        assert_eq!(kept.values.len(), given.values.len());
        for (kept, given) in kept.values.iter().zip(&given.values) {
            assert!((kept - given).abs() <= 1.0 / 254.0 + 1e-6, "tokens have unit length");
        }
    }
}

#[test]
fn max_sim_orders_rows_that_come_change_and_go() {
    let (host, _warnings) = connection();
    let folder = tempfile::tempdir().unwrap();
    let clients = [
        Client::in_folder(Face::Rust, folder.path(), Some(keys().into()), false).unwrap(),
        Client::in_memory(Face::Rust, Some(keys().into())).unwrap(),
    ];
    for client in &clients {
        for mode in [Mode::Sealed, Mode::SealedQuery, Mode::SealedIndex, Mode::Open] {
            let docs = block_on(client.create_collection(&host, &choices(mode))).unwrap();
            assert_eq!(docs.multi(), Some(MUVERA));
            let row = |at: usize| (Id::from(at as i64), tokens(1 + at % 7, at as u64));
            let mut rows: Vec<_> = (0..ROWS).map(row).collect();
            block_on(docs.add(&host, records(&rows))).unwrap();
            let query = tokens(5, 77);
            check(&docs, &host, &rows, &query);
            rows[3].1 = tokens(2, 100);
            block_on(docs.upsert(&host, records(&rows[3..4]))).unwrap();
            rows[5].1 = query.clone();
            let changed = Records {
                documents: vec![Some("a".to_owned()), Some("b".to_owned())],
                ..records(&[rows[5].clone(), rows[6].clone()])
            };
            let changed = Records { multi: changed.multi[..1].to_vec(), ..changed };
            block_on(docs.update(&host, changed, Some(vec![true, false]), &[])).unwrap();
            let which = Selection { ids: Some(vec![rows[7].0.clone()]), ..Selection::default() };
            block_on(docs.delete(&host, &which, false)).unwrap();
            rows.remove(7);
            check(&docs, &host, &rows, &query);
            block_on(docs.optimize(&host, true)).unwrap();
            check(&docs, &host, &rows, &query);
        }
    }
    assert_eq!(
        CANDIDATES,
        ciphervec_client::MOST_PRIVATE,
        "so that they are fetched in private at once"
    );
}

#[test]
fn what_rows_of_many_vectors_are_not_for_is_refused() {
    let (host, _warnings) = connection();
    let client = Client::in_memory(Face::Rust, Some(keys().into())).unwrap();
    for wrong in [
        Choices { metric: Metric::Cosine, ..choices(Mode::Sealed) },
        Choices { dimension: 31, ..choices(Mode::Sealed) },
        Choices { originals: Some(false), ..choices(Mode::Sealed) },
        Choices { routing: Some(Default::default()), ..choices(Mode::Sealed) },
    ] {
        let made = block_on(client.create_collection(&host, &wrong)).map(drop);
        assert!(matches!(made, Err(Error::Input(_))), "{made:?}");
    }
    let docs = block_on(client.create_collection(&host, &choices(Mode::Sealed))).unwrap();
    let single = Records { embeddings: vectors(1, 32, 1), ..Records::default() };
    assert!(matches!(block_on(docs.add(&host, single)), Err(Error::Input(_))));
    let wide = Tokens { width: 9, values: vec![0.5; 9] };
    let many = Records { multi: vec![tokens(2, 1), wide], ..Records::default() };
    let Err(Error::Rows { rows, .. }) = block_on(docs.add(&host, many)) else {
        panic!("was taken")
    };
    assert_eq!((rows.len(), rows[0].0), (1, 1));
    assert!(
        rows[0].1.contains("has vectors of 9 numbers; the collection was made for 8"),
        "{rows:?}"
    );
    assert!(matches!(block_on(docs.writer_card(&host, "ann")), Err(Error::Input(_))));
    assert_eq!(block_on(docs.count(&host)).unwrap(), 0);
}
