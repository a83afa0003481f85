//! Lookups of every released format load forever: the files under `vectors/` answer as they did and open to the same numbers.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_lookup::` writes a folder that is missing (vectors/SOURCES.md).

use ciphervec_owner::lookup::{
    Client, Documents, Options, PADDING, Pooling, Server, Spec, Strategy, Table, Transport,
};
use ciphervec_owner::protect::keyfile::{self, Protection, Sort};
use std::path::PathBuf;

/// Two tables of three rows of two numbers.
const TABLES: [f64; 12] = [1.0, 0.5, -1.0, 0.25, 0.0, 2.0, 4.0, -4.0, 0.5, 0.5, -2.0, 1.0];
/// Rows (0, 1) and (2, 2); padding and rows (1, 0); no token.
const INDICES: [i64; 8] = [0, 1, 2, 2, PADDING, PADDING, 1, 0];
const OFFSETS: [usize; 4] = [0, 2, 4, 4];
/// ((1, ½) + (½, ½) + (0, 2) + (−2, 1)) / 2; (−1, ¼) + (4, −4); nothing.
const MEANS: [f64; 6] = [-0.25, 2.0, 3.0, -3.75, 0.0, 0.0];

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/lookup-histogram"))
        .join(name)
}

fn compact_file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v2/lookup-compact"))
        .join(name)
}

/// A table of four rows, an index in fifteen bits or less.
fn write_compact() {
    let table = Table::new(&[1.0, -2.0, 0.5, 4.0], (1, 4, 1)).unwrap();
    let options = Options {
        strategy: Strategy::Ive,
        pooling: Pooling::None,
        transport: Transport::Compact,
        precision_bits: 8,
        ..Options::default()
    };
    let server = Server::new(table, options).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let query = client.query(&Documents::new(&[3, 0, 1], 1, &[0, 1, 2, 3]).unwrap()).unwrap();
    let secret = client.to_secret_bytes();
    let key = keyfile::encode_secret(&secret, Sort::Scheme, &client.label(), Protection::Plaintext);
    std::fs::create_dir_all(compact_file("")).unwrap();
    let (key, description) = (key.unwrap().to_vec(), server.spec().to_bytes());
    let files = [
        ("plain.key", key),
        ("description", description),
        ("tables", server.to_bytes()),
        ("query", query),
    ];
    files.iter().for_each(|(name, bytes)| std::fs::write(compact_file(name), bytes).unwrap());
}

/// Keys of compact transport are too large to be kept: a server reads the query, and says that it
/// lacks those of this client.
#[test]
fn version_2_reads_as_it_did() {
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !compact_file("").exists() {
        write_compact();
    }
    let get = |name: &str| std::fs::read(compact_file(name)).unwrap();
    let (secret, _) = keyfile::decode_secret(&get("plain.key"), Sort::Scheme, None).unwrap();
    let client = Client::from_secret_bytes(&secret).unwrap();
    let server = Server::from_bytes(&get("tables")).unwrap();
    assert_eq!(server.spec().transport(), Transport::Compact);
    assert_eq!(server.spec().to_bytes(), get("description"));
    assert_eq!((server.spec(), client.spec()), (client.spec(), server.spec()));
    assert_eq!(server.to_bytes(), get("tables"));
    let query = get("query");
    let refused = server.answer(&query).unwrap_err().to_string();
    assert!(refused.contains("register"), "{refused}");
    let fresh = client.query(&Documents::new(&[3], 1, &[0, 1]).unwrap()).unwrap();
    assert!(fresh.len().abs_diff(query.len()) <= 4 && fresh != query);
}

fn write() {
    let table = Table::new(&TABLES, (2, 3, 2)).unwrap();
    let server = Server::new(table, Options { limit: 4, ..Options::default() }).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let query = client.query(&Documents::new(&INDICES, 2, &OFFSETS).unwrap()).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(file("")).unwrap();
        std::fs::write(file(name), bytes).unwrap();
    };
    let secret = client.to_secret_bytes();
    put(
        "plain.key",
        &keyfile::encode_secret(&secret, Sort::Scheme, &client.label(), Protection::Plaintext)
            .unwrap(),
    );
    put("description", &server.spec().to_bytes());
    put("tables", &server.to_bytes());
    put("query", &query);
    put("answer", &server.answer(&query).unwrap());
}

#[test]
fn version_1_answers_and_opens_as_it_did() {
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !file("").exists() {
        write();
    }
    let get = |name: &str| std::fs::read(file(name)).unwrap();
    let (secret, label) = keyfile::decode_secret(&get("plain.key"), Sort::Scheme, None).unwrap();
    let client = Client::from_secret_bytes(&secret).unwrap();
    assert_eq!(client.label(), label);
    let server = Server::from_bytes(&get("tables")).unwrap();
    assert_eq!(server.table().values(), TABLES);
    assert_eq!(server.spec(), &Spec::from_bytes(&get("description")).unwrap());
    assert_eq!(server.spec(), client.spec());
    assert_eq!(server.to_bytes(), get("tables"));
    // Nothing in an answer is random.
    assert_eq!(server.answer(&get("query")).unwrap(), get("answer"));
    let found = client.decode(&get("answer")).unwrap();
    assert_eq!(found.len(), MEANS.len());
    for (found, expected) in found.iter().zip(MEANS) {
        let error = (found - expected).abs();
        assert!(error <= server.spec().error_bound() && error < 1e-3, "{found} for {expected}");
    }
}

/// A table of release 0.1 that is looked up in token by token: its description stays what it was, and answers of today, which are
/// rounded, are within the bound that it states.
#[test]
fn version_1_of_tokens_keeps_its_bound() {
    let folder =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/lookup-tokens"));
    let get = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (secret, _) = keyfile::decode_secret(&get("plain.key"), Sort::Scheme, None).unwrap();
    let client = Client::from_secret_bytes(&secret).unwrap();
    let server = Server::from_bytes(&get("tables")).unwrap();
    assert_eq!((server.spec().strategy(), server.spec()), (Strategy::OneHot, client.spec()));
    assert_eq!((server.spec().to_bytes(), server.to_bytes()), (get("description"), get("tables")));
    let found = client.decode(&server.answer(&get("query")).unwrap()).unwrap();
    // Rows 2 and 0, padding, and row 1.
    let rows = [-3.0, 0.25, 1.0, -2.5, 0.0, 0.0, 0.5, 4.0];
    assert_eq!(found.len(), rows.len());
    for (found, expected) in found.iter().zip(rows) {
        assert!(
            (found - expected).abs() <= server.spec().error_bound()
                && server.spec().error_bound() < 2e-4
        );
    }
}
