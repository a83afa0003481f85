//! Programs that look computed integers up in public tables, encrypted and simulated against the
//! tables themselves. In a small ring that is not secure, but where a test says otherwise.

use crate::support::bootstrapper::SMALL;
use crate::support::decoders::program::row;
use ciphervec_he_secret::ckks::{BootstrapSpec, Bootstrapper, LookupTable, Sign};
use ciphervec_owner::program::{
    Asked, Circuit, Clear, Client, Decoding, Footprint, Input, Numbers, Output, Plan, PlanBytes,
    Reading, Refreshed, Refusal, Server, Simulated, Step, Trial, View, candidates,
};
use std::sync::Arc;

const P: usize = 16;

/// What a table takes j to, modulo 16 and over 16: a permutation of all.
fn next(j: usize) -> usize {
    (j * 5 + 3) % P
}

fn table(of: impl Fn(usize) -> usize) -> LookupTable {
    let values: Vec<f64> = (0..P).map(|j| of(j) as f64 / P as f64).collect();
    LookupTable::new(&values).unwrap()
}

/// Integers 0 … 15 over 16, `steps`, and the registers that come out, times 16.
fn circuit(tables: Vec<LookupTable>, steps: Vec<Step>, registers: &[u32]) -> Circuit {
    let numbers = Numbers { step: 1.0, low: 0.0, high: 15.0 };
    let views = vec![View {
        registers: 1,
        unit: 16.0,
        reading: Reading::Numbers,
        placement: row(P as u32),
    }];
    let output = |(place, &register): (usize, &u32)| Output {
        name: format!("result{place}"),
        shape: vec![P as u32],
        numbers,
        unit: 16.0,
        registers: vec![register],
        placement: row(P as u32),
        decoding: Decoding::Numbers,
    };
    Circuit {
        slots: P,
        inputs: vec![Input {
            name: "x".into(),
            public: false,
            shape: vec![P as u32],
            numbers,
            views,
        }],
        constants: vec![],
        polynomials: vec![],
        signs: vec![Sign::new(0.05, 12.0).unwrap()],
        tables,
        steps,
        outputs: registers.iter().enumerate().map(output).collect(),
    }
}

fn rounds(count: u32) -> Circuit {
    circuit(vec![table(next)], (0..count).map(|x| Step::LookUp(x, 0)).collect(), &[count])
}

fn integers() -> Vec<f64> {
    (0..P).map(|j| ((7 * j + 2) % P) as f64).collect()
}

fn refreshed(circuit: &Circuit) -> (Arc<Plan>, Refreshed, Trial) {
    let allowed = vec![0.4; circuit.outputs.len()];
    let (refreshed, trial) = Refreshed::of(circuit, &Asked::of(&allowed), SMALL.clone()).unwrap();
    let keys = trial.keys.clone();
    let plan = Plan::refreshing(refreshed.circuit.clone(), SMALL.clone(), keys).unwrap();
    (Arc::new(plan), refreshed, trial)
}

/// What comes out of a run, output by output, before integers are rounded.
fn encrypted(plan: &Arc<Plan>, x: &[f64]) -> Vec<Vec<f64>> {
    let client = Client::generate(plan.clone()).unwrap();
    let keys = client.evaluation_keys().unwrap();
    assert_eq!(keys.len(), plan.key_bytes().unwrap());
    let server = Server::new(plan.clone(), &keys).unwrap();
    let sealed = server.read(&client.encrypt("x", x).unwrap()).unwrap();
    let answer = server.run(&[sealed], |_| ()).unwrap();
    client.decrypt(&answer).unwrap().into_iter().map(|one| one.values).collect()
}

/// Six tables after one another take 24 levels where there are five, and nothing is refreshed: each
/// leaves its values with levels of its own.
#[test]
fn a_look_up_refreshes() {
    let (plan, refreshed, trial) = refreshed(&rounds(6));
    assert_eq!((refreshed.circuit.refreshes(), refreshed.circuit.look_ups()), (0, 6));
    assert!(refreshed.fewest);
    let x = integers();
    let expected: Vec<f64> =
        x.iter().map(|&x| (0..6).fold(x as usize, |j, _| next(j)) as f64).collect();
    let (clear, _) = Clear::answers(plan.circuit(), std::slice::from_ref(&x)).unwrap();
    assert_eq!(clear[0].values, expected);
    let drawn = Simulated::of(&plan, [7; 32], std::slice::from_ref(&x)).unwrap();
    assert_eq!(drawn[0].values, expected);
    assert_eq!(encrypted(&plan, &x), [expected]);
    // Each adds the error of one, and multiplies what numbers were off by its slope.
    let one = self::refreshed(&rounds(1)).2.outputs[0].error;
    let slope = plan.circuit().tables[0].slope();
    let all = one * (0..6).map(|k| slope.powi(2 * k)).sum::<f64>().sqrt();
    let ratio = trial.outputs[0].error / all;
    assert!((ratio - 1.0).abs() < 1e-3 && trial.outputs[0].error < 0.01, "{ratio}");
    assert!(trial.milliseconds() > 6.0 * 0.9 * trial.steps[0].milliseconds);
}

/// A state of four, taken forty times to the next one: each table multiplies errors by its slope,
/// unless integers are cleaned before it.
#[test]
fn integers_are_cleaned_where_errors_would_grow() {
    let following = [2.0, 0.0, 3.0, 1.0];
    let values: Vec<f64> = following.iter().map(|j| j / 4.0).collect();
    let table = LookupTable::new(&values).unwrap();
    let of = |rounds: u32| {
        let steps = (0..rounds).map(|x| Step::LookUp(x, 0)).collect();
        let mut circuit = circuit(vec![table.clone()], steps, &[rounds]);
        circuit.inputs[0].numbers.high = 3.0;
        circuit.inputs[0].views[0].unit = 4.0;
        circuit.outputs[0].unit = 4.0;
        circuit.outputs[0].numbers.high = 3.0;
        circuit
    };
    assert_eq!(refreshed(&of(2)).1.circuit.cleanings(), 0);
    let (plan, refreshed, trial) = refreshed(&of(40));
    assert_eq!((refreshed.circuit.cleanings(), refreshed.circuit.refreshes()), (1, 0));
    assert!(trial.outputs[0].error < f64::exp2(-15.0), "{:?}", trial.outputs);
    let x: Vec<f64> = (0..P).map(|j| (j % 4) as f64).collect();
    let expected: Vec<f64> =
        x.iter().map(|&x| (0..40).fold(x, |j, _| following[j as usize])).collect();
    let drawn = Simulated::of(&plan, [5; 32], std::slice::from_ref(&x)).unwrap();
    assert_eq!(drawn[0].values, expected);
    assert_eq!(encrypted(&plan, &x), [expected]);
}

/// Three tables of one register share an exponential, also where what comes of the first is
/// refreshed because two things are computed of it.
#[test]
fn tables_of_one_register_are_looked_up_together() {
    let tables = vec![table(next), table(|j| j * j % P), table(|j| usize::from(j > 8))];
    let steps = vec![
        Step::LookUp(0, 0),
        Step::LookUp(0, 1),
        Step::LookUp(0, 2),
        Step::Square(1),
        Step::Multiply(4, 3),
        Step::MultiplyNumber(1, 0.5),
        Step::Multiply(6, 3),
        Step::LookUp(2, 0),
    ];
    let mut circuit = circuit(tables, steps, &[5, 7, 8]);
    for (output, unit) in circuit.outputs.iter_mut().zip([4096.0, 512.0, 16.0]) {
        output.unit = unit;
        output.numbers.high = unit;
    }
    let (plan, refreshed, _) = refreshed(&circuit);
    assert_eq!((refreshed.circuit.look_ups(), refreshed.circuit.refreshes()), (2, 1));
    assert_eq!(refreshed.origins[..5], [0, 1, 2, 0, 0]);
    let x = integers();
    let of = |f: &dyn Fn(usize) -> usize| -> Vec<f64> {
        x.iter().map(|&x| f(x as usize) as f64).collect()
    };
    let expected = [
        of(&|j| if j > 8 { next(j).pow(2) } else { 0 }),
        of(&|j| if j > 8 { next(j) } else { 0 }),
        of(&|j| next(j * j % P)),
    ];
    assert_eq!(encrypted(&plan, &x), expected);
}

/// A count of truths: signs, a sum of sixteen slots, and what stands in a table for it.
#[test]
fn counts_of_comparisons_are_looked_up() {
    let mut steps = vec![Step::AddNumber(0, -0.53125), Step::Bound(1, 1.0), Step::Sign(2, 0)];
    let mut last = 3;
    for bit in 0..4 {
        steps.push(Step::Rotate(last, 1 << bit));
        steps.push(Step::Add(last, last + 1));
        last += 2;
    }
    // Sums of signs are twice a count less 16; a seventeenth value is for all of them.
    steps.push(Step::AddNumber(last, 16.0));
    steps.push(Step::MultiplyNumber(last + 1, 1.0 / 34.0));
    steps.push(Step::Bound(last + 2, 1.0));
    steps.push(Step::LookUp(last + 3, 0));
    let values: Vec<f64> = (0..17).map(|j| f64::from((j * j + 1) % 17) / 17.0).collect();
    let mut circuit = circuit(vec![LookupTable::new(&values).unwrap()], steps, &[last + 4]);
    circuit.outputs[0].unit = 17.0;
    circuit.outputs[0].numbers.high = 16.0;
    let (plan, refreshed, _) = refreshed(&circuit);
    assert!(refreshed.circuit.refreshes() >= 1, "{:?}", refreshed.circuit.steps);
    // Nine or more: 9 … 15, and two once more.
    let x = integers();
    let count = x.iter().filter(|x| **x > 8.5).count();
    let expected = vec![((count * count + 1) % 17) as f64; P];
    let simulated = Simulated::of(&plan, [3; 32], std::slice::from_ref(&x)).unwrap();
    assert_eq!(simulated[0].values, expected);
    assert_eq!(encrypted(&plan, &x), [expected]);
}

/// The noise of a look-up in the simulation is as large as that of encryption, or larger: it is
/// drawn for the worst integer.
#[test]
fn simulated_look_ups_are_as_far_off_as_real_ones() {
    let mut circuit = rounds(1);
    // As reals, which nobody rounds.
    circuit.outputs[0].numbers.step = 0.0;
    let (plan, ..) = refreshed(&circuit);
    let x = integers();
    let square = |found: &[f64]| -> f64 {
        found.iter().zip(&x).map(|(found, &x)| (found - next(x as usize) as f64).powi(2)).sum()
    };
    let (mut simulated, mut real) = (0.0, 0.0);
    for round in 0..8 {
        let drawn = Simulated::of(&plan, [round; 32], std::slice::from_ref(&x)).unwrap();
        simulated += square(&drawn[0].values);
        real += square(&encrypted(&plan, &x)[0]);
    }
    let bits = 0.5 * (simulated / real).log2();
    assert!((-0.5..2.0).contains(&bits), "simulated noise is 2^{bits:.2} of the encrypted");
}

#[test]
fn what_cannot_be_looked_up_says_why() {
    let of = |circuit: &Circuit| Refreshed::of(circuit, &Asked::of(&[0.4]), SMALL.clone());
    // A table of more levels than there are.
    let mut deep = rounds(1);
    deep.tables[0] = LookupTable::new(&[0.0, 1.0, 0.0, 0.5].repeat(16)).unwrap();
    deep.tables[0] = deep.tables[0].clone().with_cleanings(1).unwrap();
    let why = of(&deep).unwrap_err();
    assert!(matches!(why, Refusal::LongStep { levels: 5, .. }), "{why}");
    // A result that has to be more precise than it is.
    let why = Refreshed::of(&rounds(2), &Asked::of(&[1e-9]), SMALL.clone()).unwrap_err();
    assert!(matches!(why, Refusal::Inexact { .. }), "{why}");
    // A set whose reduction is shorter than an exponential.
    let short = BootstrapSpec { doublings: 0, inverse_sine: false, ..*SMALL.spec() };
    let short = Arc::new(Bootstrapper::insecure_new(short).unwrap());
    let why = Refreshed::of(&rounds(1), &Asked::of(&[0.4]), short.clone()).unwrap_err();
    let Refusal::Unfit(why) = why else { panic!("{why}") };
    assert!(why.contains("as many as an exponential takes"), "{why}");
    assert!(Plan::refreshing(rounds(1), short, vec![]).is_err());
    // No bootstrapper at all.
    let error = Plan::new(rounds(1), SMALL.params().clone(), vec![]).unwrap_err().to_string();
    assert!(error.contains("no bootstrapper is there"), "{error}");
    // Tables that are not there, that are too many, and values that no number is.
    let mut other = rounds(1);
    other.tables.clear();
    assert!(other.check().unwrap_err().to_string().contains("a table must be below 0, got 0"));
    other.tables = vec![table(next); 257];
    assert!(other.check().is_err());
    other.tables = vec![LookupTable::new(&[0.0, 1e300]).unwrap()];
    assert!(other.check().unwrap_err().to_string().contains("at most 2^53"));
}

#[test]
fn keys_and_memory_are_those_of_refreshing() {
    let (plan, ..) = refreshed(&rounds(2));
    let (refreshing, ..) = refreshed(&circuit(vec![], (0..6).map(Step::Square).collect(), &[6]));
    assert_eq!(refreshing.circuit().refreshes(), 1);
    // Squares take a key of their own, look-ups none but those that refresh.
    assert!(plan.keys().is_empty() && !refreshing.keys().is_empty());
    assert!(plan.key_bytes().unwrap() < refreshing.key_bytes().unwrap());
    let [one, other] =
        [&plan, &refreshing].map(|plan| Footprint::of(plan, &Trial::of(plan).unwrap()).unwrap());
    assert!(one.plan > other.plan && one.keys < other.keys, "{one:?} {other:?}");
}

/// Under a set that is secure, where nothing else serves: the plan is read as it was written, and
/// from damaged bytes not at all.
#[test]
fn plans_that_look_up_travel() {
    let circuit = rounds(2);
    let tried = candidates(&circuit, &Asked::of(&[0.4])).unwrap();
    assert_eq!(tried[0].outcome.as_ref().unwrap_err(), &Refusal::LookUp);
    let chosen = tried.last().unwrap();
    assert!(chosen.refreshing && chosen.log_degree == 16, "{:?}", chosen.outcome);
    let plan = chosen.plan(&circuit).unwrap();
    let bytes = plan.to_bytes();
    let read = PlanBytes::read(&bytes).unwrap();
    assert!(read.is_regular() && read.ring_memory() > 500 << 20);
    let again = read.plan().unwrap();
    assert_eq!((again.id(), again.circuit()), (plan.id(), plan.circuit()));
    assert_eq!(again.circuit().tables[0].values(), circuit.tables[0].values());
    assert!(again.exponential().is_some());
    let header = ciphervec_he_secret::wire::HEADER_LEN;
    for place in (header..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert!(PlanBytes::read(&damaged).is_err(), "{place}");
    }
}
