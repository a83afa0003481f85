//! Segments that are merged, sealed under other keys or put back: nothing is lost, at whatever request it ends.

use std::cell::Cell;
use std::sync::Arc;

use ciphervec_client::{
    Choices, Client, Collection, Connection, Error, Fetch, Host, OnZero, Parts, QueryRequest,
    Records, Request, Selection, Writer, block_on,
};
use ciphervec_owner::{Id, Keys, Metric, Mode};

use crate::support::{Faulty, Server, connection, filled, keys, rows};

const D: usize = 16;
const EVERYTHING: Parts =
    Parts { records: true, embeddings: true, multi: false, sparse: false, fetch: Fetch::Segments };

fn other_keys() -> Arc<Keys> {
    Arc::new(Keys::from_master([9; 32]))
}

fn these(ids: &[i64]) -> Selection {
    Selection { ids: Some(ids.iter().map(|id| Id::from(*id)).collect()), ..Selection::default() }
}

/// Three segments of 40 rows each, of which two have deleted rows.
fn worn(client: &Client, host: &Connection, choices: &Choices) -> Collection {
    let docs = filled(client, host, choices, bits(choices, rows(40, D, 1)));
    for seed in [2, 3] {
        block_on(docs.add(host, bits(choices, rows(40, D, seed)))).unwrap();
    }
    block_on(docs.delete(host, &these(&[1005, 2007, 2008]), false)).unwrap();
    docs
}

fn bits(choices: &Choices, mut given: Records) -> Records {
    if choices.metric == Metric::Hamming {
        given.embeddings.iter_mut().for_each(|x| *x = x.signum());
    }
    given
}

/// That every row is there as it was put in, and found.
fn check(docs: &Collection, host: &dyn Host, choices: &Choices) {
    let found = block_on(docs.get(host, &Selection::default(), EVERYTHING, 0, None, None)).unwrap();
    assert_eq!(found.rows.len(), 117);
    for seed in [1, 2, 3] {
        let given = bits(choices, rows(40, D, seed));
        let there = found.rows.iter().map(|row| &row.id).filter(|id| given.ids.contains(id));
        let gone = [1005, 2007, 2008].map(Id::from);
        let left = given.ids.iter().filter(|id| !gone.contains(id));
        assert!(there.eq(left), "each once, in the order of insertion");
        for (row, id) in given.ids.iter().enumerate() {
            let Some(there) = found.rows.iter().find(|one| one.id == *id) else { continue };
            assert_eq!(there.metadata, given.metadatas[row]);
            assert_eq!(there.document, given.documents[row]);
            let wanted = &given.embeddings[row * D..][..D];
            assert_eq!(there.embedding.as_deref(), Some(wanted), "to the last bit");
        }
    }
    let embeddings = bits(choices, rows(40, D, 3)).embeddings[17 * D..18 * D].to_vec();
    let wanted = QueryRequest { embeddings, n_results: Some(1), ..QueryRequest::default() };
    let hits = block_on(docs.query(host, wanted)).unwrap().hits;
    if choices.metric != Metric::InnerProduct {
        assert_eq!(hits[0][0].row.id, Id::from(3017));
    }
}

fn segments(docs: &Collection, host: &dyn Host) -> (usize, usize) {
    let info = block_on(docs.info(host, None)).unwrap();
    (info.segments.len(), info.segments.iter().map(|one| one.deleted).sum())
}

#[test]
fn worn_segments_become_one_in_every_mode_and_metric() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    for mode in [Mode::Sealed, Mode::SealedQuery, Mode::SealedIndex, Mode::Open] {
        for metric in [Metric::Cosine, Metric::InnerProduct, Metric::L2, Metric::Hamming] {
            let name = format!("{}-{}", mode.as_str(), metric.as_str());
            let choices = Choices { mode, metric, ..Choices::new(name, D) };
            let docs = worn(&client, &host, &choices);
            assert_eq!(segments(&docs, &host), (3, 3));
            let watched = Faulty::new(|_, _| None);
            block_on(docs.optimize(&watched, false)).unwrap();
            assert_eq!(watched.done.borrow().last(), Some(&(120, Some(120))));
            assert_eq!(segments(&docs, &host), (1, 0));
            check(&docs, &host, &choices);
            let before = block_on(docs.info(&host, None)).unwrap();
            block_on(docs.optimize(&host, false)).unwrap();
            assert_eq!(
                block_on(docs.info(&host, None)).unwrap().segments,
                before.segments,
                "as it is"
            );
            block_on(docs.optimize(&host, true)).unwrap();
            assert_ne!(
                block_on(docs.info(&host, None)).unwrap().segments,
                before.segments,
                "a new nonce"
            );
            let (fresh, _) = connection();
            let allow_open = mode == Mode::Open;
            let again = client.get_collection(&fresh, &choices.name, allow_open, None);
            check(&block_on(again).unwrap(), &fresh, &choices);
        }
    }
}

#[test]
fn rows_far_from_zero_are_sealed_around_their_mean_once_it_is_seen() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let choices = Choices { metric: Metric::L2, ..Choices::new("years", D) };
    let client = server.client(&keys());
    let docs = block_on(client.create_collection(&host, &choices)).unwrap();
    let far = |seed| {
        let mut given = rows(1, D, seed);
        given.embeddings.iter_mut().for_each(|x| *x += 2000.0);
        given
    };
    // One at a time, none of them tells that the others are beside it.
    for seed in 1..=6 {
        block_on(docs.add(&host, far(seed))).unwrap();
    }
    block_on(docs.optimize(&host, false)).unwrap();
    assert_eq!(segments(&docs, &host), (1, 0));
    let wanted = QueryRequest {
        n_results: Some(1),
        embeddings: far(4).embeddings,
        ..QueryRequest::default()
    };
    let found = block_on(docs.query(&host, wanted)).unwrap();
    assert_eq!(found.hits[0][0].row.id, Id::from(4000));
    assert!(found.hits[0][0].distance < 0.01, "{}", found.hits[0][0].distance);
}

#[test]
fn a_merge_that_ends_at_any_request_leaves_a_whole_collection() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let client = server.client(&keys());
    let choices = |name: String| Choices { mode: Mode::SealedIndex, ..Choices::new(name, D) };
    let whole = worn(&client, &host, &choices("whole".to_owned()));
    let counted = Faulty::new(|_, _| None);
    block_on(whole.optimize(&counted, false)).unwrap();
    for at in 0..counted.sent.get() {
        for acted in [false, true] {
            let choices = choices(format!("merged-{at}-{acted}"));
            let docs = worn(&client, &host, &choices);
            let dying = Faulty::killed(Connection::in_memory().on_warning(|_| ()), at, acted);
            assert!(block_on(docs.optimize(&dying, false)).is_err(), "at {at}, {acted}");
            let (fresh, _) = connection();
            let again =
                block_on(client.get_collection(&fresh, &choices.name, false, None)).unwrap();
            check(&again, &fresh, &choices);
            block_on(again.optimize(&fresh, false)).unwrap();
            assert_eq!(segments(&again, &fresh), (1, 0));
            check(&again, &fresh, &choices);
            // Who lived through it goes on as well.
            check(&docs, &host, &choices);
        }
    }
}

#[test]
fn others_who_change_rows_do_not_outrun_a_merge_and_lose_nothing() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let (there, _) = connection();
    let client = server.client(&keys());
    let choices = Choices { mode: Mode::SealedIndex, ..Choices::new("notes", D) };
    let docs = worn(&client, &host, &choices);
    let theirs =
        block_on(server.client(&keys()).get_collection(&there, "notes", false, None)).unwrap();
    let turn = Cell::new(0);
    let crowded = Faulty::new(|_, request: &Request<'_>| {
        if request.url.ends_with("/commits") {
            let now = turn.get();
            turn.set(now + 1);
            match now {
                0 => drop(block_on(theirs.delete(&there, &these(&[3001]), false)).unwrap()),
                1 => drop(block_on(theirs.add(&there, rows(1, D, 7))).unwrap()),
                2 => drop(block_on(theirs.upsert(&there, rows(1, D, 1))).unwrap()),
                _ => {}
            }
        }
        None
    });
    block_on(docs.optimize(&crowded, false)).unwrap();
    assert_eq!(turn.get(), 4, "three conflicts");
    let found =
        block_on(docs.get(&host, &Selection::default(), EVERYTHING, 0, None, None)).unwrap();
    let ids: Vec<_> = found.rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids.len(), 117);
    assert!(!ids.contains(&Id::from(3001)) && ids.contains(&Id::from(7000)));
    // What came meanwhile stays beside; what went is gone from what was sealed before it went.
    let left = block_on(docs.info(&host, None)).unwrap().segments;
    assert_eq!(left.iter().map(|one| one.deleted).max(), Some(2), "{left:?}");
    let (fresh, _) = connection();
    let again = block_on(client.get_collection(&fresh, "notes", false, None)).unwrap();
    block_on(again.optimize(&fresh, false)).unwrap();
    assert_eq!(segments(&again, &fresh), (1, 0));
    assert_eq!(block_on(again.count(&fresh)).unwrap(), 117);
}

#[test]
fn a_segment_whose_rows_were_changed_is_made_anew_of_the_vectors_that_were_kept() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let choices = Choices::new("notes", D);
    let client = server.client(&keys());
    let docs = worn(&client, &host, &choices);
    block_on(docs.optimize(&host, false)).unwrap();
    let (fresh, _) = connection();
    let lies = Faulty::altering(|path, mut body| {
        if path.ends_with("/rows") {
            let at = body.len() - 200;
            body[at] ^= 0x10;
        }
        body
    });
    let theirs =
        block_on(server.client(&keys()).get_collection(&lies, "notes", false, None)).unwrap();
    let error = block_on(theirs.optimize(&lies, true)).err().unwrap();
    assert!(
        matches!(error, Error::Tampered { .. } | Error::Scheme(_) | Error::Corrupt(_)),
        "{error:?}"
    );
    check(&block_on(client.get_collection(&fresh, "notes", false, None)).unwrap(), &host, &choices);
}

#[test]
fn everything_is_under_the_new_keys_and_the_old_ones_are_refused() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let state = || Connection::new(folder.path()).unwrap().on_warning(|text| panic!("{text}"));
    let client = server.client(&keys());
    for mode in [Mode::Sealed, Mode::SealedQuery, Mode::SealedIndex] {
        for overlap in [false, true] {
            let name = format!("{}-{overlap}", mode.as_str());
            let choices = Choices { mode, ..Choices::new(&name, D) };
            let host = state();
            let docs = worn(&client, &host, &choices);
            let (card, _) = block_on(docs.writer_card(&host, "door")).unwrap();
            let writer = Writer::new(&card, None).unwrap();
            let watched = Faulty::killed(state(), usize::MAX, false);
            block_on(docs.rotate_keys(&watched, &other_keys(), overlap)).unwrap();
            assert_eq!(
                watched.done.borrow().as_slice(),
                [(40, Some(120)), (80, Some(120)), (120, Some(120))]
            );
            check(&docs, &host, &choices);
            let info = block_on(docs.info(&host, None)).unwrap();
            assert_eq!(info.key_id, other_keys().key_id().to_string());
            assert_eq!((info.rotates_from, info.epoch, info.segments.len()), (None, 1, 3));
            block_on(docs.rotate_keys(&host, &other_keys(), overlap)).unwrap(); // done already
            let (sealed, _) = writer.seal(&host, rows(2, D, 8)).unwrap();
            block_on(writer.send(&host, &server.url, None, false, &sealed)).unwrap();
            block_on(docs.refresh(&host)).unwrap();
            let refused: Vec<_> =
                block_on(docs.info(&host, None)).unwrap().refused.into_keys().collect();
            assert_eq!(refused.len(), 1, "a new card is needed");
            check(&docs, &host, &choices);
            assert_eq!(block_on(docs.discard(&host, &refused)).unwrap(), 2);
            block_on(docs.rotate_query_key(&host)).unwrap();
            check(&docs, &host, &choices);
            drop(docs);
            // What was seen is there for the new keys: who goes back behind it is found out.
            let new = server.client(&other_keys());
            let again = block_on(new.get_collection(&state(), &name, false, None)).unwrap();
            check(&again, &state(), &choices);
            let (fresh, _) = connection();
            let refused = block_on(client.get_collection(&fresh, &name, false, None));
            assert!(matches!(refused, Err(Error::WrongKey(_))), "{:?}", refused.err());
        }
    }
    let open = Choices { mode: Mode::Open, ..Choices::new("open", D) };
    let docs = filled(&client, &state(), &open, rows(2, D, 1));
    let refused = block_on(docs.rotate_keys(&state(), &other_keys(), false));
    assert!(matches!(refused, Err(Error::Input(says)) if says.contains("no keys")));
}

#[test]
fn a_change_of_keys_that_ends_at_any_request_is_gone_on_with() {
    let server = Server::start();
    let client = server.client(&keys());
    let new = server.client(&other_keys());
    let choices = |name: String| Choices { mode: Mode::SealedIndex, ..Choices::new(name, D) };
    let (mut under_old, mut under_new) = (0, 0);
    'requests: for at in 0.. {
        for acted in [false, true] {
            let name = format!("rotated-{at}-{acted}");
            let choices = choices(name.clone());
            let folder = tempfile::tempdir().unwrap();
            let state = || Connection::new(folder.path()).unwrap().on_warning(|_| ());
            let docs = worn(&client, &state(), &choices);
            let dying = Faulty::killed(state(), at, acted);
            if block_on(docs.rotate_keys(&dying, &other_keys(), acted)).is_ok() {
                break 'requests; // it has no more
            }
            drop(docs);
            // The process that comes next has the same folder, and either keys.
            let host = state();
            let again = match block_on(new.get_collection(&host, &name, false, None)) {
                Ok(again) => {
                    under_new += 1;
                    again
                }
                Err(error) => {
                    assert!(matches!(error, Error::WrongKey(_) | Error::Mismatch(_)), "{error}");
                    under_old += 1;
                    block_on(client.get_collection(&host, &name, false, None)).unwrap()
                }
            };
            check(&again, &host, &choices);
            block_on(again.rotate_keys(&host, &other_keys(), false)).unwrap();
            check(&again, &host, &choices);
            let (fresh, _) = connection();
            let again = block_on(new.get_collection(&fresh, &name, false, None)).unwrap();
            check(&again, &fresh, &choices);
            assert_eq!(block_on(again.info(&fresh, None)).unwrap().rotates_from, None);
        }
    }
    assert!(under_old >= 1 && under_new >= 8, "{under_old}, {under_new}");
}

#[test]
fn who_lives_through_a_lost_commit_of_new_keys_goes_on_under_them() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let choices = Choices::new("notes", D);
    let docs = worn(&server.client(&keys()), &host, &choices);
    let first = Cell::new(true);
    let broken = Faulty::new(|_, request: &Request<'_>| {
        let commit = request.url.ends_with("/commits");
        (commit || !first.get()).then(|| {
            let fault = if first.get() {
                crate::support::Fault::Unanswered
            } else {
                crate::support::Fault::Unsent
            };
            first.set(false);
            fault
        })
    });
    assert!(block_on(docs.rotate_keys(&broken, &other_keys(), false)).is_err());
    check(&docs, &host, &choices);
    block_on(docs.rotate_keys(&host, &other_keys(), false)).unwrap();
    check(&docs, &host, &choices);
}

#[test]
fn a_call_that_is_ended_goes_on_with_the_next_one_and_other_keys_wait() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    let choices = Choices::new("notes", D);
    let docs = worn(&client, &host, &choices);
    let (there, _) = connection();
    let theirs = block_on(client.get_collection(&there, "notes", false, None)).unwrap();
    let impatient = Faulty::new(|_, _| None);
    impatient.patience.set(40);
    let ended = block_on(docs.rotate_keys(&impatient, &other_keys(), true));
    assert!(matches!(ended, Err(Error::Ended(_))), "{ended:?}");
    let info = block_on(docs.info(&host, None)).unwrap();
    assert_eq!(info.rotates_from, Some(keys().key_id().to_string()));
    let third = Arc::new(Keys::from_master([11; 32]));
    let refused = block_on(docs.rotate_keys(&host, &third, false));
    assert!(matches!(refused, Err(Error::Input(says)) if says.contains("finish")));
    // With `overlap` those who have the old keys read and write on.
    block_on(theirs.add(&there, rows(1, D, 6))).unwrap();
    block_on(theirs.delete(&there, &these(&[6000]), false)).unwrap();
    check(&theirs, &there, &choices);
    block_on(docs.rotate_keys(&host, &other_keys(), true)).unwrap();
    check(&docs, &host, &choices);
    let refused = block_on(theirs.refresh(&there));
    assert!(matches!(refused, Err(Error::WrongKey(_) | Error::Mismatch(_))), "{refused:?}");
}

fn ask(method: &str, url: &str, body: &str) {
    let asked = ureq::http::Request::builder().method(method).uri(url);
    let asked = asked.header("Content-Type", "application/json").body(body.to_owned()).unwrap();
    assert!(ureq::run(asked).unwrap().status().is_success(), "{method} {url}");
}

#[test]
fn a_restore_is_accepted_by_its_owner_and_gone_on_from() {
    let server = Server::start();
    let client = server.client(&keys());
    let folder = tempfile::tempdir().unwrap();
    let state = Connection::new(folder.path()).unwrap().on_warning(|text| panic!("{text}"));
    let choices = Choices::new("notes", D);
    let docs = filled(&client, &state, &choices, rows(10, D, 1));
    let (there, _) = connection();
    let theirs = block_on(client.get_collection(&there, "notes", false, None)).unwrap();
    let snapshot = format!("{}/v1/collections/notes/snapshots/s1", server.url);
    ask("PUT", &snapshot, "");
    block_on(docs.add(&state, rows(10, D, 2))).unwrap();
    block_on(docs.rotate_query_key(&state)).unwrap();
    block_on(docs.rotate_query_key(&state)).unwrap();
    block_on(theirs.refresh(&there)).unwrap();
    let nothing = block_on(client.accept_restore(&state, "notes"));
    assert!(matches!(nothing, Err(Error::Input(says)) if says.contains("nothing of")));
    ask("POST", &format!("{snapshot}/restore"), "{\"into\": \"notes\"}");
    for told in [
        block_on(docs.refresh(&state)),
        block_on(client.get_collection(&state, "notes", false, None)).map(drop),
    ] {
        let error = told.err().unwrap();
        assert!(
            matches!(&error, Error::RolledBack(says) if says.contains("client.accept_restore(\"notes\")")),
            "{error}"
        );
    }
    // Wherever it ends, the next call accepts it.
    let mut at = 0;
    let accepts = |at: usize, acted| {
        let dying = Faulty::killed(Connection::new(folder.path()).unwrap(), at, acted);
        match block_on(client.accept_restore(&dying, "notes")) {
            Ok(_) | Err(Error::Input(_)) => true, // there is nothing left to accept
            Err(_) => false,
        }
    };
    while !(accepts(at, false) || accepts(at, true)) {
        at += 1;
    }
    assert!((4..30).contains(&at), "{at}");
    let back = block_on(client.get_collection(&state, "notes", false, None)).unwrap();
    assert_eq!(block_on(back.count(&state)).unwrap(), 10);
    assert!(
        block_on(back.info(&state, None)).unwrap().epoch >= 3,
        "no query key that was given up comes back"
    );
    // Who saw what is lost is told so, and how to follow.
    let told = block_on(theirs.refresh(&there)).err().unwrap();
    assert!(
        matches!(&told, Error::RolledBack(says) if says.contains("accepted a restore at")),
        "{told}"
    );
    block_on(client.forget(&there, "notes")).unwrap();
    let followed = block_on(client.get_collection(&there, "notes", false, None)).unwrap();
    block_on(followed.add(&there, rows(1, D, 3))).unwrap();
    block_on(back.refresh(&state)).unwrap();
    assert_eq!(block_on(back.count(&state)).unwrap(), 11);
    let open = Choices { mode: Mode::Open, ..Choices::new("open", D) };
    filled(&client, &state, &open, rows(2, D, 1));
    assert!(matches!(block_on(client.accept_restore(&state, "open")), Err(Error::Input(_))));
    assert!(matches!(
        block_on(client.accept_restore(&state, "away")),
        Err(Error::CollectionNotFound(_))
    ));
}

#[test]
fn rows_of_writers_are_taken_over_or_thrown_away() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, _warnings) = connection();
    let choices = Choices { filterable: vec!["even".to_owned()], ..Choices::new("notes", D) };
    let docs = filled(&client, &host, &choices, rows(4, D, 1));
    let (card, _) = block_on(docs.writer_card(&host, "door")).unwrap();
    let writer = Writer::new(&card, None).unwrap();
    for seed in [2, 3] {
        let (sealed, _) = writer.seal(&host, rows(3, D, seed)).unwrap();
        block_on(writer.send(&host, &server.url, None, false, &sealed)).unwrap();
    }
    let (known, _) = writer.seal(&host, rows(2, D, 1)).unwrap(); // ids that the owner has
    block_on(writer.send(&host, &server.url, None, false, &known)).unwrap();
    block_on(docs.refresh(&host)).unwrap();
    let written: Vec<_> = block_on(docs.info(&host, None)).unwrap().segments;
    let written: Vec<_> = written.into_iter().filter(|one| one.writer.is_some()).collect();
    assert_eq!(written.len(), 3);
    let own = block_on(docs.info(&host, None)).unwrap().segments[0].id.clone();
    let refused = block_on(docs.discard(&host, &[written[1].id.clone(), own]));
    assert!(matches!(refused, Err(Error::Input(_))), "{refused:?}");
    assert_eq!(block_on(docs.count(&host)).unwrap(), 10, "nothing was removed");
    assert_eq!(block_on(docs.discard(&host, &[written[1].id.clone()])).unwrap(), 3);
    assert_eq!(block_on(docs.adopt(&host, false)).unwrap(), 3, "two were set aside");
    let info = block_on(docs.info(&host, None)).unwrap();
    assert!(info.writers.is_empty() && info.ignored.is_empty(), "{info:?}");
    assert_eq!(info.rows, 7);
    let even = Selection { filter: Some("{\"even\":true}".to_owned()), ..Selection::default() };
    let found = block_on(docs.get(&host, &even, EVERYTHING, 0, None, None)).unwrap();
    assert_eq!(found.rows.len(), 4);
    // Sent again, what was adopted or thrown away does not count.
    let (again, _) = writer.seal(&host, rows(2, D, 1)).unwrap();
    block_on(writer.send(&host, &server.url, None, false, &again)).unwrap();
    assert_eq!(block_on(docs.adopt(&host, true)).unwrap(), 2, "taken over");
    assert_eq!(block_on(docs.count(&host)).unwrap(), 7);
}

#[test]
fn rows_without_a_direction_are_left_out_where_that_is_asked_for() {
    let server = Server::start();
    let client = server.client(&keys());
    let (host, warnings) = connection();
    let docs = block_on(client.create_collection(&host, &Choices::new("notes", D))).unwrap();
    let mut given = rows(9, D, 1);
    given.embeddings[..7 * D].fill(0.0);
    let refused = block_on(docs.add(&host, given.clone()));
    assert!(matches!(refused, Err(Error::Rows { rows, .. }) if rows.len() == 7));
    given.on_zero = OnZero::Skip;
    assert_eq!(block_on(docs.add(&host, given)).unwrap(), [Id::from(1007), Id::from(1008)]);
    let told = warnings.try_recv().unwrap();
    assert_eq!(
        told,
        "7 rows of 9 left out: a zero vector has no direction: 1000, 1001, 1002, 1003, 1004 …."
    );
    let found =
        block_on(docs.get(&host, &Selection::default(), EVERYTHING, 0, None, None)).unwrap();
    assert_eq!(found.rows[1].document.as_deref(), Some("row 8 of 1"));
}
