//! Collections whose rows are in clusters, and what is fetched ahead of questions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ciphervec_client::{
    Choices, Clusters, Collection, Connection, Error, Host, QueryRequest, Records, Selection,
    block_on,
};
use ciphervec_owner::{Id, Metric, Mode};

use crate::support::{Fault, Faulty, Server, connection, filled, keys, rows, vectors};

const D: usize = 16;

/// Rows around some middles.
fn around(count: usize, middles: usize) -> Records {
    let mut given = rows(count, D, 5);
    let centers = vectors(middles, D, 9);
    for (row, vector) in given.embeddings.chunks_mut(D).enumerate() {
        let center = &centers[row % middles * D..][..D];
        vector.iter_mut().zip(center).for_each(|(x, c)| *x = 0.2 * *x + c);
    }
    given
}

fn routed(name: &str, metric: Metric) -> Choices {
    let routing =
        Clusters { count: Some(8), probes: Some(2), decoys: Some(2), ..Clusters::default() };
    Choices { metric, routing: Some(routing), ..Choices::new(name, D) }
}

fn nearest(docs: &Collection, host: &dyn Host, embedding: &[f32]) -> Option<Id> {
    let request = QueryRequest {
        embeddings: embedding.to_vec(),
        n_results: Some(1),
        ..QueryRequest::default()
    };
    let found = block_on(docs.query(host, request)).unwrap();
    assert!(found.checked);
    found.hits[0].first().map(|hit| hit.row.id.clone())
}

#[test]
fn rows_of_every_metric_are_found_in_their_clusters_by_every_client() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _) = connection();
    for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming] {
        let mut given = around(300, 8);
        if metric == Metric::Hamming {
            given.embeddings.iter_mut().for_each(|x| *x = x.signum());
        }
        let name = metric.as_str();
        let docs = filled(&client, &host, &routed(name, metric), given.clone());
        let made = block_on(docs.recluster(&host, None)).unwrap();
        assert_eq!((made.clusters, made.probes, made.decoys, made.unrouted), (8, 2, 2, 0));
        assert!(made.recall > 0.5 && made.recalls.len() == 8, "{name} {made:?}");
        let info = block_on(docs.info(&host, None)).unwrap();
        assert_eq!((info.segments.len(), info.rows), (8, 300));
        let shapes: BTreeSet<_> = info.segments.iter().map(|one| (one.rows, &one.bytes)).collect();
        assert_eq!(shapes.len(), 1, "{name}: clusters look alike");
        let other = server.client(&keys());
        let (there, _) = connection();
        let theirs = block_on(other.get_collection(&there, name, false, None)).unwrap();
        assert_eq!(theirs.routing(), routed(name, metric).routing.as_ref());
        if matches!(metric, Metric::InnerProduct | Metric::Hamming) {
            assert!(nearest(&theirs, &there, &given.embeddings[..D]).is_some());
            continue; // the longest rows are the nearest to many; many bits are alike
        }
        let own = |docs: &Collection, host: &Connection| {
            let asked = given.ids.iter().zip(given.embeddings.chunks(D)).step_by(10);
            let (asked, missed): (Vec<_>, Vec<_>) =
                asked.partition(|(id, row)| nearest(docs, host, row).as_ref() == Some(*id));
            assert!(missed.len() * 5 <= asked.len(), "{name}: {} missed", missed.len());
        };
        own(&docs, &host);
        own(&theirs, &there);
    }
}

#[test]
fn a_clustering_that_was_interrupted_is_gone_on_with() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(200, 8);
    let docs =
        filled(&server.client(&keys()), &host, &routed("notes", Metric::Cosine), given.clone());
    // The commits are: what the clusters are to be, the clusters, and that they count.
    let (commits, last) = (Cell::new(0), Cell::new(2));
    let broken = Faulty::new(|_, request| {
        let commits_now = request.url.ends_with("/commits");
        commits.set(commits.get() + usize::from(commits_now));
        (commits_now && commits.get() >= last.get()).then_some(Fault::Unsent)
    });
    let theirs =
        block_on(server.client(&keys()).get_collection(&broken, "notes", false, None)).unwrap();
    // The second time, what it is to be is there already.
    for _ in 0..2 {
        commits.set(0);
        let error = block_on(theirs.recluster(&broken, None)).err().unwrap();
        assert!(matches!(error, Error::Server { .. }), "{error}");
        assert_eq!(block_on(docs.count(&host)).unwrap(), 200);
    }
    // Rows that went and came meanwhile.
    block_on(docs.refresh(&host)).unwrap();
    let gone = Selection { ids: Some(vec![given.ids[3].clone()]), ..Selection::default() };
    block_on(docs.delete(&host, &gone, false)).unwrap();
    let made = block_on(docs.recluster(&host, None)).unwrap();
    assert_eq!(made.clusters, 8);
    assert_eq!(block_on(docs.count(&host)).unwrap(), 199);
    assert_ne!(nearest(&docs, &host, &given.embeddings[3 * D..4 * D]), Some(given.ids[3].clone()));
    last.set(usize::MAX);
    block_on(theirs.refresh(&broken)).unwrap();
    assert_eq!(block_on(theirs.count(&broken)).unwrap(), 199);
}

#[test]
fn every_question_names_as_many_segments_and_the_same_ones_when_asked_again() {
    let server = Server::start();
    let (host, _) = connection();
    let given = around(200, 8);
    let docs =
        filled(&server.client(&keys()), &host, &routed("notes", Metric::Cosine), given.clone());
    block_on(docs.recluster(&host, None)).unwrap();
    let asked = RefCell::new(Vec::new());
    let watched = Faulty::new(|_, request| {
        if request.url.ends_with("/query") {
            asked.borrow_mut().push(request.body.unwrap_or_default().to_vec());
        }
        None
    });
    let theirs =
        block_on(server.client(&keys()).get_collection(&watched, "notes", false, None)).unwrap();
    let ids: Vec<_> =
        block_on(docs.info(&host, None)).unwrap().segments.into_iter().map(|one| one.id).collect();
    for row in [0, 0, 1, 2] {
        nearest(&theirs, &watched, &given.embeddings[row * D..][..D]);
    }
    let named = |message: &Vec<u8>| -> BTreeSet<usize> {
        let there = |id: &String| {
            let bytes: Vec<_> =
                (0..16).map(|i| u8::from_str_radix(&id[2 * i..2 * i + 2], 16).unwrap()).collect();
            message.windows(16).any(|window| window == bytes)
        };
        (0..ids.len()).filter(|at| there(&ids[*at])).collect()
    };
    let sets: Vec<_> = asked.borrow().iter().map(named).collect();
    assert_eq!(sets.len(), 4);
    assert!(sets.iter().all(|set| set.len() == 4), "{sets:?}");
    assert_eq!(sets[0], sets[1]);
}

#[test]
fn modes_that_routing_would_give_away_are_refused() {
    let server = Server::start();
    let client = server.client(&keys());
    for (mode, filterable, says) in [
        (Mode::SealedIndex, vec![], "the server sees the queries"),
        (Mode::SealedQuery, vec![], "the server has the rows"),
        (Mode::Open, vec![], "hides nothing"),
        (Mode::Sealed, vec!["lang".to_owned()], "no filterable fields"),
    ] {
        let choices = Choices { mode, filterable, ..routed("notes", Metric::Cosine) };
        let error = client.check_new(&choices).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_half_that_was_fetched_ahead_is_not_sent_again() {
    let server = Server::start();
    let came = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&came);
    let host = Connection::in_memory().on_progress(move |progress| {
        if progress.phase == "download" {
            told.store(progress.done, Ordering::Relaxed);
        }
    });
    let given = rows(2000, D, 2);
    let docs = filled(&server.client(&keys()), &host, &Choices::new("notes", D), given.clone());
    let ask = |row: usize| {
        assert_eq!(
            nearest(&docs, &host, &given.embeddings[row * D..][..D]),
            Some(given.ids[row].clone())
        );
        came.load(Ordering::Relaxed)
    };
    let whole = ask(3);
    assert_eq!(block_on(docs.prefetch(&host, 2)).unwrap(), 2);
    let half = ask(4);
    assert!(half < whole, "{half} of {whole}");
    // What was committed since makes the other one useless.
    block_on(docs.upsert(&host, rows(1, D, 3))).unwrap();
    assert!(ask(5) > half);
    assert_eq!(block_on(docs.prefetch(&host, 1)).unwrap(), 1);
}
