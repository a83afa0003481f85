//! Programs of every released format load and run forever: plans, keys, inputs and answers under `vectors/v1/program`.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_programs::` writes a folder that is missing (vectors/SOURCES.md).

use crate::support::decoders::program::{every_step, key_sets, params, square};
use ciphervec::program::{Clear, Client, Plan, Server};
use std::path::PathBuf;
use std::sync::Arc;

const X: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 15.0];
/// x² + 3.
const SQUARES: [f64; 8] = [3.0, 4.0, 7.0, 12.0, 28.0, 67.0, 172.0, 228.0];

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/program")).join(name)
}

fn write() {
    let plan = Arc::new(Plan::new(square(), params().unwrap(), key_sets()).unwrap());
    let all = Plan::new(every_step().unwrap(), params().unwrap(), key_sets()).unwrap();
    let client = Client::generate(plan.clone()).unwrap();
    let (keys, input) = (client.evaluation_keys().unwrap(), client.encrypt("x", &X).unwrap());
    let server = Server::new(plan.clone(), &keys).unwrap();
    let answer = server.run(&[server.read(&input).unwrap()], |_| ()).unwrap();
    std::fs::create_dir_all(file("")).unwrap();
    for (name, bytes) in [
        ("plan", plan.to_bytes()),
        ("every-step", all.to_bytes()),
        ("secret-key", client.to_secret_bytes().to_vec()),
        ("keys", keys),
        ("input", input),
        ("answer", answer),
    ] {
        std::fs::write(file(name), bytes).unwrap();
    }
}

#[test]
fn version_1_loads_and_runs_as_it_did() {
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !file("").exists() {
        write();
    }
    let get = |name: &str| std::fs::read(file(name)).unwrap();
    for (name, circuit) in [("plan", square()), ("every-step", every_step().unwrap())] {
        let plan = Plan::from_bytes(&get(name)).unwrap();
        assert_eq!((plan.circuit(), plan.keys()), (&circuit, &key_sets()[..]));
        assert_eq!(plan.to_bytes(), get(name));
        // What it means has not changed either.
        let (clear, _) = Clear::answers(plan.circuit(), &[X.to_vec()]).unwrap();
        assert_eq!(clear[0].values, SQUARES);
    }
    let plan = Arc::new(Plan::from_bytes(&get("plan")).unwrap());
    let client = Client::from_secret_bytes(plan.clone(), &get("secret-key")).unwrap();
    let server = Server::new(plan, &get("keys")).unwrap();
    // Nothing in an answer is random.
    assert_eq!(server.run(&[server.read(&get("input")).unwrap()], |_| ()).unwrap(), get("answer"));
    assert_eq!(client.decrypt(&get("answer")).unwrap()[0].values, SQUARES);
    let again = server.read(&client.encrypt("x", &X).unwrap()).unwrap();
    assert_eq!(client.decrypt(&server.run(&[again], |_| ()).unwrap()).unwrap()[0].values, SQUARES);
}
