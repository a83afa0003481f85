//! Private fetch: offers, keys by token, tables that come and go, and bytes that are no query.

use crate::support::Client;
use crate::support::http::{Reply, Site, frame, make_token};
use axum::body::Body;
use ciphervec_owner::fetch::{FetchSession, FetchedRows, sealed_row};
use ciphervec_owner::protect::records::{Place, RecordBatch, seal_records};
use ciphervec_owner::store::Change;
use ciphervec_owner::{Id, Mode, Precision, Scheme, SegmentId};
use ciphervec_server::auth::Verb;

const KIND: (Mode, Precision, Scheme) = (Mode::Sealed, Precision::Standard, Scheme::Lattice);
const COLLECTION: &str = "/v1/collections/faces";

/// A collection, what its owner knows of its records, and how to ask.
struct Shelf {
    site: Site,
    client: Client,
    segments: Vec<(SegmentId, u32, Vec<u8>)>,
}

impl Shelf {
    async fn new(site: Site, token: &str) -> Self {
        let client = Client::new("faces", KIND);
        let attachments = client.attachments();
        let change = Change { set_meta: Some(client.meta()), attachments, ..Change::default() };
        let made = site.send("PUT", COLLECTION, &headers(token), frame(&change)).await;
        assert_eq!(made.status, 201);
        Shelf { site, client, segments: Vec::new() }
    }

    /// Rows with records of these lengths, or without records.
    async fn add(&mut self, token: &str, lengths: &[usize], records: bool) {
        let mut change = self.client.add(lengths.len());
        let id = change.add[0].id;
        let binding = self.client.owner.spec().binding();
        let rows: Vec<(Id, Vec<u8>)> = lengths
            .iter()
            .enumerate()
            .map(|(row, length)| (Id::from(row as i64), vec![row as u8; *length]))
            .collect();
        let place = Place { collection: &binding, segment: &id };
        let sealed = seal_records(self.client.owner.aead(), place, &rows).unwrap();
        if records {
            change.add[0].blobs.push(("records".to_owned(), sealed.clone()));
        }
        let path = format!("{COLLECTION}/commits");
        let reply = self.site.send("POST", &path, &headers(token), frame(&change)).await;
        assert_eq!(reply.status, 200);
        let sealed = if records { sealed } else { Vec::new() };
        self.segments.push((SegmentId(id), lengths.len() as u32, sealed));
    }

    fn rows(&self) -> FetchedRows {
        let segments = self.segments.iter().map(|(id, rows, _)| (*id, *rows));
        FetchedRows::new(&self.client.owner.spec().binding(), "records", segments)
    }

    async fn offer(&self, token: &str) -> Reply {
        let path = format!("{COLLECTION}/fetch/records");
        self.site.send("GET", &path, &headers(token), Body::empty()).await
    }

    async fn bring(&self, token: &str, keys: &[u8]) -> Reply {
        let path = format!("{COLLECTION}/fetch-keys");
        self.site.send("PUT", &path, &headers(token), keys.to_vec()).await
    }

    async fn ask(&self, token: &str, table: &[u8; 16], query: &[u8]) -> Reply {
        let table: String = table.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("{COLLECTION}/fetch/records/{table}");
        self.site.send("POST", &path, &headers(token), query.to_vec()).await
    }
}

fn headers(token: &str) -> [(&str, &str); 1] {
    [("authorization", token)]
}

fn kind(reply: &Reply) -> (u16, String) {
    let kind = reply.json()["type"].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), kind.trim_start_matches("urn:ciphervec:").to_owned())
}

#[tokio::test]
async fn rows_are_fetched_as_they_lie_in_segments_by_the_token_that_brought_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let bearer = |verb| format!("Bearer {}", *make_token(&file, "faces", &[verb]).token);
    let (admin, reader, other) = (bearer(Verb::Admin), bearer(Verb::Read), bearer(Verb::Read));
    let device = bearer(Verb::Query);
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let mut shelf = Shelf::new(site, &admin).await;
    assert_eq!(kind(&shelf.offer(&reader).await), (422, "limit".into()), "there are no rows");
    shelf.add(&admin, &[10, 0, 984, 300], true).await;
    shelf.add(&admin, &[5; 3], false).await;
    shelf.add(&admin, &[900; 2], true).await;
    assert_eq!(shelf.offer(&device).await.status, 403);
    let said = shelf.offer(&reader).await.json();
    let rows = shelf.rows();
    let name: String = rows.name().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(said["table"].as_str(), Some(name.as_str()));
    // 984 bytes, 40 of the seal and 4 of the length: six rows a polynomial.
    assert_eq!((said["rows"].as_u64(), said["place_bytes"].as_u64()), (Some(9), Some(1194)));
    assert!(said["seconds"].as_f64().unwrap() > 0.0);
    let shape = rows.shape(1194).unwrap();
    let binding = shelf.client.owner.spec().binding();
    let mut session = FetchSession::begin(&shelf.client.keys, &binding).unwrap();
    let places: Vec<usize> = (0..9).collect();
    let (asked, query) = session.ask(&shape, &places, 10).unwrap();
    let missing = shelf.ask(&reader, rows.name(), &query).await;
    assert_eq!(kind(&missing), (409, "fetch-keys-missing".into()));
    assert_eq!(shelf.bring(&device, session.evaluation_keys()).await.status, 403);
    for _ in 0..2 {
        assert_eq!(shelf.bring(&reader, session.evaluation_keys()).await.status, 204);
    }
    let answer = shelf.ask(&reader, rows.name(), &query).await;
    assert_eq!(answer.status, 200);
    let stored = |place: usize| {
        let (at, row) = rows.row(place).unwrap();
        let id = rows.segments().nth(at).unwrap();
        let (_, _, bytes) = shelf.segments.iter().find(|(one, ..)| *one == id).unwrap();
        let batch = (!bytes.is_empty()).then(|| RecordBatch::parse(bytes).unwrap());
        batch.and_then(|batch| batch.ciphertext(row).map(<[u8]>::to_vec)).unwrap_or_default()
    };
    let opened = session.open_with(&asked, &answer.body, |_, row| Some(sealed_row(row)?.to_vec()));
    assert_eq!(opened.unwrap(), (0..9).map(stored).collect::<Vec<_>>());
    // What one token has brought serves no other.
    let missing = shelf.ask(&other, rows.name(), &query).await;
    assert_eq!(kind(&missing), (409, "fetch-keys-missing".into()));
    // Another table of the same rows there is not; that of the state before answers as long as it is kept.
    let mut wrong = *rows.name();
    wrong[0] ^= 1;
    let gone = shelf.ask(&reader, &wrong, &query).await;
    assert_eq!(kind(&gone), (410, "fetch-table-gone".into()));
    shelf.add(&admin, &[3], true).await;
    assert_eq!(shelf.ask(&reader, rows.name(), &query).await.body.len(), answer.body.len());
    let metrics = shelf.site.send("GET", "/metrics", &headers(&admin), Body::empty()).await;
    assert!(!String::from_utf8_lossy(&metrics.body).contains(&name));
}

#[tokio::test]
async fn what_is_no_query_no_key_and_no_table_is_refused() {
    let site = Site::on(tempfile::tempdir().unwrap(), &[]);
    let mut shelf = Shelf::new(site, "").await;
    shelf.add("", &[50; 4], true).await;
    let rows = shelf.rows();
    let shape = rows.shape(rows_len(&shelf).await).unwrap();
    let binding = shelf.client.owner.spec().binding();
    let mut session = FetchSession::begin(&shelf.client.keys, &binding).unwrap();
    let keys = session.evaluation_keys().to_vec();
    for bad in [&keys[..keys.len() - 1], b"no keys", &[]] {
        assert_eq!(shelf.bring("", bad).await.status, 400);
    }
    let mut long = keys.clone();
    long.resize(2 << 20, 0);
    assert!([400, 413].contains(&shelf.bring("", &long).await.status.as_u16()));
    assert_eq!(shelf.bring("", &keys).await.status, 204);
    let (_, query) = session.ask(&shape, &[1], 1).unwrap();
    for at in (0..query.len()).step_by(query.len() / 40) {
        let mut bad = query.clone();
        bad[at] ^= 1;
        let reply = shelf.ask("", rows.name(), &bad).await;
        assert!([400, 409].contains(&reply.status.as_u16()), "byte {at}: {}", reply.status);
    }
    for bad in [&query[..query.len() - 1], b"", &query[..60]] {
        assert_eq!(shelf.ask("", rows.name(), bad).await.status, 400);
    }
    // Of another shape, and of keys of another owner under the same epoch.
    let other = FetchedRows::new(&binding, "records", [(SegmentId([1; 16]), 4)]);
    let (_, foreign) = session.ask(&other.shape(shape.record_len()).unwrap(), &[1], 1).unwrap();
    assert_eq!(shelf.ask("", rows.name(), &foreign).await.status, 400);
    for blob in ["rows", "sidecar", "nothing"] {
        let path = format!("{COLLECTION}/fetch/{blob}");
        assert_eq!(shelf.site.send("GET", &path, &[], Body::empty()).await.status, 404);
    }
    assert_eq!(shelf.ask("", rows.name(), &query).await.status, 200);
    // One record that is too long ends the offer, and says by how much.
    shelf.add("", &[286_677], true).await;
    let refused = shelf.offer("").await;
    assert_eq!(kind(&refused), (422, "limit".into()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("286716"));
}

/// One of those who may only add rows does not end the fetches of the others'.
#[tokio::test]
async fn a_segment_whose_records_are_none_has_empty_places_and_ends_no_offer() {
    let site = Site::on(tempfile::tempdir().unwrap(), &[]);
    let mut shelf = Shelf::new(site, "").await;
    shelf.add("", &[50; 4], true).await;
    let offered = shelf.offer("").await.json()["place_bytes"].as_u64();
    let batch = |offsets: [u64; 3], rest: usize| {
        let mut bytes = b"CVRECORD".to_vec();
        bytes.extend([2u32, 2].map(u32::to_le_bytes).concat());
        bytes.extend(offsets.map(u64::to_le_bytes).concat());
        bytes.resize(bytes.len() + rest, 7);
        bytes
    };
    let mut longer = batch([0, 900, 1800], 1800);
    longer[12] = 200; // of more rows than the segment's
    let none = b"CVRECORD, no more".to_vec();
    for bad in [none, longer, batch([0, 1 << 62, 1 << 63], 90), batch([0, 90, 40], 90)] {
        let mut change = shelf.client.add(2);
        let id = change.add[0].id;
        change.add[0].blobs.push(("records".to_owned(), bad));
        let path = format!("{COLLECTION}/commits");
        assert_eq!(shelf.site.send("POST", &path, &[], frame(&change)).await.status, 200);
        shelf.segments.push((SegmentId(id), 2, Vec::new()));
    }
    let said = shelf.offer("").await;
    assert_eq!((said.status.as_u16(), said.json()["place_bytes"].as_u64()), (200, offered));
    let rows = shelf.rows();
    let shape = rows.shape(rows_len(&shelf).await).unwrap();
    let binding = shelf.client.owner.spec().binding();
    let mut session = FetchSession::begin(&shelf.client.keys, &binding).unwrap();
    assert_eq!(shelf.bring("", session.evaluation_keys()).await.status, 204);
    let mut lengths = Vec::new();
    for places in [0..6, 6..12].map(Vec::from_iter) {
        let (asked, query) = session.ask(&shape, &places, 10).unwrap();
        let answer = shelf.ask("", rows.name(), &query).await;
        assert_eq!(answer.status, 200);
        let opened = session.open_with(&asked, &answer.body, |_, row| Some(sealed_row(row)?.len()));
        lengths.extend(opened.unwrap());
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [[0; 8].as_slice(), &[90; 4]].concat());
}

async fn rows_len(shelf: &Shelf) -> usize {
    shelf.offer("").await.json()["place_bytes"].as_u64().unwrap() as usize
}

#[tokio::test]
async fn a_table_that_the_memory_budget_has_no_room_for_is_not_offered() {
    let site = Site::on(tempfile::tempdir().unwrap(), &["--memory-budget", "64MiB"]);
    let mut shelf = Shelf::new(site, "").await;
    shelf.add("", &[50; 4], true).await;
    let refused = shelf.offer("").await;
    assert_eq!(kind(&refused), (422, "limit".into()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("--memory-budget"));
}
