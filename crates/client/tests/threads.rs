//! That work runs where a program says, in a process of its own: rayon's global threads begin once, and another test would begin them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, OnceLock};

use ciphervec_client::{
    Audience, Choices, Client, Clusters, Connection, Face, Parts, QueryRequest, Records, Selection,
    block_on, run_on,
};
use ciphervec_owner::{Keys, Metric, Mode, Scheme};

const ROWS: usize = 600;
const DIMENSION: usize = 16;

fn pool() -> &'static rayon::ThreadPool {
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

#[test]
fn nothing_runs_on_the_global_threads() {
    assert!(run_on(|work| pool().install(work)));
    assert!(!run_on(|work| work()), "it is set once");
    let (db, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Connection::new(state.path()).unwrap().on_warning(|_| {});
    let keys = Arc::new(Keys::from_master([7; 32]));
    let folder =
        Client::in_folder(Face::Rust, db.path(), Some(Arc::clone(&keys).into()), false).unwrap();
    let memory = Client::in_memory(Face::Rust, Some(Arc::clone(&keys).into())).unwrap();
    let row =
        |row: usize| (0..DIMENSION).map(move |i| ((row * 31 + i * 17) % 97) as f32 / 48.0 - 1.0);
    let rows = || Records {
        ids: (0..ROWS as i64).map(Into::into).collect(),
        embeddings: (0..ROWS).flat_map(row).collect(),
        metadatas: (0..ROWS).map(|n| Some(format!("{{\"n\": {n}}}"))).collect(),
        ..Records::default()
    };
    let kinds = [
        (Mode::Sealed, Metric::L2, None, Scheme::Lattice),
        (
            Mode::Sealed,
            Metric::Cosine,
            Some(Clusters { count: Some(4), ..Clusters::default() }),
            Scheme::Lattice,
        ),
        (Mode::SealedQuery, Metric::Cosine, None, Scheme::Lattice),
        (Mode::SealedIndex, Metric::InnerProduct, None, Scheme::Lattice),
        (Mode::Open, Metric::Cosine, None, Scheme::Lattice),
        (Mode::SealedIndex, Metric::Cosine, None, Scheme::ElGamal),
    ];
    for (number, (mode, metric, routing, scheme)) in kinds.into_iter().enumerate() {
        let name = format!("c{number}");
        let filterable = if routing.is_none() { vec!["n".to_owned()] } else { Vec::new() };
        let choices =
            Choices { mode, metric, routing, scheme, filterable, ..Choices::new(&name, DIMENSION) };
        for client in [&folder, &memory] {
            let docs = block_on(client.create_collection(&host, &choices)).unwrap();
            block_on(docs.add(&host, rows())).unwrap();
            let ask = |audience| {
                let request = QueryRequest {
                    embeddings: row(3).collect(),
                    parts: Parts {
                        records: true,
                        embeddings: audience == Audience::Owner,
                        ..Parts::default()
                    },
                    among: Selection {
                        filter: Some("{\"n\": {\"$lt\": 300}}".to_owned()),
                        ..Selection::default()
                    },
                    audience: Some(audience),
                    ..QueryRequest::default()
                };
                block_on(docs.query(&host, request))
            };
            ask(Audience::Owner).unwrap();
            if mode == Mode::Sealed {
                ask(Audience::Others).unwrap();
            }
            if choices.routing.is_some() {
                block_on(docs.recluster(&host, None)).unwrap();
            }
            let which =
                Selection { ids: Some(vec![1i64.into(), 2i64.into()]), ..Selection::default() };
            block_on(docs.delete(&host, &which, false)).unwrap();
            block_on(docs.optimize(&host, true)).unwrap();
            ask(Audience::Owner).unwrap();
            if mode != Mode::Open {
                let other = Arc::new(Keys::from_master([9; 32]));
                block_on(docs.rotate_keys(&host, &other, true)).unwrap();
                ask(Audience::Owner).unwrap();
            }
            block_on(docs.verify(&host)).unwrap();
            drop(docs);
        }
        if mode == Mode::Open {
            let copy = tempfile::tempdir().unwrap();
            let target = Client::in_folder(Face::Rust, copy.path(), None, false).unwrap();
            assert_eq!(block_on(folder.copy_to(&host, &name, &target)).unwrap(), ROWS as u64 - 2);
        }
    }
    // They begin with the first work that comes to them; then they can't be made another time.
    assert!(
        rayon::ThreadPoolBuilder::new().build_global().is_ok(),
        "something ran on rayon's global threads"
    );
}
