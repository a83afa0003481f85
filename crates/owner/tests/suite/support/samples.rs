//! A small valid object of every kind, with the decoder that reads it.

use super::decoders::{
    self, CKKS, Checksum, ELGAMAL, ELGAMAL_INDEX, FACTORING, FOLDED, Halves, KEYED, LOOKUP,
    LOOKUP_TOKENS, OPEN, PAIRS, PROGRAM, PUBLIC_PROGRAM, RETRIEVAL, SEALED, SEALED_INDEX,
    SEALED_QUERY, SIMILARITY, WRITERS,
};
use ciphervec_owner::members::MemberList;
use ciphervec_owner::protect::aead::AeadKey;
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::protect::id::Id;
use ciphervec_owner::protect::keyfile::{self, MIN_LOG_N, Protection, Sort};
use ciphervec_owner::protect::records::{Place, seal_records};
use ciphervec_owner::protect::sidecar::Sidecar;
use ciphervec_owner::protect::wrapped::FileKey;
use ciphervec_owner::sharing::{Identity, SharedKeys};
use ciphervec_owner::store::{Change, NewSegment, Store};
use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision, Scheme};
use std::error::Error;

/// One kind of object.
pub struct Sample {
    pub name: &'static str,
    /// The fuzz target that reads it.
    pub target: &'static str,
    pub bytes: Vec<u8>,
    pub decode: fn(&[u8]) -> bool,
    pub checksum: Checksum,
}

/// One of each small kind.
pub fn small() -> Result<Vec<Sample>, Box<dyn Error>> {
    use Checksum::{Frame, Last32, None};
    let cheap = Protection::PassphraseWithCost("open sesame", MIN_LOG_N);
    let encrypted = keyfile::encode(&[3; 32], &[4; 16], cheap)?.to_vec();
    let plaintext = keyfile::encode(&[3; 32], &[4; 16], Protection::Plaintext)?.to_vec();
    let secret = keyfile::encode_secret(&[3; 96], Sort::Scheme, &[4; 16], cheap)?.to_vec();
    let plain_secret =
        keyfile::encode_secret(&[3; 96], Sort::Person, &[4; 16], Protection::Plaintext)?.to_vec();
    let keys = Keys::from_master([3; 32]);
    let wrapped = keys.wrapped("age:age1example", &FileKey::generate()?, &[5; 48])?.to_bytes();
    let shares = keys.split(2, 3)?;
    let founder = Identity::generate("alice")?;
    let (alice, card) = (founder.recipient(), founder.member_card());
    let list = MemberList::found(&founder, [6; 16], &keys, 7)?.to_bytes();
    let people = [alice.clone(), Identity::generate("bob")?.recipient()];
    let shared = SharedKeys::seal(&Keys::from_master([3; 32]), &people)?.to_bytes();
    let spec = IndexSpec::new("faces", 128, Metric::Cosine, Mode::Sealed, Precision::Standard)?;
    Ok(vec![
        sample("number id", "id", Id::from(-5).to_bytes(), decoders::id, None),
        sample("text id", "id", Id::from("näher").to_bytes(), decoders::id, None),
        sample("sidecar", "sidecar", sidecar()?, decoders::sidecar, None),
        sample("records", "records", records()?, decoders::records, None),
        sample("filter tags", "filter_tags", filter_tags()?, decoders::filter_tags, None),
        sample("recipient", "recipient", alice.to_bytes(), decoders::recipient, Frame),
        sample("member card", "member_card", card.to_bytes(), decoders::member_card, Frame),
        sample("member list", "member_list", list, decoders::member_list, None),
        sample("shared keys", "shared_keys", shared, decoders::shared_keys, Frame),
        sample("manifest", "manifest", manifest()?, decoders::manifest, Last32),
        sample("key file", "key_file", encrypted, decoders::key_file, Last32),
        sample("plaintext key file", "key_file", plaintext, decoders::key_file, Last32),
        sample("secret key file", "key_file", secret, decoders::key_file, Last32),
        sample("wrapped key file", "key_file", wrapped, decoders::key_file, Last32),
        sample(
            "share as key file",
            "key_file",
            shares[1].to_bytes().to_vec(),
            decoders::key_file,
            Last32,
        ),
        sample("plaintext secret key file", "key_file", plain_secret, decoders::key_file, Last32),
        sample("keyed table", "keyed_table", KEYED.file.clone(), |b| KEYED.read_file(b), None),
        sample(
            "keyed bucket",
            "keyed_bucket",
            KEYED.bucket.clone(),
            |b| KEYED.read_bucket(b),
            None,
        ),
        sample("spec", "spec", spec.to_bytes(), decoders::spec, Frame),
        sample("additive spec", "spec", additive_spec()?, decoders::spec, Frame),
    ])
}

/// Keys that take longer to read than all other frames together.
pub fn large() -> [Sample; 2] {
    let bytes = CKKS.bootstrapping_keys.clone();
    let decode = |bytes: &[u8]| CKKS.read_bootstrapping_keys(bytes);
    let retrieval = RETRIEVAL.evaluation_keys.clone();
    let decode_retrieval = |bytes: &[u8]| RETRIEVAL.read_keys(bytes);
    [
        sample(
            "CKKS bootstrapping keys",
            "ckks_bootstrapping_keys",
            bytes,
            decode,
            Checksum::Frame,
        ),
        sample("retrieval keys", "retrieval_keys", retrieval, decode_retrieval, Checksum::Frame),
    ]
}

/// Everything that travels between the halves, in every mode.
pub fn frames() -> Vec<Sample> {
    let frame = |name, target, bytes: &[u8], decode| {
        sample(name, target, bytes.to_vec(), decode, Checksum::Frame)
    };
    let tokens = SEALED.tokens.as_ref().expect("a mode with tokens");
    let keys = |halves: &Halves| halves.evaluation_keys.clone().expect("a ring mode has keys");
    vec![
        frame("open segment", "open_segment", &OPEN.segment, |b| OPEN.read_segment(b)),
        frame("open query", "open_query", &OPEN.query, |b| OPEN.read_query(b)),
        frame("open response", "open_response", &OPEN.response, |b| OPEN.read_response(b)),
        frame("compact segment", "compact_segment", &SEALED_INDEX.segment, |b| {
            SEALED_INDEX.read_segment(b)
        }),
        frame("compact query", "compact_query", &SEALED_INDEX.query, |b| {
            SEALED_INDEX.read_query(b)
        }),
        frame("compact response", "compact_response", &SEALED_INDEX.response, |b| {
            SEALED_INDEX.read_response(b)
        }),
        frame("additive segment", "additive_segment", &ELGAMAL_INDEX.segment, |b| {
            ELGAMAL_INDEX.read_segment(b)
        }),
        frame("additive query", "additive_query", &ELGAMAL_INDEX.query, |b| {
            ELGAMAL_INDEX.read_query(b)
        }),
        frame("additive response", "additive_response", &ELGAMAL_INDEX.response, |b| {
            ELGAMAL_INDEX.read_response(b)
        }),
        frame("plain ring segment", "plain_ring_segment", &SEALED_QUERY.segment, |b| {
            SEALED_QUERY.read_segment(b)
        }),
        frame("plain ring response", "plain_ring_response", &SEALED_QUERY.response, |b| {
            SEALED_QUERY.read_response(b)
        }),
        frame("ring segment", "ring_segment", &SEALED.segment, |b| SEALED.read_segment(b)),
        frame("ring query", "ring_query", &SEALED.query, |b| SEALED.read_query(b)),
        frame("routed query", "routed_query", &SEALED.routed_query, |b| SEALED.read_query(b)),
        frame("ring response", "ring_response", &SEALED.response, |b| SEALED.read_response(b)),
        frame("token request", "half_query", &tokens.request, |b| SEALED.read_query(b)),
        frame("half query", "half_query", &tokens.query, |b| SEALED.read_query(b)),
        frame("tokens", "half_ahead", &tokens.ahead, |b| SEALED.read_ahead(b)),
        frame("half response", "half_online", &tokens.online, |b| SEALED.read_online(b)),
        frame("folded query", "folded_query", &FOLDED.query, |b| FOLDED.read_query(b)),
        frame("folded response", "folded_response", &FOLDED.response, |b| FOLDED.read_response(b)),
        frame("evaluation keys", "evaluation_keys", &keys(&SEALED), |b| {
            SEALED.read_evaluation_keys(b)
        }),
        frame("Paillier public key", "factoring_public_key", &FACTORING.public_key, |b| {
            FACTORING.read_public_key(b)
        }),
        frame("OU public key", "factoring_public_key", &FACTORING.other_public_key, |b| {
            FACTORING.read_public_key(b)
        }),
        frame("Paillier secret key", "factoring_secret_key", &FACTORING.secret_key, |b| {
            FACTORING.read_secret_key(b)
        }),
        frame("OU secret key", "factoring_secret_key", &FACTORING.other_secret_key, |b| {
            FACTORING.read_secret_key(b)
        }),
        frame("Paillier ciphertexts", "factoring_ciphertexts", &FACTORING.ciphertexts, |b| {
            FACTORING.read_ciphertexts(b)
        }),
        frame("OU ciphertexts", "factoring_ciphertexts", &FACTORING.other_ciphertexts, |b| {
            FACTORING.read_ciphertexts(b)
        }),
        frame("noise pool", "noise_pool", &FACTORING.noise_pool, |b| FACTORING.read_noise_pool(b)),
        frame("CKKS parameters", "ckks_parameters", &CKKS.parameters, |b| CKKS.read_parameters(b)),
        frame("CKKS public key", "ckks_public_key", &CKKS.public_key, |b| CKKS.read_public_key(b)),
        frame("CKKS secret key", "ckks_secret_key", &CKKS.secret_key, |b| CKKS.read_secret_key(b)),
        frame("CKKS evaluation keys", "ckks_evaluation_keys", &CKKS.evaluation_keys, |b| {
            CKKS.read_evaluation_keys(b)
        }),
        frame("CKKS ciphertext", "ckks_ciphertext", &CKKS.ciphertext, |b| CKKS.read_ciphertext(b)),
        frame("CKKS seeded ciphertext", "ckks_ciphertext", &CKKS.seeded, |b| {
            CKKS.read_ciphertext(b)
        }),
        frame(
            "CKKS compact ciphertexts",
            "ckks_compact_ciphertexts",
            &CKKS.compact_ciphertexts,
            |b| CKKS.read_compact_ciphertexts(b),
        ),
        frame("CKKS ring switching key", "ckks_ring_switch_key", &CKKS.ring_switch_key, |b| {
            CKKS.read_ring_switch_key(b)
        }),
        frame("encrypted pairs", "pairs_array", &PAIRS.vectors, |b| PAIRS.read_array(b)),
        frame("scores of pairs", "pairs_array", &PAIRS.scores, |b| PAIRS.read_array(b)),
        frame("server of pairs", "pairs_server", &PAIRS.server, |b| PAIRS.read_server(b)),
        frame("writer's card", "writer_card", &WRITERS.card, |b| WRITERS.read_card(b)),
        frame("segment key", "segment_key", &WRITERS.wrap, |b| WRITERS.read_wrap(b)),
        frame("owner of pairs", "pairs_owner", &PAIRS.secret, |b| PAIRS.read_owner(b)),
        frame("lookup description", "lookup_description", &LOOKUP.description, |b| {
            LOOKUP.read_description(b)
        }),
        frame("lookup tables", "lookup_tables", &LOOKUP.tables, |b| LOOKUP.read_tables(b)),
        frame("lookup client", "lookup_client", &LOOKUP.secret, |b| LOOKUP.read_secret(b)),
        frame("query of counts", "lookup_query", &LOOKUP.query, |b| LOOKUP.read_query(b)),
        frame("answer of counts", "lookup_answer", &LOOKUP.answer, |b| LOOKUP.read_answer(b)),
        frame("query of tokens", "lookup_tokens_query", &LOOKUP_TOKENS.query, |b| {
            LOOKUP_TOKENS.read_query(b)
        }),
        frame("answer of tokens", "lookup_tokens_answer", &LOOKUP_TOKENS.answer, |b| {
            LOOKUP_TOKENS.read_answer(b)
        }),
        frame("plan of a program", "program_plan", &PROGRAM.plan, |b| PROGRAM.read_plan(b)),
        frame("keys of a program", "program_keys", &PROGRAM.keys, |b| PROGRAM.read_keys(b)),
        frame("input of a program", "program_input", &PROGRAM.input, |b| PROGRAM.read_input(b)),
        frame("answer of a program", "program_answer", &PROGRAM.answer, |b| PROGRAM.read_answer(b)),
        frame("plan with a public input", "program_plan", &PUBLIC_PROGRAM.plan, |b| {
            PUBLIC_PROGRAM.read_plan(b)
        }),
        frame("public input", "program_input", &PUBLIC_PROGRAM.input, |b| {
            PUBLIC_PROGRAM.read_input(b)
        }),
        frame("answer in the clear", "program_answer", &PUBLIC_PROGRAM.answer, |b| {
            PUBLIC_PROGRAM.read_answer(b)
        }),
        frame("ElGamal public key", "elgamal_public_key", &ELGAMAL.public_key, |b| {
            ELGAMAL.read_public_key(b)
        }),
        frame("ElGamal secret key", "elgamal_secret_key", &ELGAMAL.secret_key, |b| {
            ELGAMAL.read_secret_key(b)
        }),
        frame("ElGamal ciphertexts", "elgamal_ciphertexts", &ELGAMAL.ciphertexts, |b| {
            ELGAMAL.read_ciphertexts(b)
        }),
        frame("ElGamal, shared noise", "elgamal_shared", &ELGAMAL.shared, |b| {
            ELGAMAL.read_shared(b)
        }),
        frame("retrieval query", "retrieval_query", &RETRIEVAL.query, |b| RETRIEVAL.read_query(b)),
        frame("retrieval answer", "retrieval_answer", &RETRIEVAL.answer, |b| {
            RETRIEVAL.read_answer(b)
        }),
        frame("encrypted vectors", "encrypted_vectors", &SIMILARITY.vectors, |b| {
            SIMILARITY.read_vectors(b)
        }),
        frame("encrypted scores", "encrypted_scores", &SIMILARITY.scores, |b| {
            SIMILARITY.read_scores(b)
        }),
        frame("probes", "probes", &SIMILARITY.probes, |b| SIMILARITY.read_probes(b)),
    ]
}

fn sample(
    name: &'static str,
    target: &'static str,
    bytes: Vec<u8>,
    decode: fn(&[u8]) -> bool,
    checksum: Checksum,
) -> Sample {
    Sample { name, target, bytes, decode, checksum }
}

fn additive_spec() -> Result<Vec<u8>, Box<dyn Error>> {
    let index =
        IndexSpec::new("faces", 128, Metric::Cosine, Mode::SealedIndex, Precision::Standard)?;
    Ok(index.with_scheme(Scheme::Paillier, None)?.to_bytes())
}

fn ids() -> Vec<Id> {
    vec![Id::from("alpha"), Id::from(7), Id::from("ω")]
}

fn sidecar() -> Result<Vec<u8>, Box<dyn Error>> {
    let sidecar = Sidecar {
        ids: ids(),
        norms: vec![1.0, 0.0, 2.5],
        centre: vec![0.5, -4.0],
        level: 7,
        rows: 3,
        witness: vec![5; 40].into(),
    };
    Ok(sidecar.to_plain_bytes()?.to_vec())
}

fn records() -> Result<Vec<u8>, Box<dyn Error>> {
    let rows: Vec<_> = ids().into_iter().zip([b"one".to_vec(), Vec::new(), vec![9; 70]]).collect();
    let place = Place { collection: b"faces", segment: &[1; 16] };
    Ok(seal_records(&AeadKey::new([1; 32]), place, &rows)?)
}

fn filter_tags() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut tags = FilterTags::new();
    tags.push(&[[1; 16], [2; 16]])?;
    tags.push(&[])?;
    tags.push(&[[2; 16]])?;
    Ok(tags.to_bytes())
}

fn manifest() -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c");
    let mut store = Store::create(&path, b"spec")?;
    let segment = |id| {
        let blobs = vec![("segment".to_owned(), vec![id; 9]), ("sidecar".to_owned(), vec![id])];
        NewSegment { id: [id; 16], rows: 40, blobs }
    };
    store.commit(Change {
        add: vec![segment(1), segment(2)],
        delete_rows: vec![([1; 16], vec![3]), ([2; 16], (4..30).collect())],
        attachments: vec![("evaluation-keys".to_owned(), vec![5; 5])],
        ..Change::default()
    })?;
    Ok(std::fs::read(path.join("manifest-00000000000000000002"))?)
}
