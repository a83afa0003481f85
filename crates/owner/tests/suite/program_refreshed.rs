//! Programs deeper than their levels: registers refreshed where they have to be, encrypted and
//! simulated against the same steps on plain numbers. In a small ring that is not secure, but where
//! a test says otherwise.

use crate::support::bootstrapper::SMALL;
use crate::support::decoders::program::row;
use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper, Polynomial, Ring, Sign};
use ciphervec_owner::program::{
    Asked, Circuit, Clear, Client, Decoding, Footprint, Input, KeySet, Numbers, Output, Plan,
    PlanBytes, Reading, Refreshed, Refusal, Server, Simulated, Step, Trial, View, candidates,
};
use std::sync::Arc;

const SLOTS: u32 = 16;
const REAL: Numbers = Numbers { step: 0.0, low: -1.0, high: 1.0 };

fn circuit(inputs: &[&str], steps: Vec<Step>) -> Circuit {
    let views =
        vec![View { registers: 1, unit: 1.0, reading: Reading::Numbers, placement: row(SLOTS) }];
    let input = |name: &&str| Input {
        name: (*name).into(),
        public: false,
        shape: vec![SLOTS],
        numbers: REAL,
        views: views.clone(),
    };
    let output = Output {
        name: "result".into(),
        shape: vec![SLOTS],
        numbers: Numbers { step: 0.0, low: -8.0, high: 8.0 },
        unit: 1.0,
        registers: vec![(inputs.len() + steps.len() - 1) as u32],
        placement: row(SLOTS),
        decoding: Decoding::Numbers,
    };
    Circuit {
        slots: SLOTS as usize,
        inputs: inputs.iter().map(input).collect(),
        constants: vec![vec![0.5, -1.0], (0..16).map(|i| f64::from(i) / 16.0 - 0.4).collect()],
        polynomials: vec![
            Polynomial::chebyshev(-1.0, 1.0, &[0.1, 0.5, 0.0, -0.3]).unwrap(),
            Polynomial::power(&[0.25, 0.0, 0.5]).unwrap(),
        ],
        signs: vec![Sign::new(0.05, 12.0).unwrap()],
        tables: vec![],
        steps,
        outputs: vec![output],
    }
}

fn values(which: u32) -> Vec<f64> {
    (0..SLOTS).map(|i| f64::from((i * 7 + which * 5) % 17) / 8.5 - 1.0).collect()
}

/// The circuit refreshed, encrypted and run: what came out, in the order of the outputs.
fn run(circuit: &Circuit, allowed: f64, inputs: &[(&str, &[f64])]) -> (Refreshed, Vec<f64>) {
    let (refreshed, trial) = Refreshed::of(circuit, &Asked::of(&[allowed]), SMALL.clone()).unwrap();
    let plan =
        Plan::refreshing(refreshed.circuit.clone(), refreshed.bootstrapper.clone(), trial.keys);
    let client = Client::generate(Arc::new(plan.unwrap())).unwrap();
    let keys = client.evaluation_keys().unwrap();
    assert_eq!(keys.len(), client.plan().key_bytes().unwrap());
    let server = Server::new(client.plan().clone(), &keys).unwrap();
    let sealed = inputs.iter().map(|(name, values)| {
        let bytes = client.encrypt(name, values).unwrap();
        server.read(&bytes).unwrap()
    });
    let answer = server.run(&sealed.collect::<Vec<_>>(), |_| ()).unwrap();
    (refreshed, client.decrypt(&answer).unwrap().swap_remove(0).values)
}

fn largest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A circuit of random steps many levels deep, with values of at most 2.
fn random(seed: u64, length: usize) -> Circuit {
    let mut state = seed;
    let mut below = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let (mut steps, mut most) = (Vec::new(), vec![1.0f64; 3]);
    while steps.len() < length {
        // Of what was computed last, mostly.
        let reach = most.len().min(4);
        let mut pick = || (most.len() - 1 - below(reach)) as u32;
        let (x, y) = (pick(), pick());
        let (a, b) = (most[x as usize], most[y as usize]);
        let number = below(64) as f64 / 64.0 - 0.5;
        let (step, after) = match below(12) {
            0 => (Step::Add(x, y), a + b),
            1 => (Step::Subtract(x, y), a + b),
            2 => (Step::AddNumber(x, number), a + number.abs()),
            3 => (Step::MultiplyNumber(x, 0.5 + number), a),
            4 => (Step::MultiplyVector(x, 0), a),
            5 | 6 => (Step::Multiply(x, y), a * b),
            7 => (Step::Square(x), a * a),
            8 => (Step::Rotate(x, [1, 2, 4, 8][below(4)]), a),
            9 if a <= 1.0 => (Step::Polynomial(x, 0), 0.9),
            10 if a <= 1.0 => (Step::Polynomial(x, 1), 0.75),
            _ => continue,
        };
        if after <= 2.0 {
            steps.push(step);
            most.push(after);
        }
    }
    circuit(&["x", "y", "z"], steps)
}

#[test]
fn deep_random_steps_agree_with_the_same_on_plain_numbers() {
    let inputs: Vec<Vec<f64>> = (0..3).map(values).collect();
    let named: Vec<(&str, &[f64])> =
        ["x", "y", "z"].into_iter().zip(inputs.iter().map(Vec::as_slice)).collect();
    let mut refreshes = 0;
    for seed in 0..3 {
        let circuit = random(seed, 50);
        let (clear, _) = Clear::run(&circuit, &inputs).unwrap();
        let (refreshed, found) = run(&circuit, 1e-2, &named);
        refreshes += refreshed.circuit.refreshes();
        let off = largest(&found, &clear[0]);
        assert!(off < 1e-3, "seed {seed}: {off:e}");
        // Its steps on plain numbers are the same, whatever was scaled for a refresh.
        let (again, _) = Clear::run(&refreshed.circuit, &inputs).unwrap();
        assert!(largest(&again[0], &clear[0]) < 1e-9, "seed {seed}");
        assert_eq!(refreshed.origins.len(), refreshed.circuit.steps.len());
    }
    assert!(refreshes >= 6, "{refreshes} refreshes");
}

/// x ← 0.25 + x²/2, which converges: two levels a round.
fn recurrent(rounds: usize) -> Circuit {
    let (mut x, mut steps) = (0, Vec::new());
    let mut push = |step: Step| {
        steps.push(step);
        steps.len() as u32
    };
    for _ in 0..rounds {
        x = push(Step::Polynomial(x, 1));
        x = push(Step::Bound(x, 0.75));
    }
    circuit(&["x"], steps)
}

#[test]
fn a_loop_of_forty_rounds_is_refreshed_as_seldom_as_its_levels_allow() {
    let circuit = recurrent(40);
    let x = values(0);
    let (clear, _) = Clear::run(&circuit, std::slice::from_ref(&x)).unwrap();
    let (refreshed, found) = run(&circuit, 1e-2, &[("x", &x)]);
    // Two levels a round, five between two refreshes: two rounds each.
    assert!(refreshed.fewest);
    assert_eq!(refreshed.circuit.refreshes(), 19);
    assert!(largest(&found, &clear[0]) < 1e-4);
}

/// A sign of eight levels, refreshed between two of its stages, of numbers close to 0.
#[test]
fn a_sign_is_refreshed_between_its_stages() {
    let circuit = circuit(&["x"], vec![Step::Sign(0, 0)]);
    assert!(circuit.signs[0].depth() > 5, "{}", circuit.signs[0].depth());
    let x: Vec<f64> =
        values(3).iter().map(|x| if *x < 0.0 { x - 0.05 } else { x + 0.05 }).collect();
    let x: Vec<f64> = x.iter().map(|x| x / 1.05).collect();
    let (refreshed, found) = run(&circuit, 1e-2, &[("x", &x)]);
    assert!(refreshed.circuit.refreshes() >= 1);
    for (x, found) in x.iter().zip(&found) {
        assert!((found - x.signum()).abs() < 1e-3, "{x}: {found}");
    }
}

/// The noise of a refresh in the simulation is as large as that of encryption.
#[test]
fn simulated_refreshes_are_as_far_off_as_real_ones() {
    let circuit = recurrent(5);
    let x = values(0);
    let (clear, _) = Clear::run(&circuit, std::slice::from_ref(&x)).unwrap();
    let (refreshed, trial) = Refreshed::of(&circuit, &Asked::of(&[1e-2]), SMALL.clone()).unwrap();
    let plan = Plan::refreshing(refreshed.circuit, refreshed.bootstrapper, trial.keys).unwrap();
    let plan = Arc::new(plan);
    let square =
        |found: &[f64]| -> f64 { found.iter().zip(&clear[0]).map(|(a, b)| (a - b).powi(2)).sum() };
    let client = Client::generate(plan.clone()).unwrap();
    let server = Server::new(plan.clone(), &client.evaluation_keys().unwrap()).unwrap();
    let (mut simulated, mut encrypted): (f64, f64) = (0.0, 0.0);
    let rounds: u8 = 12;
    for round in 0..rounds {
        let drawn = Simulated::of(&plan, [round; 32], std::slice::from_ref(&x)).unwrap();
        simulated += square(&drawn[0].values);
        let sealed = server.read(&client.encrypt("x", &x).unwrap()).unwrap();
        let answer = client.decrypt(&server.run(&[sealed], |_| ()).unwrap()).unwrap();
        encrypted += square(&answer[0].values);
    }
    // What curvature leaves of a number grows with its cube or faster, and is drawn for the
    // largest.
    let bits = 0.5 * (simulated / encrypted).log2();
    assert!((-1.0..5.0).contains(&bits), "simulated noise is 2^{bits:.2} of the encrypted");
}

#[test]
fn what_cannot_be_refreshed_says_why() {
    let of = |circuit: &Circuit| Refreshed::of(circuit, &Asked::of(&[1e-2]), SMALL.clone());
    // A polynomial that takes more levels than there are.
    let mut deep = circuit(&["x"], vec![Step::Polynomial(0, 0)]);
    let mut coefficients = vec![0.0; 128];
    coefficients[127] = 0.5;
    deep.polynomials[0] = Polynomial::chebyshev(-1.0, 1.0, &coefficients).unwrap();
    assert_eq!(of(&deep).unwrap_err(), Refusal::LongStep { needed: 7, levels: 5 });
    // More slots than are refreshed at a time.
    let mut wide = circuit(&["x"], vec![Step::Square(0)]);
    wide.slots = 1024;
    assert_eq!(of(&wide).unwrap_err(), Refusal::Slots { slots: 1024, most: 512 });
    // A result that has to be more precise than a refresh leaves it.
    let why = Refreshed::of(&recurrent(40), &Asked::of(&[1e-9]), SMALL.clone()).unwrap_err();
    assert!(matches!(why, Refusal::Inexact { .. }), "{why}");
}

#[test]
fn a_plan_without_a_bootstrapper_refreshes_nothing() {
    let circuit = circuit(&["x"], vec![Step::Refresh(0)]);
    let keys = vec![KeySet { level: 5, relinearise: true, rotations: [].into() }];
    let error = Plan::new(circuit, SMALL.params().clone(), keys).unwrap_err().to_string();
    assert!(error.contains("no bootstrapper is there"), "{error}");
}

/// What a plan says of its bootstrapping names no ring.
#[test]
fn registers_of_the_other_ring_are_refused() {
    let spec = BootstrapSpec {
        ring: Ring::ConjugateInvariant,
        log_slots: SMALL.spec().log_degree,
        ..*SMALL.spec()
    };
    let real = Arc::new(Bootstrapper::insecure_new(spec).unwrap());
    let keys = vec![KeySet { level: 5, relinearise: true, rotations: [].into() }];
    let error = Plan::refreshing(circuit(&["x"], vec![Step::Refresh(0)]), real, keys).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("must be standard, got conjugate-invariant"), "{said}");
}

#[test]
fn keys_that_refresh_nothing_are_refused() {
    let plan = |circuit: &Circuit| {
        let (refreshed, trial) =
            Refreshed::of(circuit, &Asked::of(&[1e-2]), SMALL.clone()).unwrap();
        Arc::new(Plan::refreshing(refreshed.circuit, refreshed.bootstrapper, trial.keys).unwrap())
    };
    let plan = plan(&recurrent(4));
    let client = Client::generate(plan.clone()).unwrap();
    let keys = client.evaluation_keys().unwrap();
    for cut in [1, keys.len() / 2, keys.len() - 100] {
        assert!(Server::new(plan.clone(), &keys[..keys.len() - cut]).is_err());
    }
    let footprint = Footprint::of(&plan, &Trial::of(&plan).unwrap()).unwrap();
    assert!(footprint.keys as usize > keys.len(), "{footprint:?}");
}

/// Under a set that is secure. The plan is read as it was written, and from damaged bytes not at
/// all.
#[test]
fn what_takes_more_levels_than_any_ring_has_is_refreshed() {
    let circuit = recurrent(45);
    let tried = candidates(&circuit, &Asked::of(&[1e-2])).unwrap();
    let refused = tried[0].outcome.as_ref().unwrap_err();
    assert_eq!(*refused, Refusal::TooDeep { levels: 62 });
    let chosen = tried.last().unwrap();
    let refreshed = chosen.refreshed.as_ref().unwrap();
    assert!(chosen.refreshing && refreshed.fewest, "{:?}", chosen.outcome);
    let count = refreshed.circuit.refreshes();
    // Two levels a round: one round of three levels, or five of ten.
    let expected = if chosen.log_degree == 15 { 44 } else { 8 };
    assert_eq!(count, expected);
    let (_, trial) = chosen.outcome.as_ref().unwrap();
    assert!(trial.milliseconds() > count as f64 * refreshed.milliseconds);
    let plan = chosen.plan(&circuit).unwrap();
    let bytes = plan.to_bytes();
    let read = PlanBytes::read(&bytes).unwrap();
    assert_eq!(read.log_degree(), chosen.log_degree);
    assert!(read.is_regular() && read.ring_memory() > 100 << 20);
    let again = read.plan().unwrap();
    assert_eq!((again.id(), again.circuit()), (plan.id(), plan.circuit()));
    assert_eq!(again.params(), plan.params());
    assert_eq!(again.bootstrapper().unwrap().spec(), refreshed.bootstrapper.spec());
    // Another place for a refresh is another plan; another set is none that its parameters name.
    for place in [64, 70, 78] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert!(Plan::from_bytes(&damaged).is_err());
    }
}

#[test]
fn what_a_few_levels_serve_is_not_refreshed() {
    let tried = candidates(&recurrent(4), &Asked::of(&[1e-3])).unwrap();
    assert!(tried.iter().all(|one| !one.refreshing));
    assert!(tried.last().unwrap().outcome.is_ok());
}

/// A register that is masked and then added to itself until it stands everywhere is as far off as
/// it was, round by round.
#[test]
fn errors_do_not_grow_where_a_mask_takes_them_away() {
    let (mut x, mut steps) = (0, Vec::new());
    let mut push = |step: Step| {
        steps.push(step);
        steps.len() as u32
    };
    for _ in 0..20 {
        x = push(Step::MultiplyVector(x, 1));
        for bit in 0..4 {
            let moved = push(Step::Rotate(x, -(1 << bit)));
            x = push(Step::Add(x, moved));
        }
        x = push(Step::Bound(x, 1.0));
    }
    let mut circuit = circuit(&["x"], steps);
    circuit.constants[1] = (0..16).map(|slot| f64::from(slot == 0)).collect();
    let (refreshed, trial) = Refreshed::of(&circuit, &Asked::of(&[1e-2]), SMALL.clone()).unwrap();
    assert_eq!(refreshed.circuit.refreshes(), 3);
    // Four refreshes of about 2^-19 each; a forecast for all slots alike has 2^40 times as much.
    assert!(trial.outputs[0].error < f64::exp2(-16.0), "{:e}", trial.outputs[0].error);
    let x = values(2);
    let (clear, _) = Clear::run(&circuit, std::slice::from_ref(&x)).unwrap();
    let (_, found) = run(&circuit, 1e-2, &[("x", &x)]);
    assert!(largest(&found, &clear[0]) < 8.0 * trial.outputs[0].error);
}
