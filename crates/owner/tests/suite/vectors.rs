//! Every released format loads forever: the files under `vectors/` open, and the server's answers to them do not move by a bit.
//!
//! A new format version gets a new folder beside the old one: `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors::`
//! writes the folder of the current version if it is missing (vectors/SOURCES.md).

use crate::pruned::without_rows;
use ciphervec_arith::AlignedBytes;
use ciphervec_owner::search::{
    AnswerFormat, Exactness, Owner, QueryOptions, Retrieval, SegmentDirectory, ServerIndex,
};
use ciphervec_owner::{Error, Id, IndexSpec, Keys, Metric, Mode, Precision, Scheme, SegmentId};
use std::path::PathBuf;

const MASTER: [u8; 32] = *b"a published key protects nothing";
const MODES: [(&str, Mode, Precision); 6] = [
    ("open", Mode::Open, Precision::Standard),
    ("sealed-index", Mode::SealedIndex, Precision::Standard),
    ("sealed-index-small", Mode::SealedIndex, Precision::Small),
    ("sealed-index-wide", Mode::SealedIndex, Precision::Wide),
    ("sealed-query", Mode::SealedQuery, Precision::Standard),
    ("sealed", Mode::Sealed, Precision::Standard),
];
const ROWS: [f32; 9] = [1.0, 0.0, 0.0, 0.6, 0.8, 0.0, -2.0, 1.0, 2.0];
const QUERY: [f32; 3] = [0.0, 3.0, 4.0];
/// |x − q|² of the three rows.
const DISTANCES: [f64; 3] = [26.0, 21.2, 12.0];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1")).join(name)
}

fn ids() -> [Id; 3] {
    [Id::from("one"), Id::from(2), Id::from("three")]
}

fn write(name: &str, mode: Mode, precision: Precision) {
    let spec = IndexSpec::new("vectors", 3, Metric::L2, mode, precision).unwrap();
    let keys = Keys::from_master(MASTER);
    let owner = Owner::new(&keys, spec.clone()).unwrap();
    let mut server = ServerIndex::new(spec.clone()).unwrap();
    let sealed = owner.seal(&ROWS, &ids()).unwrap();
    let mut directory = SegmentDirectory::new();
    directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
    let put = |file: &str, bytes: &[u8]| {
        std::fs::create_dir_all(folder(name)).unwrap();
        std::fs::write(folder(name).join(file), bytes).unwrap();
    };
    if let Some(evaluation) = keys.evaluation(&spec, 5).unwrap() {
        server.set_evaluation_keys(&evaluation.to_bytes()).unwrap();
        put("evaluation-keys", &evaluation.to_bytes());
    }
    put("spec", &spec.to_bytes());
    put("segment", &sealed.segment);
    put("sidecar", &sealed.sidecar);
    let query = owner
        .query(
            &QUERY,
            &directory,
            QueryOptions { epoch: 5, format: AnswerFormat::First, ..QueryOptions::default() },
        )
        .unwrap();
    put("query", query.to_bytes());
    server.add(sealed.segment).unwrap();
    put("response", &server.evaluate(query.to_bytes()).unwrap().bytes);
}

#[test]
fn version_1_opens_and_answers_as_it_did() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, mode, precision) in MODES {
        if writing && !folder(name).exists() {
            write(name, mode, precision);
        }
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        assert_eq!((spec.mode(), spec.precision(), spec.dimension()), (mode, precision, 3));
        assert_eq!(spec.to_bytes(), get("spec"));
        let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        if mode.encrypts_queries() {
            assert_eq!(server.set_evaluation_keys(&get("evaluation-keys")).unwrap(), 5);
        }
        let id: SegmentId = server.add(AlignedBytes::from_slice(&get("segment"))).unwrap();
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, id, &get("sidecar"), &[]).unwrap();
        let answer = server.evaluate(&get("query")).unwrap();
        assert_eq!(answer.bytes, get("response"), "{name}: the server's answer moved");
        // An encrypted query's answer opens with that query alone, so that another one is asked.
        let query = owner
            .query(
                &QUERY,
                &directory,
                QueryOptions { epoch: 5, format: AnswerFormat::First, ..QueryOptions::default() },
            )
            .unwrap();
        let answer = server.evaluate(query.to_bytes()).unwrap();
        let opened = owner.open(&query, &answer.bytes, &directory, Retrieval::TopK(3)).unwrap();
        let found: Vec<&Id> = opened.hits[0].iter().map(|hit| &hit.id).collect();
        let [one, two, three] = &ids();
        assert_eq!(found, [three, two, one], "{name}");
        for (hit, truth) in opened.hits[0].iter().rev().zip(DISTANCES) {
            assert!((hit.value - truth).abs() < 0.01, "{name}: {} {truth}", hit.value);
        }
        let rows = owner.unseal(&get("segment"), &get("sidecar")).unwrap();
        assert!(rows.iter().zip(ROWS).all(|(got, x)| (got - x).abs() < 2e-3), "{name}: {rows:?}");
    }
}

/// Queries and answers of version 2, to the segments of version 1.
#[test]
fn version_2_of_answers_does_not_move() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, mode, _) in MODES.into_iter().filter(|kind| kind.1.encrypts_queries()) {
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        server.set_evaluation_keys(&get("evaluation-keys")).unwrap();
        owner.hold_evaluation(&get("evaluation-keys")).unwrap();
        let id = server.add(AlignedBytes::from_slice(&get("segment"))).unwrap();
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, id, &get("sidecar"), &[]).unwrap();
        let answers = folder("../answers-v2").join(name);
        let files = ["query", "response"].map(|file| answers.join(file));
        let query = owner
            .query(&QUERY, &directory, QueryOptions { epoch: 5, ..QueryOptions::default() })
            .unwrap();
        if writing && !files[0].exists() {
            std::fs::create_dir_all(&answers).unwrap();
            std::fs::write(&files[0], query.to_bytes()).unwrap();
            std::fs::write(&files[1], server.evaluate(query.to_bytes()).unwrap().bytes).unwrap();
        }
        let [sent, answer] = files.map(|file| std::fs::read(file).unwrap());
        assert_eq!(server.evaluate(&sent).unwrap().bytes, answer, "{name} {mode:?}: it moved");
    }
}

/// Halves of answers over the segments of version 1, and the whole that they make.
#[test]
fn version_3_of_answers_does_not_move() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, ..) in MODES.into_iter().filter(|kind| kind.1.encrypts_queries()) {
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        server.set_evaluation_keys(&get("evaluation-keys")).unwrap();
        owner.hold_evaluation(&get("evaluation-keys")).unwrap();
        let id = server.add(AlignedBytes::from_slice(&get("segment"))).unwrap();
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, id, &get("sidecar"), &[]).unwrap();
        let format = AnswerFormat::Short;
        let halves = folder("../answers-v3").join(name);
        let file = |name: &str| halves.join(name);
        let read = |name: &str| std::fs::read(file(name)).unwrap();
        let with = |request, ahead: &[u8]| {
            let tokens = owner.read_tokens(request, ahead, &directory).unwrap();
            owner
                .query(
                    &QUERY,
                    &directory,
                    QueryOptions {
                        epoch: 5,
                        format,
                        tokens: Some(tokens),
                        ..QueryOptions::default()
                    },
                )
                .unwrap()
        };
        let request = owner.request_tokens(1, &directory, 5, format).unwrap();
        if writing && !halves.exists() {
            std::fs::create_dir_all(&halves).unwrap();
            let write = |name: &str, bytes: &[u8]| std::fs::write(file(name), bytes).unwrap();
            write("ahead-query", request.to_bytes());
            write("ahead-response", &server.evaluate(request.to_bytes()).unwrap().bytes);
            let query = with(request, &read("ahead-response"));
            let online = server.evaluate(query.to_bytes()).unwrap().bytes;
            write("online-query", query.to_bytes());
            write("online-response", &online);
            write("whole", &owner.complete(&query, &online).unwrap());
        }
        for half in ["ahead", "online"] {
            let answer = server.evaluate(&read(&format!("{half}-query"))).unwrap().bytes;
            assert_eq!(answer, read(&format!("{half}-response")), "{name}: {half} moved");
        }
        let request = owner.request_tokens(1, &directory, 5, format).unwrap();
        let query = with(request, &read("ahead-response"));
        let whole = owner.complete(&query, &read("online-response")).unwrap();
        assert_eq!(whole, read("whole"), "{name}");
    }
}

/// The second row of each was taken out without a key.
#[test]
fn version_1_of_pruned_segments_opens_and_answers_as_it_did() {
    for (name, mode, precision) in MODES.into_iter().filter(|kind| kind.1 == Mode::SealedIndex) {
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        assert_eq!((spec.mode(), spec.precision()), (mode, precision));
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        // The answer's last bytes are a word for each of the three rows.
        let width = match precision {
            Precision::Standard => 4,
            Precision::Small => 3,
            Precision::Wide => 8,
        };
        let pruned = without_rows(&get("segment"), 3, width, &[false, true, false]);
        assert_eq!(&*pruned, get("pruned"), "{name}");
        let id = server.add(pruned).unwrap();
        let answer = server.evaluate(&get("query")).unwrap().bytes;
        let mut expected = get("response")[64..].to_vec();
        let second = expected.len() - 2 * width;
        expected[second..second + width].fill(0);
        assert_eq!(answer[64..], expected, "{name}: the server's answer moved");
        let owner = Owner::new(&Keys::from_master(MASTER), spec).unwrap();
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, id, &get("sidecar"), &[1]).unwrap();
        let rows = owner.unseal_rows(&get("pruned"), Some(&[0, 2]), &directory).unwrap();
        let unit = [[1.0, 0.0, 0.0], [-2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]].concat();
        assert!(rows.iter().zip(unit).all(|(got, x)| (got - x).abs() < 2e-3), "{name}: {rows:?}");
        // Its owner has deleted another row, or none: then the server had no word to take it out.
        for deleted in [&[2u32][..], &[]] {
            let mut directory = SegmentDirectory::new();
            directory.add(&owner, id, &get("sidecar"), deleted).unwrap();
            assert_eq!(directory.unchecked(&owner).collect::<Vec<_>>(), [id]);
            let opened = owner.unseal_rows(&get("pruned"), Some(&[0]), &directory);
            assert!(matches!(opened, Err(Error::Tampered { .. })), "{name}");
        }
        assert!(matches!(
            owner.unseal(&get("pruned"), &get("sidecar")),
            Err(Error::Tampered { .. })
        ));
    }
}

/// Segments of the compact form with a witness: their values are known to the last bit, whatever noise they were sealed
/// with.
#[test]
fn version_2_of_the_compact_form_opens_exactly() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, mode, precision) in MODES.into_iter().filter(|kind| kind.1 == Mode::SealedIndex) {
        let name = &format!("../v2/{name}");
        if writing && !folder(name).exists() {
            write(name, mode, precision);
        }
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
        let mut server = ServerIndex::new(spec).unwrap();
        let id: SegmentId = server.add(AlignedBytes::from_slice(&get("segment"))).unwrap();
        let mut directory = SegmentDirectory::new();
        assert_eq!(get("sidecar")[8..12], [2, 0, 0, 0]);
        directory.add(&owner, id, &get("sidecar"), &[]).unwrap();
        assert_eq!(directory.exactness(id), Some(Exactness::Exact));
        let answer = server.evaluate(&get("query")).unwrap();
        assert_eq!(answer.bytes, get("response"), "{name}: the server's answer moved");
        let query = owner
            .query(&QUERY, &directory, QueryOptions { epoch: 5, ..QueryOptions::default() })
            .unwrap();
        let opened = owner.open(&query, &answer.bytes, &directory, Retrieval::TopK(3)).unwrap();
        assert!(opened.exact && opened.checked);
        let scale = f64::exp2(match precision {
            Precision::Standard => 15.4,
            Precision::Small => 11.4,
            Precision::Wide => 31.4,
        });
        let norm = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let whole = |row: &[f32]| -> Vec<i64> {
            let factor = 1.0 / norm(row) * scale;
            row.iter().map(|&x| (f64::from(x) * factor).round_ties_even() as i64).collect()
        };
        let rows = owner.unseal(&get("segment"), &get("sidecar")).unwrap();
        for (hit, row) in opened.hits[0].iter().rev().zip([0, 1, 2]) {
            let row = &ROWS[3 * row..][..3];
            let products = whole(row).into_iter().zip(whole(&QUERY)).map(|(x, q)| x * q);
            let cosine = products.sum::<i64>() as f64 / (scale * scale);
            let (x, q) = (f64::from(norm(row) as f32), norm(&QUERY));
            assert_eq!(hit.value, x * x + q * q - 2.0 * x * q * cosine, "{name}");
        }
        let expected = ROWS.chunks_exact(3).flat_map(|row| {
            let norm = norm(row) as f32;
            whole(row).into_iter().map(move |x| (x as f64 * (1.0 / scale)) as f32 * norm)
        });
        assert_eq!(rows, expected.collect::<Vec<f32>>(), "{name}");
    }
}

/// Folders of indexes under additively homomorphic schemes, with the length of the modulus.
const ADDITIVE: [(&str, Scheme, Option<u32>); 2] =
    [("paillier-index", Scheme::Paillier, Some(2048)), ("elgamal-index", Scheme::ElGamal, None)];

fn write_additive(name: &str, scheme: Scheme, bits: Option<u32>) {
    let spec = IndexSpec::new("vectors", 3, Metric::L2, Mode::SealedIndex, Precision::Small)
        .and_then(|spec| spec.with_scheme(scheme, bits))
        .unwrap();
    let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
    owner.generate_key_pair().unwrap();
    let mut server = ServerIndex::new(spec.clone()).unwrap();
    server.set_evaluation_keys(&owner.public_key().unwrap()).unwrap();
    let sealed = owner.seal(&ROWS, &ids()).unwrap();
    let mut directory = SegmentDirectory::new();
    directory.add(&owner, sealed.id, &sealed.sidecar, &[]).unwrap();
    let query = owner.query(&QUERY, &directory, QueryOptions::default()).unwrap();
    server.add(sealed.segment.clone()).unwrap();
    let response = server.evaluate(query.to_bytes()).unwrap().bytes;
    std::fs::create_dir_all(folder(name)).unwrap();
    for (file, bytes) in [
        ("spec", spec.to_bytes()),
        ("key-pair", owner.sealed_key_pair().unwrap()),
        ("public-key", owner.public_key().unwrap()),
        ("segment", sealed.segment.to_vec()),
        ("sidecar", sealed.sidecar),
        ("query", query.to_bytes().to_vec()),
        ("response", response),
    ] {
        std::fs::write(folder(name).join(file), bytes).unwrap();
    }
}

/// Answers have fresh noise under these schemes: what was answered then and what is answered now say the same.
#[test]
fn version_1_of_additive_indexes_opens_and_answers_as_it_did() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, scheme, bits) in ADDITIVE {
        if writing && !folder(name).exists() {
            write_additive(name, scheme, bits);
        }
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let spec = IndexSpec::from_bytes(&get("spec")).unwrap();
        assert_eq!((spec.scheme(), spec.bits(), spec.to_bytes()), (scheme, bits, get("spec")));
        let owner = Owner::new(&Keys::from_master(MASTER), spec.clone()).unwrap();
        owner.open_key_pair(&get("key-pair")).unwrap();
        assert_eq!(owner.public_key().unwrap(), get("public-key"));
        let mut server = ServerIndex::new(spec.clone()).unwrap();
        server.set_evaluation_keys(&get("public-key")).unwrap();
        let id = server.add(AlignedBytes::from_slice(&get("segment"))).unwrap();
        let mut directory = SegmentDirectory::new();
        directory.add(&owner, id, &get("sidecar"), &[]).unwrap();
        // The query has no randomness in it.
        let query = owner.query(&QUERY, &directory, QueryOptions::default()).unwrap();
        assert_eq!(query.to_bytes(), get("query"), "{name}: the query moved");
        let now = server.evaluate(&get("query")).unwrap().bytes;
        assert_ne!(now, get("response"), "{name}: the noise is not fresh");
        for response in [get("response"), now] {
            let opened = owner.open(&query, &response, &directory, Retrieval::TopK(3)).unwrap();
            let found: Vec<&Id> = opened.hits[0].iter().map(|hit| &hit.id).collect();
            let [one, two, three] = &ids();
            assert_eq!(found, [three, two, one], "{name}");
            for (hit, truth) in opened.hits[0].iter().rev().zip(DISTANCES) {
                assert!((hit.value - truth).abs() < 0.02, "{name}: {} {truth}", hit.value);
            }
        }
        let rows = owner.unseal(&get("segment"), &get("sidecar")).unwrap();
        assert!(rows.iter().zip(ROWS).all(|(got, x)| (got - x).abs() < 1e-3), "{name}: {rows:?}");
    }
}
