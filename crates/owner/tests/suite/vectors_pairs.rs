//! Encrypted pairs of every released format load forever: the files under `vectors/` open to the numbers they were made of.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_pairs::` writes a folder that is missing (vectors/SOURCES.md).

use ciphervec_he_secret::params::Security;
use ciphervec_owner::protect::keyfile::{self, Protection, Sort};
use ciphervec_owner::similarity::ckks::{
    ArrayLayout, Client, EncryptOptions, EncryptedArray, Operation, PlainRows, Plan, PlanRequest,
    Role, Server,
};
use std::path::PathBuf;

const LAYOUTS: [(&str, ArrayLayout); 2] =
    [("coefficients", ArrayLayout::Coefficients), ("slots", ArrayLayout::Slots)];
const X: [f64; 6] = [0.5, -1.0, 0.25, 0.0, 0.75, -0.5];
const Y: [f64; 6] = [1.0, 0.5, 0.5, -0.25, 1.0, 1.0];
/// The dot products of the two rows.
const DOTS: [f64; 2] = [0.125, 0.25];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/ckks-pairs")).join(name)
}

fn write(name: &str, layout: ArrayLayout) {
    let owner = Client::for_plan(
        &Plan::new(PlanRequest {
            operation: Operation::Dot,
            layout,
            dimension: 3,
            magnitude: 1.0,
            precision_bits: 8,
            plain: false,
            security: Security::Classical128,
        })
        .unwrap(),
    );
    let owner = owner.unwrap();
    let put = |file: &str, bytes: &[u8]| {
        std::fs::create_dir_all(folder(name)).unwrap();
        std::fs::write(folder(name).join(file), bytes).unwrap();
    };
    let encrypt = |values: &[f64], role| {
        let options =
            EncryptOptions { layout, role, magnitude: Some(1.0), ..EncryptOptions::default() };
        owner.encrypt(&PlainRows::new(values, 2, 3).unwrap(), &options).unwrap()
    };
    let (x, y) = (encrypt(&X, Role::Left), encrypt(&Y, Role::Right));
    let key = owner.to_secret_bytes();
    put(
        "plain.key",
        &keyfile::encode_secret(&key, Sort::Scheme, &owner.label(), Protection::Plaintext).unwrap(),
    );
    put("server", &owner.server().to_bytes());
    put("x", &x.to_bytes());
    put("y", &y.to_bytes());
    put("answer", &owner.server().dot(&x, &y).unwrap().to_bytes());
}

#[test]
fn version_1_opens_and_computes_as_it_did() {
    let writing = std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some();
    for (name, layout) in LAYOUTS {
        if writing && !folder(name).exists() {
            write(name, layout);
        }
        let get = |file: &str| std::fs::read(folder(name).join(file)).unwrap();
        let (secret, label) =
            keyfile::decode_secret(&get("plain.key"), Sort::Scheme, None).unwrap();
        let owner = Client::from_secret_bytes(&secret).unwrap();
        assert_eq!(owner.label(), label);
        assert_eq!(owner.request().unwrap().layout, layout);
        let server = Server::from_bytes(&get("server")).unwrap();
        assert_eq!(server.to_bytes(), get("server"), "{name}");
        let bound = server.request().unwrap().error_under(server.params());
        assert!(bound < 0.01, "{name}: {bound}");
        let read = |file: &str| EncryptedArray::from_bytes(&server, &get(file)).unwrap();
        let near = |array: &EncryptedArray, expected: &[f64]| {
            let found = owner.decrypt(array).unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() <= bound, "{name}: {found} for {expected}");
            }
        };
        let (x, y) = (read("x"), read("y"));
        near(&x, &X);
        near(&y, &Y);
        near(&server.dot(&x, &y).unwrap(), &DOTS);
        near(&read("answer"), &DOTS);
        assert_eq!(read("answer").to_bytes(), get("answer"), "{name}");
    }
}
