//! Connections that break, at every request in turn.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ciphervec_client::{
    Choices, Error, Fetch, Host, Parts, QueryRequest, Request, Result, Selection, block_on,
};
use ciphervec_owner::{Id, Keys, Mode};

use crate::support::{Fault, Faulty, Server, filled, keys, rows, vectors};

const D: usize = 16;

/// Makes a collection, changes it in every way and searches it; what is there then.
fn story(server: &Server, host: &dyn Host, name: &str) -> Result<(Vec<Id>, Vec<Id>)> {
    let client = server.client(&keys());
    block_on(async {
        let docs = client.create_collection(host, &Choices::new(name, D)).await?;
        docs.add(host, rows(12, D, 1)).await?;
        docs.upsert(host, rows(3, D, 1)).await?;
        let gone = Selection { ids: Some(vec![Id::from(1005)]), ..Selection::default() };
        docs.delete(host, &gone, false).await?;
        let again = client.get_collection(host, name, false, None).await?;
        let wanted = QueryRequest {
            embeddings: vectors(12, D, 1)[..D].to_vec(),
            n_results: Some(2),
            ..QueryRequest::default()
        };
        let found = again.query(host, wanted).await?;
        let all = again
            .get(
                host,
                &Selection::default(),
                Parts {
                    records: true,
                    embeddings: true,
                    multi: false,
                    sparse: false,
                    fetch: Fetch::Segments,
                },
                0,
                None,
                None,
            )
            .await?;
        Ok((
            all.rows.into_iter().map(|row| row.id).collect(),
            found.hits[0].iter().map(|hit| hit.row.id.clone()).collect(),
        ))
    })
}

/// Makes a collection, merges it and gives it other keys; what is there then.
fn upkept(server: &Server, host: &dyn Host, name: &str) -> Result<(Vec<Id>, Vec<Id>)> {
    let (client, next) = (server.client(&keys()), Arc::new(Keys::from_master([9; 32])));
    let choices = Choices { mode: Mode::SealedIndex, ..Choices::new(name, D) };
    block_on(async {
        let docs = client.create_collection(host, &choices).await?;
        docs.add(host, rows(6, D, 1)).await?;
        docs.add(host, rows(6, D, 2)).await?;
        let gone = Selection { ids: Some(vec![Id::from(1005)]), ..Selection::default() };
        docs.delete(host, &gone, false).await?;
        docs.optimize(host, false).await?;
        docs.rotate_keys(host, &next, false).await?;
        let again = server.client(&next).get_collection(host, name, false, None).await?;
        let parts = Parts {
            records: true,
            embeddings: true,
            multi: false,
            sparse: false,
            fetch: Fetch::Segments,
        };
        let all = again.get(host, &Selection::default(), parts, 0, None, None).await?;
        assert_eq!(again.info(host, None).await?.segments.len(), 1);
        Ok((all.rows.into_iter().map(|row| row.id).collect(), Vec::new()))
    })
}

#[test]
fn a_request_that_is_lost_once_is_sent_again_and_nothing_is_done_twice() {
    lost_once(story);
}

#[test]
fn a_request_of_upkeep_that_is_lost_once_is_sent_again_and_nothing_is_lost_with_it() {
    lost_once(upkept);
}

fn lost_once(story: impl Fn(&Server, &dyn Host, &str) -> Result<(Vec<Id>, Vec<Id>)>) {
    let server = Server::start();
    let whole = Faulty::new(|_, _| None);
    let right = story(&server, &whole, "whole").unwrap();
    assert_eq!(right.0.len(), 11);
    for number in 0..whole.sent.get() {
        for (kind, fault) in
            [Fault::Unsent, Fault::Unanswered, Fault::Cut(1), Fault::Busy].into_iter().enumerate()
        {
            let host = Faulty::new(move |now, _| (now == number).then_some(fault));
            let came = story(&server, &host, &format!("story-{number}-{kind}"));
            assert_eq!(
                came.unwrap_or_else(|error| panic!("{number}, {fault:?}: {error}")),
                right,
                "{number}, {fault:?}"
            );
            if fault == Fault::Busy && host.sent.get() > number {
                assert!(host.waited.get() >= Duration::from_secs(3), "as long as the server said");
            }
        }
    }
}

#[test]
fn what_arrived_of_a_blob_is_not_fetched_again() {
    let server = Server::start();
    let (first, _) = crate::support::connection();
    filled(&server.client(&keys()), &first, &Choices::new("notes", D), rows(300, D, 1));
    let cuts = Cell::new(3);
    let host = Faulty::new(|_, request: &Request<'_>| {
        let blob = request.url.contains("/segments/") && cuts.get() > 0;
        blob.then(|| {
            cuts.set(cuts.get() - 1);
            Fault::Cut(1000)
        })
    });
    let docs =
        block_on(server.client(&keys()).get_collection(&host, "notes", false, None)).unwrap();
    let parts = Parts { records: true, fetch: Fetch::Segments, ..Parts::default() };
    let found = block_on(docs.get(&host, &Selection::default(), parts, 0, None, None)).unwrap();
    assert_eq!(found.rows.len(), 300);
    assert_eq!(cuts.get(), 0);
    assert!(host.ranges.borrow().contains(&"bytes=1000-".to_owned()), "{:?}", host.ranges.borrow());
}

#[test]
fn a_commit_whose_answer_never_comes_is_uncertain_and_seen_by_the_next_call() {
    let server = Server::start();
    let broken = Cell::new(false);
    let host = Faulty::new(|_, request: &Request<'_>| {
        (broken.get() && request.url.ends_with("/commits")).then_some(Fault::Unanswered)
    });
    let docs = block_on(server.client(&keys()).create_collection(&host, &Choices::new("notes", D)))
        .unwrap();
    broken.set(true);
    let error = block_on(docs.add(&host, rows(3, D, 1))).err().unwrap();
    assert!(matches!(&error, Error::CommitUncertain(says) if says.contains("upsert")), "{error}");
    broken.set(false);
    assert_eq!(block_on(docs.count(&host)).unwrap(), 3, "it was made");
    assert!(matches!(block_on(docs.add(&host, rows(3, D, 1))), Err(Error::DuplicateId(_))));
    block_on(docs.upsert(&host, rows(3, D, 1))).unwrap();
    assert_eq!(block_on(docs.count(&host)).unwrap(), 3);
}
