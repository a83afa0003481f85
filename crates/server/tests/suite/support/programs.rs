//! Programs with their clients, and what travels between them and a server.

use super::http::{Reply, Site};
use ciphervec_owner::program::{
    Answer, Asked, Block, Circuit, Client, Decoding, Domain, Input, Loop, Numbers, Output,
    Placement, Plan, Reading, Step, View, candidates,
};
use std::sync::Arc;

const COUNT: u32 = 16;
const BYTES: Numbers = Numbers { step: 1.0, low: 0.0, high: 15.0 };

fn row(count: u32) -> Placement {
    let loops = vec![Loop { count, element: 1, place: 1 }];
    Placement { blocks: vec![Block { element: 0, place: 0, loops }], domain: Domain::Slots }
}

fn input(name: &str) -> Input {
    let views =
        vec![View { registers: 1, unit: 16.0, placement: row(COUNT), reading: Reading::default() }];
    Input { name: name.into(), public: false, shape: vec![COUNT], numbers: BYTES, views }
}

/// (probe − gallery)² of two arrays of sixteen numbers of four bits, after `idle` rotations of which
/// nothing comes.
pub fn distances(idle: usize) -> Circuit {
    let mut steps = vec![Step::Subtract(0, 1), Step::Square(2)];
    steps.extend((0..idle).map(|_| Step::Rotate(0, 1)));
    Circuit {
        slots: COUNT as usize,
        inputs: vec![input("probe"), input("gallery")],
        constants: vec![],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps,
        outputs: vec![Output {
            name: "distances".into(),
            shape: vec![COUNT],
            numbers: Numbers { high: 225.0, ..BYTES },
            unit: 256.0,
            registers: vec![3],
            placement: row(COUNT),
            decoding: Decoding::Numbers,
        }],
    }
}

/// The plan of a circuit, in the smallest ring that serves.
pub fn plan(circuit: Circuit) -> Arc<Plan> {
    let mut tried = candidates(&circuit, &Asked::of(&[0.45])).unwrap();
    let (spec, trial) = tried.pop().unwrap().outcome.unwrap();
    Arc::new(Plan::of(circuit, spec, trial.keys).unwrap())
}

/// A key holder.
pub struct Holder {
    pub client: Client,
    pub key: String,
}

pub const PROBE: [f64; 16] =
    [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0, 9.0, 7.0, 9.0, 3.0];

impl Holder {
    pub fn of(plan: &Arc<Plan>) -> Self {
        let client = Client::generate(plan.clone()).unwrap();
        let key = client.key_id().to_string();
        Holder { client, key }
    }

    pub fn keys(&self) -> Vec<u8> {
        self.client.evaluation_keys().unwrap()
    }

    pub fn seal(&self, name: &str, values: &[f64]) -> Vec<u8> {
        self.client.encrypt(name, values).unwrap()
    }

    pub fn open(&self, answer: &[u8]) -> Vec<f64> {
        let answers: Vec<Answer> = self.client.decrypt(answer).unwrap();
        answers.into_iter().next().unwrap().values
    }

    /// Brings keys and a gallery to a program.
    pub async fn settle(&self, site: &Site, program: &str, gallery: &[f64]) {
        let path = format!("/v1/programs/{program}/keys/{}", self.key);
        assert_eq!(site.send("PUT", &path, &[], self.keys()).await.status, 204);
        let path = format!("{path}/inputs/gallery");
        let sealed = self.seal("gallery", gallery);
        assert_eq!(site.send("PUT", &path, &[], sealed).await.status, 204);
    }

    /// Runs on the kept gallery.
    pub async fn ask(&self, site: &Site, program: &str) -> Reply {
        let path = format!("/v1/programs/{program}/run?kept=gallery");
        site.send("POST", &path, &[], self.seal("probe", &PROBE)).await
    }
}

/// What the program computes.
pub fn expected(gallery: &[f64]) -> Vec<f64> {
    PROBE.iter().zip(gallery).map(|(a, b)| (a - b) * (a - b)).collect()
}
