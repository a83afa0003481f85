//! Programs of every released format load and run forever: plans, keys, inputs and answers under
//! `vectors/v1/program` and, of one that looks up by counts of its input and of one in
//! coefficients, the folders beside it. Of plans that refresh registers, `vectors/v2/program`, and
//! look tables up, `vectors/v3/program`, keys of half a gigabyte are not kept.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_programs::` writes a
//! folder that is missing (vectors/SOURCES.md).

use crate::support::decoders::program::{
    every_step, key_sets, looked_up, params, refreshed, shown, square, table, weighted,
};
use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper};
use ciphervec_owner::program::{Circuit, Clear, Client, KeySet, Plan, Server};
use std::path::PathBuf;
use std::sync::Arc;

/// A program with what goes in and what comes out.
struct Known {
    folder: &'static str,
    plans: Vec<(&'static str, Circuit)>,
    x: Vec<f64>,
    /// A public input, if it has one.
    w: Option<Vec<f64>>,
    result: Vec<f64>,
}

fn known() -> [Known; 4] {
    [
        // x² + 3.
        Known {
            folder: "program",
            plans: vec![("plan", square()), ("every-step", every_step().unwrap())],
            x: vec![0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 15.0],
            w: None,
            result: vec![3.0, 4.0, 7.0, 12.0, 28.0, 67.0, 172.0, 228.0],
        },
        // x² + w, where w is public and comes back in the clear.
        Known {
            folder: "program-public",
            plans: vec![("plan", shown())],
            x: vec![0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 15.0],
            w: Some(vec![15.0, 0.0, 7.0, 3.0, 1.0, 0.0, 2.0, 15.0]),
            result: vec![15.0, 1.0, 11.0, 12.0, 26.0, 64.0, 171.0, 240.0],
        },
        // How often each of 0 … 7 is there, times its square.
        Known {
            folder: "program-counts",
            plans: vec![("plan", table())],
            x: vec![5.0, 2.0, 5.0, 7.0],
            w: None,
            result: vec![0.0, 0.0, 4.0, 0.0, 0.0, 50.0, 0.0, 49.0],
        },
        // 2, 8, 4 and 1 times four numbers.
        Known {
            folder: "program-coefficients",
            plans: vec![("plan", weighted())],
            x: vec![5.0, 2.0, 7.0, 3.0],
            w: None,
            result: vec![57.0],
        },
    ]
}

impl Known {
    fn file(&self, name: &str) -> PathBuf {
        let vectors = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1"));
        vectors.join(self.folder).join(name)
    }

    fn write(&self) {
        let plan = |circuit: &Circuit| {
            Arc::new(Plan::new(circuit.clone(), params().unwrap(), key_sets()).unwrap())
        };
        let client = Client::generate(plan(&self.plans[0].1)).unwrap();
        let (keys, input) =
            (client.evaluation_keys().unwrap(), client.encrypt("x", &self.x).unwrap());
        let public = self.w.as_ref().map(|w| client.encrypt("w", w).unwrap());
        let server = Server::new(client.plan().clone(), &keys).unwrap();
        let answer = ran(&server, &input, public.as_deref());
        std::fs::create_dir_all(self.file("")).unwrap();
        for (name, circuit) in &self.plans {
            std::fs::write(self.file(name), plan(circuit).to_bytes()).unwrap();
        }
        for (name, bytes) in [
            ("secret-key", client.to_secret_bytes().to_vec()),
            ("keys", keys),
            ("input", input),
            ("answer", answer),
        ] {
            std::fs::write(self.file(name), bytes).unwrap();
        }
        if let Some(public) = public {
            std::fs::write(self.file("public-input"), public).unwrap();
        }
    }
}

fn ran(server: &Server, input: &[u8], public: Option<&[u8]>) -> Vec<u8> {
    let inputs = core::iter::once(input).chain(public);
    let read: Vec<_> = inputs.map(|one| server.read(one).unwrap()).collect();
    server.run(&read, |_| ()).unwrap()
}

#[test]
fn version_1_loads_and_runs_as_it_did() {
    for one in known() {
        if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !one.file("").exists() {
            one.write();
        }
        let get = |name: &str| std::fs::read(one.file(name)).unwrap();
        for (name, circuit) in &one.plans {
            let plan = Plan::from_bytes(&get(name)).unwrap();
            // Sines are not the same to the last bit everywhere.
            let mut again = circuit.clone();
            for (made, held) in again.constants.iter_mut().zip(&plan.circuit().constants) {
                assert!(made.iter().zip(held).all(|(a, b)| (a - b).abs() < 1e-12), "{name}");
                made.clone_from(held);
            }
            assert_eq!((plan.circuit(), plan.keys()), (&again, &key_sets()[..]));
            assert_eq!(plan.to_bytes(), get(name));
            // What it means has not changed either.
            let inputs: Vec<_> = [&one.x].into_iter().chain(&one.w).cloned().collect();
            let (clear, _) = Clear::answers(plan.circuit(), &inputs).unwrap();
            assert_eq!(clear[0].values, one.result);
        }
        let plan = Arc::new(Plan::from_bytes(&get("plan")).unwrap());
        let client = Client::from_secret_bytes(plan.clone(), &get("secret-key")).unwrap();
        let server = Server::new(plan, &get("keys")).unwrap();
        let public = one.w.as_ref().map(|_| get("public-input"));
        let run = |input: &[u8]| ran(&server, input, public.as_deref());
        // Nothing in an answer is random.
        assert_eq!(run(&get("input")), get("answer"));
        let answers = client.decrypt(&get("answer")).unwrap();
        assert_eq!(answers[0].values, one.result);
        if let Some(w) = &one.w {
            assert_eq!(&answers[1].values, w);
            // Nothing of what is public is, either.
            assert_eq!(Some(client.encrypt("w", w).unwrap()), public);
        }
        let again = client.encrypt("x", &one.x).unwrap();
        assert_eq!(client.decrypt(&run(&again)).unwrap()[0].values, one.result);
    }
}

/// Plans of versions 2 and 3 mean what they meant.
#[test]
fn versions_2_and_3_are_read_as_they_were_written() {
    let keys = vec![KeySet { level: 5, relinearise: true, rotations: [].into() }];
    // A plan holds all sizes of its set: whatever sets are made for today, it is read as it was.
    let wide = BootstrapSpec {
        scale_bits: 38,
        slots_to_coefficients_bits: 34,
        reduction_bits: 43,
        reduction_top_bits: 48,
        doublings: 0,
        straight: true,
        inverse_sine: false,
        coefficients_to_slots_bits: 45,
        ..BootstrapSpec::degree_65536()
    };
    for (version, circuit, spec) in [
        ("v2", refreshed().unwrap(), BootstrapSpec::degree_32768()),
        ("v3", looked_up().unwrap(), wide),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
        let file = PathBuf::from(folder).join(version).join("program").join("plan");
        if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !file.exists() {
            let bootstrapper = Arc::new(Bootstrapper::new(spec).unwrap());
            let plan = Plan::refreshing(circuit.clone(), bootstrapper, keys.clone()).unwrap();
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, plan.to_bytes()).unwrap();
        }
        let bytes = std::fs::read(&file).unwrap();
        let plan = Plan::from_bytes(&bytes).unwrap();
        assert_eq!((plan.circuit(), plan.keys()), (&circuit, &keys[..]), "{version}");
        assert_eq!(*plan.bootstrapper().unwrap().spec(), spec, "{version}");
        assert_eq!(plan.exponential().is_some(), version == "v3");
        assert_eq!(plan.to_bytes(), bytes, "{version}");
        let x = vec![0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 15.0];
        let (clear, _) = Clear::answers(plan.circuit(), std::slice::from_ref(&x)).unwrap();
        assert_eq!(clear[0].values, x.iter().map(|x| x * x + 3.0).collect::<Vec<_>>());
    }
}
