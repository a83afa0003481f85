//! Rows fetched in private: exact for every size, the same to a server whichever they are, and ended by one failure.

use std::cell::{Cell, RefCell};

use ciphervec_client::{
    Choices, Client, ClientOptions, Collection, Error, Fetch, GetResult, Host, Parts, QueryRequest,
    Records, Request, Selection, Writer, block_on,
};
use ciphervec_owner::search::{Writer as SealingWriter, WriterCard, WrittenSegment};
use ciphervec_owner::{Id, Mode};

use crate::lying::copy;
use crate::support::{Faulty, Server, connection, filled, keys, rows, vectors};

const D: usize = 16;
const PRIVATE: Parts =
    Parts { records: true, embeddings: false, multi: false, sparse: false, fetch: Fetch::Private };
const PLAIN: Parts =
    Parts { records: true, embeddings: false, multi: false, sparse: false, fetch: Fetch::Segments };

fn sealed(name: &str) -> Choices {
    Choices::new(name, D)
}

/// Documents of these lengths.
fn documents(lengths: &[usize], seed: u64) -> Records {
    let documents = lengths.iter().enumerate();
    let documents = documents
        .map(|(row, &length)| Some(char::from(b'a' + row as u8 % 26).to_string().repeat(length)));
    Records {
        documents: documents.collect(),
        metadatas: vec![None; lengths.len()],
        ..rows(lengths.len(), D, seed)
    }
}

fn get(docs: &Collection, host: &dyn Host, ids: &[i64], parts: Parts) -> Result<GetResult, Error> {
    let ids = ids.iter().map(|id| Id::from(*id)).collect();
    let which = Selection { ids: Some(ids), ..Selection::default() };
    block_on(docs.get(host, &which, parts, 0, None, None))
}

fn wanted(seed: u64, count: usize, parts: Parts) -> QueryRequest {
    QueryRequest {
        embeddings: vectors(1, D, seed),
        n_results: Some(count),
        parts,
        ..QueryRequest::default()
    }
}

/// Methods, paths, lengths of bodies and headers of what is sent, in order: all that a server sees but for the bodies.
struct Seen<'a> {
    seen: &'a RefCell<Vec<(String, usize, String)>>,
}

impl Seen<'_> {
    fn note(&self, request: &Request<'_>) {
        let path = request.url.splitn(4, '/').last().unwrap_or_default();
        let what = format!("{} {path}", request.method);
        let headers = format!("{:?}", request.headers);
        self.seen.borrow_mut().push((what, request.body.map_or(0, <[u8]>::len), headers));
    }
}

/// What a server sees of a call.
fn view(call: impl FnOnce(&Faulty<'_>)) -> Vec<(String, usize, String)> {
    let seen = RefCell::default();
    {
        let noted = Seen { seen: &seen };
        let host = Faulty::new(move |_, request: &Request<'_>| {
            noted.note(request);
            None
        });
        call(&host);
    }
    seen.into_inner()
}

#[test]
fn records_of_every_size_come_as_they_were_put_in() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    // At both sides of what leaves a polynomial as many rows, and of whole ones.
    for (number, longest) in [1, 900, 3500, 7050, 7120, 7200, 20_000].into_iter().enumerate() {
        let lengths = [0, 1, longest / 2, longest, longest - 1, 7, longest];
        let name = format!("docs{number}");
        let docs = filled(&client, &host, &sealed(&name), documents(&lengths, 0));
        let one = rows(3, D, 9);
        block_on(docs.add(&host, one)).unwrap();
        for ids in [&[0][..], &[3], &[6, 0, 3, 3], &[9002, 4], &[5, 9000, 9001, 1, 2, 6]] {
            let private = get(&docs, &host, ids, PRIVATE).unwrap();
            assert_eq!(private, get(&docs, &host, ids, PLAIN).unwrap(), "{longest} {ids:?}");
            let by_row = Parts { fetch: Fetch::Rows, ..PRIVATE };
            assert_eq!(private, get(&docs, &host, ids, by_row).unwrap(), "{longest} {ids:?}");
            assert_eq!(private.rows.len(), ids.len());
        }
        let state = block_on(docs.private_fetch(&host)).unwrap();
        let table = state.records.unwrap();
        assert_eq!((table.rows, state.failures, state.ended), (10, 0, false));
        assert!(table.place_bytes >= longest && table.seconds <= table.seconds_of_ten);
    }
}

#[test]
fn hits_bring_their_documents_in_private_without_being_told_to() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), documents(&[30_000; 40], 1));
    let auto = Parts { records: true, ..Parts::default() };
    let seen = view(|host| {
        let found = block_on(docs.query(host, wanted(5, 7, auto))).unwrap();
        assert_eq!(found.hits[0].len(), 7);
        assert!(found.hits[0].iter().all(|hit| hit.row.document.is_some()));
    });
    let fetches = seen.iter().filter(|(what, ..)| what.contains("/fetch/records/"));
    assert_eq!(fetches.count(), 1);
    assert!(seen.iter().all(|(what, ..)| !what.contains("/segments/")));
    // Several queries' hits share a fetch.
    let two = QueryRequest { embeddings: vectors(2, D, 5), ..wanted(5, 4, auto) };
    let found = block_on(docs.query(&host, two.clone())).unwrap();
    let plain = block_on(docs.query(&host, QueryRequest { parts: PLAIN, ..two })).unwrap();
    assert_eq!(found, plain);
    // All that there is is kept here now: nothing is fetched.
    let client = server.client(&keys());
    let seen = view(|host| {
        let docs = block_on(client.get_collection(host, "docs", false, None)).unwrap();
        let read = get(&docs, host, &[1002], PLAIN).unwrap();
        assert_ne!(read, get(&docs, host, &[1003], auto).unwrap());
    });
    assert!(seen.iter().all(|(what, ..)| !what.contains("/fetch/")), "{seen:?}");
}

/// Of a small collection all rows are read, once, whichever are wanted: also where the server says that one of its blobs has changed.
#[test]
fn little_is_read_whole_whichever_rows_are_wanted() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    let docs = filled(&client, &host, &sealed("docs"), documents(&[300; 3], 1));
    for seed in 2..5 {
        block_on(docs.add(&host, documents(&[300; 3], seed))).unwrap();
    }
    let bytes = block_on(docs.info(&host, None)).unwrap().segments[1].bytes["records"];
    let auto = Parts { records: true, ..Parts::default() };
    let vectors_too = Parts { embeddings: true, ..auto };
    let views = [&[1000][..], &[4001, 2002], &[3000, 3001, 3002]].map(|ids| {
        view(|host| {
            let docs = block_on(client.get_collection(host, "docs", false, None)).unwrap();
            let found = get(&docs, host, ids, auto).unwrap();
            assert_eq!(found, get(&docs, host, ids, auto).unwrap());
            assert_eq!(found, get(&docs, host, ids, PLAIN).unwrap());
            let found = get(&docs, host, ids, vectors_too).unwrap();
            let plain = get(&docs, host, ids, Parts { fetch: Fetch::Segments, ..vectors_too });
            assert_eq!(found, plain.unwrap());
        })
    });
    assert_eq!(views[0], views[1]);
    assert_eq!(views[0], views[2]);
    assert!(views[0].iter().all(|(what, ..)| !what.contains("/fetch/")), "{:?}", views[0]);
    // Each blob of each of four segments once, in as many requests as there are kinds: sidecars, records, vectors.
    let read = |(what, ..): &&(String, usize, String)| {
        what.contains("blobs") || what.contains("/segments/")
    };
    assert_eq!(views[0].iter().filter(read).count(), 3, "{:?}", views[0]);
    let (from, to) = (format!("\"records\":{bytes}"), format!("\"records\":{}", bytes - 1));
    let lies = [1000, 2000, 3000].map(|id| {
        let seen = RefCell::new(Vec::new());
        let lying = Faulty::altering(|path, body| {
            seen.borrow_mut().push(path.to_owned());
            match String::from_utf8(body) {
                Ok(body) if body.contains(&from) => body.replacen(&from, &to, 1).into_bytes(),
                Ok(body) => body.into_bytes(),
                Err(error) => error.into_bytes(),
            }
        });
        let docs = block_on(client.get_collection(&lying, "docs", false, None)).unwrap();
        let _ = get(&docs, &lying, &[id], auto);
        let _ = get(&docs, &lying, &[id], auto);
        seen.take()
    });
    assert_eq!(lies[0], lies[1]);
    assert_eq!(lies[0], lies[2]);
    assert!(!lies[0].is_empty());
}

/// Whatever is asked for, and however much of it there is below the bound, requests have equal paths, lengths, headers and order.
#[test]
fn a_server_sees_the_same_of_any_rows() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    let docs = filled(&client, &host, &sealed("docs"), documents(&[9; 60], 1));
    block_on(docs.add(&host, rows(1, D, 2))).unwrap();
    let alone = 2000;
    // Keys and the table are there from now on.
    get(&docs, &host, &[1000], PRIVATE).unwrap();
    block_on(docs.query(&host, wanted(1, 1, PRIVATE))).unwrap();
    let one: Vec<_> = [1000, 1059, alone, 77]
        .map(|id| view(|host| drop(get(&docs, host, &[id], PRIVATE).unwrap())))
        .into();
    let ten: Vec<_> = [vec![1000, 1001], vec![alone; 10], vec![5, 6, 7], (1010..1020).collect()]
        .map(|ids| view(|host| drop(get(&docs, host, &ids, PRIVATE).unwrap())))
        .into();
    let hundred: Vec<_> = [(1000..1011).collect::<Vec<_>>(), vec![alone; 100], vec![5; 60]]
        .map(|ids| view(|host| drop(get(&docs, host, &ids, PRIVATE).unwrap())))
        .into();
    for same in [&one, &ten, &hundred] {
        assert!(same.iter().all(|view| *view == same[0]), "{same:?}");
    }
    let fetches = |view: &[(String, usize, String)]| {
        view.iter().filter(|(what, ..)| what.contains("/fetch/")).count()
    };
    assert_eq!([&one, &ten, &hundred].map(|views| fetches(&views[0])), [1, 1, 10]);
    // Hits, and none.
    let asked = |within: f64| {
        let asked = QueryRequest { within: Some(within), ..wanted(1, 10, PRIVATE) };
        view(|host| drop(block_on(docs.query(host, asked)).unwrap()))
    };
    let lengths = |view: Vec<(String, usize, String)>| {
        // Each view remembers nothing of the one before, and so may begin a query key.
        let asked = view.into_iter().filter(|(what, ..)| !what.ends_with("/query-keys"));
        asked.map(|(what, length, _)| (what, length)).collect::<Vec<_>>()
    };
    let (all, none) = (lengths(asked(3.0)), lengths(asked(-1.0)));
    assert_eq!(all, none);
    assert!(all.iter().any(|(what, _)| what.contains("/fetch/")));
}

#[test]
fn rows_change_between_fetches_and_between_a_query_and_its_fetch() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), rows(20, D, 1));
    let (other_host, _) = connection();
    let other = server.client(&keys());
    let other = block_on(other.get_collection(&other_host, "docs", false, None)).unwrap();
    let same = |ids: &[i64]| {
        let private = get(&docs, &host, ids, PRIVATE).unwrap();
        assert_eq!(private, get(&other, &other_host, ids, PLAIN).unwrap());
        private.rows.len()
    };
    assert_eq!(same(&[1000, 1001, 1002]), 3);
    // Deleted rows keep their places, and updated ones get others.
    let which = Selection { ids: Some(vec![Id::from(1001)]), ..Selection::default() };
    block_on(other.delete(&other_host, &which, false)).unwrap();
    assert_eq!(same(&[1000, 1001, 1002]), 2);
    let changed = Records {
        ids: vec![Id::from(1002)],
        embeddings: Vec::new(),
        metadatas: vec![Some("{\"n\":5.0}".to_owned())],
        documents: vec![Some("another".to_owned())],
        ..Records::default()
    };
    block_on(other.update(&other_host, changed, None, &[])).unwrap();
    assert_eq!(same(&[1000, 1002]), 2);
    let found = get(&docs, &host, &[1002], PRIVATE).unwrap();
    assert_eq!(found.rows[0].document.as_deref(), Some("another"));
    block_on(other.optimize(&other_host, true)).unwrap();
    assert_eq!(same(&[1000, 1002, 1019]), 3);
    // Others commit while the query is answered. The table that a server has still gives what was found; where it made none, all is asked
    // again.
    let before = block_on(other.query(&other_host, wanted(5, 9, PLAIN))).unwrap();
    let (once, seed) = (RefCell::new(true), Cell::new(3));
    let busy = Faulty::new(|_, request: &Request<'_>| {
        if request.url.contains("/fetch/records/") && once.replace(false) {
            block_on(other.add(&other_host, rows(5, D, seed.get()))).unwrap();
        }
        None
    });
    let asked = || block_on(docs.query(&busy, wanted(5, 9, PRIVATE))).unwrap();
    assert_eq!(asked(), before);
    assert!(!once.replace(true));
    seed.set(4);
    let after = asked();
    assert!(!*once.borrow());
    assert_eq!(after, block_on(other.query(&other_host, wanted(5, 9, PLAIN))).unwrap());
    assert_eq!(block_on(docs.count(&host)).unwrap(), 29);
}

#[test]
fn rows_of_writers_and_vectors_as_they_were_put_in_are_fetched() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    let docs = filled(&client, &host, &sealed("docs"), rows(12, D, 1));
    let both =
        |fetch| Parts { records: true, embeddings: true, multi: false, sparse: false, fetch };
    let private = get(&docs, &host, &[1003, 1000], both(Fetch::Private)).unwrap();
    assert_eq!(private, get(&docs, &host, &[1003, 1000], both(Fetch::Segments)).unwrap());
    assert_eq!(private.rows[0].embedding.as_deref(), Some(&vectors(12, D, 1)[3 * D..4 * D]));
    let (card, fingerprint) = block_on(docs.writer_card(&host, "alice")).unwrap();
    let writer = Writer::new(&card, Some(&fingerprint)).unwrap();
    let (batch, _) = writer.seal(&host, rows(3, D, 4)).unwrap();
    block_on(writer.send(&host, &server.url, None, false, &batch)).unwrap();
    let private = get(&docs, &host, &[4001, 1002, 4000], PRIVATE).unwrap();
    assert_eq!(private, get(&docs, &host, &[4001, 1002, 4000], PLAIN).unwrap());
    // A writer's vectors are its word, and come of their segments alone.
    let refused = get(&docs, &host, &[1000], both(Fetch::Private));
    assert!(
        matches!(&refused, Err(Error::Input(says)) if says.contains("not kept")),
        "{refused:?}"
    );
}

#[test]
fn what_can_t_be_private_is_refused_by_name_before_anything_is_asked() {
    let server = Server::start();
    let (host, _) = connection();
    let client = server.client(&keys());
    let choices = Choices { originals: Some(false), ..sealed("docs") };
    let docs = filled(&client, &host, &choices, documents(&[60_000; 20], 1));
    let auto = Parts { records: true, ..Parts::default() };
    let vectors_too = Parts { embeddings: true, ..auto };
    let seen = view(|host| {
        let many = get(&docs, host, &(0..101).collect::<Vec<_>>(), auto);
        let vectors = block_on(docs.query(host, wanted(1, 3, vectors_too)));
        for refused in [many.map(drop), vectors.map(drop)] {
            let Err(Error::Input(says)) = refused else { panic!("{refused:?}") };
            assert!(
                says.contains("fetch \"segments\"") && says.contains("fetch \"rows\""),
                "{says}"
            );
        }
    });
    assert!(seen.iter().all(|(what, ..)| !what.contains("query") && !what.contains("/fetch")));
    // Without ids or a filter nothing of the rows is secret.
    let all = block_on(docs.get(&host, &Selection::default(), auto, 0, None, None)).unwrap();
    assert_eq!(all.rows.len(), 20);
    // One record that is too long for any table, whoever asks for which.
    block_on(docs.add(&host, documents(&[300_000], 2))).unwrap();
    let (elsewhere, _) = connection();
    let refused = get(&docs, &elsewhere, &[1000], auto);
    assert!(matches!(&refused, Err(Error::Input(says)) if says.contains("286716")), "{refused:?}");
    assert_eq!(get(&docs, &host, &[2000], PLAIN).unwrap().rows.len(), 1);
    // A mode that shows the server its queries hides no hits.
    let open = Choices { mode: Mode::SealedIndex, ..sealed("index") };
    let index = filled(&client, &host, &open, rows(9, D, 1));
    let seen = view(|host| drop(block_on(index.query(host, wanted(1, 3, auto))).unwrap()));
    assert!(seen.iter().all(|(what, ..)| !what.contains("/fetch/")));
    assert_eq!(
        get(&index, &host, &[1000], PRIVATE).unwrap(),
        get(&index, &host, &[1000], PLAIN).unwrap()
    );
    let none = block_on(client.create_collection(&host, &sealed("none"))).unwrap();
    assert!(get(&none, &host, &[1], auto).unwrap().rows.is_empty());
}

/// A server that answers with something else, from another table of the same shape: the very failure of a changed record.
/// A long row has a place in a table of its own, and leaves those of the others short; which table a row is in shows in no request.
#[test]
fn long_rows_leave_others_short_and_do_not_show() {
    let server = Server::start();
    let (host, _) = connection();
    let mut lengths: Vec<usize> = (0..80).map(|row| row % 50).collect();
    (lengths[5], lengths[60]) = (60_000, 55_000);
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), documents(&lengths, 0));
    let all: Vec<i64> = (0..80).collect();
    for ids in [&[0][..], &[5], &[60], &[5, 60], &[4, 60, 79, 5, 5, 77], &all] {
        let private = get(&docs, &host, ids, PRIVATE).unwrap();
        assert_eq!(private, get(&docs, &host, ids, PLAIN).unwrap(), "{ids:?}");
    }
    let table = block_on(docs.private_fetch(&host)).unwrap().records.unwrap();
    assert_eq!((table.rows, table.long_rows), (80, 2));
    assert!(table.place_bytes < 200 && table.long_place_bytes >= 60_000, "{table:?}");
    // Of one width they take 80 times nine polynomials.
    assert!(table.table_bytes < 40 * 9 * 25_600, "{table:?}");
    for same in [
        vec![vec![0], vec![5], vec![60], vec![777]],
        vec![vec![0, 1], vec![5, 60], vec![60; 10], (1..8).collect()],
    ] {
        let views: Vec<_> = same
            .iter()
            .map(|ids| view(|host| drop(get(&docs, host, ids, PRIVATE).unwrap())))
            .collect();
        assert!(views.iter().all(|view| *view == views[0]), "{views:?}");
        let fetches = views[0].iter().filter(|(what, ..)| what.contains("/fetch/")).count();
        assert_eq!(fetches, 2, "one from each table");
    }
    // Rows that come and go make other tables, whose rows come as they are.
    let ids = [5, 79].map(Id::from).into();
    let which = Selection { ids: Some(ids), ..Selection::default() };
    assert_eq!(block_on(docs.delete(&host, &which, false)).unwrap(), 2);
    block_on(docs.add(&host, documents(&[70_000, 3], 7))).unwrap();
    for ids in [&[60, 7000][..], &[7001, 0, 5]] {
        let private = get(&docs, &host, ids, PRIVATE).unwrap();
        assert_eq!(private, get(&docs, &host, ids, PLAIN).unwrap(), "{ids:?}");
    }
}

#[test]
fn one_failure_ends_private_fetches_for_good_and_shows_in_no_request() {
    let (keys, server) = (keys(), Server::start());
    let (host, _) = connection();
    // Of one polynomial each: the answers to all of one are the same.
    let docs = filled(&server.client(&keys), &host, &sealed("docs"), documents(&[5000; 9], 1));
    let open = |host: &dyn Host, client: &Client| {
        block_on(client.get_collection(host, "docs", false, None)).unwrap()
    };
    // An answer to another query of the same length.
    let stale = RefCell::new(None::<Vec<u8>>);
    let swapping = Faulty::altering(|path, body| {
        if !path.contains("/fetch/records/") {
            return body;
        }
        let mut kept = stale.borrow_mut();
        kept.get_or_insert(body).clone()
    });
    let victim = open(&swapping, &server.client(&keys));
    assert_eq!(get(&victim, &swapping, &[1000, 1001], PRIVATE).unwrap().rows.len(), 2);
    let before = swapping.sent.get();
    let failed = get(&victim, &swapping, &[1002, 1003], PRIVATE);
    assert!(matches!(failed, Err(Error::FetchEnded(_))), "{failed:?}");
    // The listing and the one fetch: as many as of one that succeeds, and none after it.
    let honest = view(|host| drop(get(&docs, host, &[1000, 1001], PRIVATE).unwrap()));
    assert!(swapping.sent.get() - before <= honest.len());
    let sent = swapping.sent.get();
    let again = get(&victim, &swapping, &[1000], PRIVATE);
    let Err(Error::Input(says)) = again else { panic!("{again:?}") };
    assert!(says.contains("(1 so far)") && says.contains("resume_private_fetch"), "{says}");
    assert!(swapping.sent.get() <= sent + 1, "at most a look at the listing");
    let found = block_on(victim.query(&swapping, wanted(1, 3, PRIVATE)));
    assert!(matches!(found, Err(Error::Input(_))), "{found:?}");
    // Other ways are there still, and it goes on when it is told to, counted.
    assert_eq!(get(&victim, &swapping, &[1002], PLAIN).unwrap().rows.len(), 1);
    block_on(victim.resume_private_fetch(&swapping)).unwrap();
    *stale.borrow_mut() = None;
    assert_eq!(get(&victim, &swapping, &[1002], PRIVATE).unwrap().rows.len(), 1);
    assert_eq!(block_on(victim.private_fetch(&swapping)).unwrap().failures, 1);
}

#[test]
fn what_one_process_saw_fail_the_next_one_of_the_user_knows() {
    let (keys, server) = (keys(), Server::start());
    let (host, _) = connection();
    let docs = filled(&server.client(&keys), &host, &sealed("docs"), documents(&[9; 30], 1));
    let cutting = Faulty::altering(|path, mut body| {
        if path.contains("/fetch/records/") {
            body.truncate(body.len() / 2);
        }
        body
    });
    let open = || block_on(server.client(&keys).get_collection(&cutting, "docs", false, None));
    let first = open().unwrap();
    assert!(matches!(get(&first, &cutting, &[1002], PRIVATE), Err(Error::FetchEnded(_))));
    let next = open().unwrap();
    let state = block_on(next.private_fetch(&cutting)).unwrap();
    assert_eq!((state.failures, state.ended), (1, true));
    assert!(matches!(get(&next, &cutting, &[1002], PRIVATE), Err(Error::Input(_))));
    // Of another user nothing failed.
    assert!(!block_on(docs.private_fetch(&host)).unwrap().ended);
}

/// What a server says of a blob's records is long before it is true.
#[test]
fn a_head_of_records_that_says_too_much_is_refused() {
    let server = Server::start();
    let (host, _) = connection();
    drop(filled(&server.client(&keys()), &host, &sealed("docs"), documents(&[9; 4], 1)));
    let by_row = Parts { fetch: Fetch::Rows, ..PRIVATE };
    // Offsets of the rows, behind 16 bytes of the head: so that lengths of rows before add up to more than there is, and one alone.
    for offsets in [[0, u64::MAX, 0, u64::MAX, 0], [0, 1 << 40, 1 << 41, 1 << 42, 1 << 43]] {
        let most = Cell::new(0);
        let lying = Faulty::altering(|path, mut body| {
            if path.ends_with("/records") {
                most.set(most.get().max(body.len()));
                let words = body.get_mut(16..).unwrap_or_default().chunks_exact_mut(8);
                words.zip(offsets).for_each(|(word, to)| word.copy_from_slice(&to.to_le_bytes()));
            }
            body
        });
        let docs = block_on(server.client(&keys()).get_collection(&lying, "docs", false, None));
        let refused = get(&docs.unwrap(), &lying, &[1003], by_row);
        assert!(
            matches!(&refused, Err(Error::Corrupt(says)) if says.contains("row 3")),
            "{refused:?}"
        );
        assert_eq!(most.get(), 56, "the head alone was read");
    }
}

/// A writer who seals what is no record is found out like a server that changes one, and as rarely.
#[test]
fn a_writers_row_that_is_no_record_ends_private_fetches() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), documents(&[9; 4], 1));
    let (card, _) = block_on(docs.writer_card(&host, "mallory")).unwrap();
    let sealer = SealingWriter::new(WriterCard::from_bytes(&card).unwrap()).unwrap();
    let payloads = vec![b"{\"document\":\"good\"}".to_vec(), b"{\"document\":".to_vec()];
    let ids = [Id::from(1), Id::from(2)];
    let now = host.clock().as_millis() as u64;
    let WrittenSegment { sealed, records, wrap } =
        sealer.seal(&vectors(2, D, 3), &ids, payloads, 2, now).unwrap();
    let blobs = [
        ("rows", sealed.segment.to_vec()),
        ("sidecar", sealed.sidecar),
        ("records", records.unwrap()),
        ("wrap", wrap),
    ];
    let named: Vec<_> = blobs
        .iter()
        .map(|(name, bytes)| serde_json::json!({"name": name, "length": bytes.len()}))
        .collect();
    let change = serde_json::json!({
        "add": [{"id": sealed.id.to_string(), "rows": 2, "blobs": named}],
        "remove": [], "delete_rows": {}, "attachments": [], "drop_attachments": [],
    })
    .to_string();
    let mut batch = b"CVCHANGE".to_vec();
    batch.extend(1u32.to_le_bytes());
    batch.extend((change.len() as u32).to_le_bytes());
    batch.extend(change.as_bytes());
    batch.extend(blobs.iter().flat_map(|(_, bytes)| bytes));
    let writer = Writer::new(&card, None).unwrap();
    block_on(writer.send(&host, &server.url, None, false, &batch)).unwrap();
    let good = get(&docs, &host, &[1, 1000], PRIVATE).unwrap();
    assert_eq!(good.rows[0].document.as_deref(), Some("good"));
    let failed = get(&docs, &host, &[2, 1000], PRIVATE);
    assert!(matches!(failed, Err(Error::FetchEnded(_))), "{failed:?}");
    let state = block_on(docs.private_fetch(&host)).unwrap();
    assert_eq!((state.failures, state.ended), (1, true));
}

#[test]
fn keys_that_a_server_let_go_of_are_brought_again() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), rows(9, D, 1));
    get(&docs, &host, &[1000], PRIVATE).unwrap();
    let data = server.folder.path().join("db");
    let copied = tempfile::tempdir().unwrap();
    copy(&data, copied.path());
    let server = Server::start_on(server, copied.path());
    let seen = view(|host| drop(get(&docs, host, &[1000, 1004], PRIVATE).unwrap()));
    assert!(
        seen.iter().any(|(what, length, _)| what.contains("/fetch-keys") && *length == 819_780)
    );
    drop(server);
}

#[test]
fn everybodys_records_are_read_at_once_whichever_are_wanted() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &sealed("docs"), rows(3, D, 0));
    for seed in 1..4 {
        block_on(docs.add(&host, rows(3, D, seed))).unwrap();
    }
    let options = ClientOptions {
        keys: Some(keys().into()),
        fetch: Fetch::Collection,
        ..ClientOptions::new(server.url.clone())
    };
    let by_client = Client::new(options).unwrap();
    let by_call = server.client(&keys());
    let all = Parts { fetch: Fetch::Collection, ..PLAIN };
    for (client, parts) in [(&by_call, all), (&by_client, Parts { fetch: Fetch::Auto, ..PLAIN })] {
        let views = [&[1][..], &[3001, 1002], &[2000]].map(|ids| {
            view(|host| {
                let docs = block_on(client.get_collection(host, "docs", false, None)).unwrap();
                let found = get(&docs, host, ids, parts).unwrap();
                let says = found.rows.iter().map(|row| row.document.clone());
                let expected =
                    ids.iter().map(|id| Some(format!("row {} of {}", id % 1000, id / 1000)));
                assert_eq!(says.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                get(&docs, host, &[3000, 2], parts).unwrap();
            })
        });
        assert_eq!(views[0], views[1]);
        assert_eq!(views[0], views[2]);
        let read = |(what, ..): &&(String, usize, String)| what.contains("blobs");
        assert_eq!(views[0].iter().filter(read).count(), 2, "sidecars, and records");
    }
    // A filter that is tested here, and changes, read them too.
    let seen = view(|host| {
        let docs = block_on(by_client.get_collection(host, "docs", false, None)).unwrap();
        let even = Selection { filter: Some("{\"even\":true}".to_owned()), ..Selection::default() };
        block_on(docs.delete(host, &even, false)).unwrap();
    });
    assert!(!seen.iter().any(|(what, ..)| what.ends_with("/records")), "{seen:?}");
}
