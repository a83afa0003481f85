//! Public inputs of programs: numbers that a server sees, computes with in the clear, and encodes where
//! they meet encrypted ones. In a small ring that is not secure.

use crate::program::{input, keys, output, params, random};
use ciphervec_he_secret::ckks::{Polynomial, Sign};
use ciphervec_he_secret::wire::{self, Kind};
use ciphervec_owner::program::{
    Asked, Circuit, Clear, Client, Input, KeySet, Numbers, Plan, Server, Simulated, Step, Trial,
    candidates,
};
use std::sync::Arc;

const BYTES: Numbers = Numbers { step: 1.0, low: 0.0, high: 255.0 };
const REAL: Numbers = Numbers { step: 0.0, low: -1.0, high: 1.0 };

fn public(name: &str, count: u32, numbers: Numbers, unit: f64) -> Input {
    Input { public: true, ..input(name, count, numbers, unit) }
}

/// A circuit of steps on 16 numbers x, a secret, and w, which is public.
fn circuit(numbers: Numbers, unit: f64, steps: Vec<Step>, result: (Numbers, f64)) -> Circuit {
    let last = 1 + steps.len() as u32;
    Circuit {
        slots: 16,
        inputs: vec![input("x", 16, numbers, unit), public("w", 16, numbers, unit)],
        constants: vec![],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps,
        outputs: vec![output("result", 16, last, result.0, result.1)],
    }
}

/// x w + w, of bytes.
fn weighted() -> Circuit {
    let steps = vec![Step::Multiply(0, 1), Step::MultiplyNumber(1, 1.0 / 256.0), Step::Add(2, 3)];
    circuit(BYTES, 256.0, steps, (Numbers { high: 255.0 * 256.0, ..BYTES }, 65536.0))
}

fn halves(circuit: Circuit, levels: usize, keys: Vec<KeySet>) -> (Client, Server) {
    let plan = Plan::new(circuit, params(levels), keys).unwrap();
    let plan = Arc::new(Plan::from_bytes(&plan.to_bytes()).unwrap_or(plan));
    let client = Client::generate(plan.clone()).unwrap();
    let server = Server::new(plan, &client.evaluation_keys().unwrap()).unwrap();
    (client, server)
}

fn ask(client: &Client, server: &Server, inputs: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    let sealed = inputs
        .iter()
        .map(|(name, values)| server.read(&client.encrypt(name, values).unwrap()).unwrap());
    let answer = server.run(&sealed.collect::<Vec<_>>(), |_| ()).unwrap();
    client.decrypt(&answer).unwrap().into_iter().map(|answer| answer.values).collect()
}

#[test]
fn random_steps_with_public_inputs_agree_with_the_same_on_plain_numbers() {
    for seed in 0..16 {
        let mut circuit = random(seed, 5);
        for input in &mut circuit.inputs[usize::from(seed % 2 == 0) + 1..] {
            input.public = true;
        }
        let values: Vec<Vec<f64>> = (0..3)
            .map(|which| (0..16).map(|i| f64::from(i * 7 + which * 5) % 17.0 / 8.5 - 1.0).collect())
            .collect();
        let (clear, _) = Clear::run(&circuit, &values).unwrap();
        let in_the_clear = circuit.public();
        let (client, server) = halves(circuit, 5, keys(5, &[1, 2, 4, 8]));
        let named: Vec<(&str, &[f64])> =
            ["x", "y", "z"].into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        let found = ask(&client, &server, &named);
        for (place, (found, expected)) in found.iter().zip(&clear).enumerate() {
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            let most = if in_the_clear[3 + place] { 0.0 } else { 1e-6 };
            assert!(off.fold(0.0, f64::max) <= most, "seed {seed}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn products_with_public_numbers_take_no_key_and_no_ciphertext() {
    let (client, server) = halves(weighted(), 1, vec![]);
    let plan = server.plan();
    assert_eq!((plan.circuit().sealed_registers(), plan.circuit().peak()), (1, 2));
    let x: Vec<f64> = (0..16).map(|i| f64::from(i * 17)).collect();
    let patterns: [Vec<f64>; 5] = [
        vec![0.0; 16],
        vec![255.0; 16],
        (0..16).map(|i| f64::from(i % 2) * 255.0).collect(),
        (0..16).map(|i| f64::from(i * 37 % 256)).collect(),
        (0..16).map(|i| if i == 15 { 255.0 } else { 0.0 }).collect(),
    ];
    for w in &patterns {
        for x in [&x, &vec![0.0; 16], &vec![255.0; 16]] {
            let expected: Vec<f64> = x.iter().zip(w).map(|(x, w)| x * w + w).collect();
            assert_eq!(ask(&client, &server, &[("w", w), ("x", x)]), [expected]);
        }
    }
    let sent = client.encrypt("w", &patterns[1]).unwrap();
    assert_eq!(sent.len(), plan.input_bytes(&plan.circuit().inputs[1]));
    assert!(sent.len() < 256 && client.encrypt("x", &x).unwrap().len() > 4096);
    // With both of them secret a key is missing.
    let mut secret = weighted();
    secret.inputs[1].public = false;
    let error = Plan::new(secret, params(1), vec![]).unwrap_err().to_string();
    assert!(error.contains("products, which a step needs"), "{error}");
}

#[test]
fn nothing_that_is_not_as_it_was_declared_is_read() {
    let (client, server) = halves(weighted(), 1, vec![]);
    let good = client.encrypt("w", &[7.0; 16]).unwrap();
    let frame = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut values = vec![7.0; 16];
        change(&mut values);
        let numbers = good.len() - 16 * 8;
        let mut bytes = good[..numbers].to_vec();
        bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        wire::open(Kind::ProgramInput, &good).unwrap().0.seal(&mut bytes);
        bytes
    };
    assert!(server.read(&frame(&|_| ())).is_ok());
    type Change = Box<dyn Fn(&mut Vec<f64>)>;
    let set = |value: f64| -> Change { Box::new(move |values| values[5] = value) };
    let cases: Vec<(Change, &str)> = vec![
        (set(f64::NAN), "element 5 is NaN"),
        (set(f64::INFINITY), "element 5 is inf"),
        (set(f64::NEG_INFINITY), "from 0 to 255"),
        (set(256.0), "element 5 is 256"),
        (set(-1.0), "element 5 is -1"),
        (set(0.5), "multiples of 1"),
        (set(f64::MAX), "from 0 to 255"),
        (Box::new(|values| values.truncate(15)), "16 numbers of 8 bytes expected, got 120"),
        (Box::new(|values| values.push(0.0)), "16 numbers of 8 bytes expected, got 136"),
        (Box::new(Vec::clear), "got 0 bytes"),
    ];
    for (change, says) in cases {
        let error = server.read(&frame(&*change)).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    for (values, says) in [
        (vec![f64::NAN; 16], "element 0 is NaN"),
        (vec![256.0; 16], "element 0 is 256"),
        (vec![1.0; 15], "16 numbers, got 15"),
    ] {
        let error = client.encrypt("w", &values).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    // Numbers are of one plan and one key, like ciphertexts.
    let (other, _) = halves(weighted(), 1, vec![]);
    assert!(server.read(&other.encrypt("w", &[7.0; 16]).unwrap()).is_err());
    let (other, _) = halves(weighted(), 2, vec![]);
    assert!(server.read(&other.encrypt("w", &[7.0; 16]).unwrap()).is_err());
}

#[test]
fn what_is_public_alone_is_computed_in_the_clear() {
    // The sign of w − ½, its square and a polynomial, rotated: no key, no level, and no ciphertext.
    let steps = vec![
        Step::AddNumber(1, -0.5),
        Step::Sign(2, 0),
        Step::Square(1),
        Step::Polynomial(4, 0),
        Step::Rotate(5, 1),
        Step::Add(3, 6),
        Step::Multiply(7, 0),
    ];
    let wide = Numbers { low: -4.0, high: 4.0, ..REAL };
    let mut circuit = circuit(REAL, 1.0, steps, (wide, 1.0));
    circuit.polynomials = vec![Polynomial::power(&[0.25, 0.0, 0.5]).unwrap()];
    circuit.signs = vec![Sign::new(0.01, 8.0).unwrap()];
    circuit.inputs[1].views[0].unit = 2.0;
    circuit.outputs.push(output("clear", 16, 7, wide, 1.0));
    let (client, server) = halves(circuit.clone(), 1, vec![]);
    let x: Vec<f64> = (0..16).map(|i| f64::from(i) / 8.0 - 1.0).collect();
    // Numbers that a sign is not made for, it takes as they are: 1 is not above 1.
    let w: Vec<f64> = (0..16).map(|i| 1.0 - f64::from(i % 3) * 1e-9).collect();
    let w = w.iter().enumerate().map(|(i, w)| if i == 3 { -1.0 } else { *w }).collect::<Vec<_>>();
    let found = ask(&client, &server, &[("x", &x), ("w", &w)]);
    let square = |w: f64| 0.25 + 0.5 * (0.5 * w).powi(4);
    for place in 0..16 {
        let clear = -1.0 + square(w[(place + 1) % 16]);
        assert_eq!(found[1][place], clear, "{place}");
        assert!((found[0][place] - clear * x[place]).abs() < 1e-6, "{place}");
    }
    let tried = candidates(&circuit, &Asked::of(&[1e-3; 2])).unwrap();
    let (spec, trial) = tried.last().unwrap().outcome.clone().unwrap();
    assert_eq!((spec.levels, trial.keys.len()), (1, 0));
    assert_eq!(trial.levels_sent.len(), 1);
    assert_eq!((trial.outputs[1].error, trial.outputs[1].within), (0.0, 0.0));
    assert!(trial.steps[..6].iter().all(|step| step.milliseconds == 0.0));
    let plan = Plan::of(circuit.clone(), spec, trial.keys).unwrap();
    let client = Client::generate(Arc::new(plan)).unwrap();
    let server = Server::new(client.plan().clone(), &client.evaluation_keys().unwrap()).unwrap();
    let sealed = [("x", &x), ("w", &w)].map(|(name, values)| client.encrypt(name, values).unwrap());
    let answer = server.run(&sealed.map(|one| server.read(&one).unwrap()), |_| ()).unwrap();
    assert_eq!(answer.len(), client.plan().answer_bytes(&trial.levels_sent));
    let simulated = Simulated::answers(&circuit, &spec, [1; 32], &[x, w]).unwrap();
    assert_eq!(simulated[1].values, found[1]);
    // The same with everything encrypted takes the sign's levels, and its keys.
    circuit.inputs[1].public = false;
    let tried = candidates(&circuit, &Asked::of(&[1e-3; 2])).unwrap();
    let (spec, trial) = tried.last().unwrap().outcome.clone().unwrap();
    assert!(spec.levels > circuit.signs[0].depth());
    assert!(!trial.keys.is_empty());
}

/// What a public factor, or a public sum, is rounded by when it is encoded is part of the forecast.
#[test]
fn errors_with_public_numbers_are_as_large_as_was_forecast() {
    const SLOTS: u32 = 1 << 12;
    let seen = Numbers { step: 0.0, low: -512.0, high: 512.0 };
    let nibbles = Numbers { step: 1.0, low: 0.0, high: 15.0 };
    for step in [Step::Multiply(0, 1), Step::Add(0, 1), Step::Subtract(1, 0)] {
        let circuit = Circuit {
            slots: SLOTS as usize,
            inputs: vec![input("x", SLOTS, nibbles, 1.0), public("w", SLOTS, nibbles, 1.0)],
            steps: vec![step],
            outputs: vec![output("result", SLOTS, 2, seen, 1.0)],
            ..weighted()
        };
        let tried = candidates(&circuit, &Asked::of(&[0.45])).unwrap();
        let (spec, trial) = tried.last().unwrap().outcome.clone().unwrap();
        let (forecast, within) = (trial.outputs[0].error, trial.outputs[0].within);
        let plan = Arc::new(Plan::of(circuit, spec, trial.keys).unwrap());
        let client = Client::generate(plan.clone()).unwrap();
        let server = Server::new(plan, &client.evaluation_keys().unwrap()).unwrap();
        let (mut squares, mut worst, mut count) = (0.0, 0.0f64, 0);
        for turn in 0..16u32 {
            let pattern = |i: u32| match turn % 4 {
                0 => 15.0,
                1 => f64::from(i % 2) * 15.0,
                2 => f64::from((i * i + turn) % 97 % 2) * 15.0,
                _ => f64::from((i * 31 + turn) % 16),
            };
            let w: Vec<f64> = (0..SLOTS).map(pattern).collect();
            let x: Vec<f64> = (0..SLOTS).map(|i| pattern(i / 2 + turn)).collect();
            let found = &ask(&client, &server, &[("x", &x), ("w", &w)])[0];
            for (i, found) in found.iter().enumerate() {
                let exact = match step {
                    Step::Multiply(..) => x[i] * w[i],
                    Step::Add(..) => x[i] + w[i],
                    _ => w[i] - x[i],
                };
                squares += (found - exact) * (found - exact);
                worst = worst.max((found - exact).abs());
                count += 1;
            }
        }
        let deviation = (squares / f64::from(count)).sqrt();
        assert!(deviation < 1.1 * forecast, "{step:?}: {deviation:e} against {forecast:e}");
        assert!(deviation > 0.3 * forecast, "{step:?}: {deviation:e} against {forecast:e}");
        assert!(worst < within, "{step:?}: {worst:e} against {within:e}");
    }
}

#[test]
fn answers_with_numbers_in_the_clear_are_read_with_care() {
    let mut circuit = circuit(BYTES, 1.0, vec![Step::Add(1, 1)], (BYTES, 1.0));
    circuit.outputs[0].numbers.high = 510.0;
    let (client, server) = halves(circuit, 1, vec![]);
    let sealed = ["x", "w"].map(|name| client.encrypt(name, &[200.0; 16]).unwrap());
    let answer = server.run(&sealed.map(|one| server.read(&one).unwrap()), |_| ()).unwrap();
    assert_eq!(client.decrypt(&answer).unwrap()[0].values, [400.0; 16]);
    let again = |change: &dyn Fn(&mut Vec<u8>)| {
        let header = wire::open(Kind::ProgramAnswer, &answer).unwrap().0;
        let mut bytes = answer.clone();
        change(&mut bytes);
        header.seal(&mut bytes);
        client.decrypt(&bytes).map(|_| ()).unwrap_err().to_string()
    };
    let last = answer.len() - 8;
    for value in [f64::NAN, f64::INFINITY, 0.5, 600.0, -1.0] {
        let error = again(&|bytes| bytes[last..].copy_from_slice(&value.to_le_bytes()));
        assert!(error.contains("was expected at element 15"), "{value}: {error}");
    }
    let length = answer.len() - 16 * 8 - 8;
    let error = again(&|bytes| {
        bytes.truncate(answer.len() - 8);
        bytes[length..length + 8].copy_from_slice(&(15u64 * 8).to_le_bytes());
    });
    assert!(error.contains("16 slots expected, got 15"), "{error}");
    let error = again(&|bytes| {
        bytes.push(0);
        bytes[length..length + 8].copy_from_slice(&(16u64 * 8 + 1).to_le_bytes());
    });
    assert!(error.contains("16 slots expected, got 17"), "{error}");
}

#[test]
fn a_plan_that_does_not_know_its_inputs_is_refused() {
    let plan = Plan::new(weighted(), params(1), vec![]).unwrap();
    let trial = Trial::of(&plan).unwrap();
    assert_eq!(trial.steps[1].error_bits, f64::NEG_INFINITY);
    let mut secret = weighted();
    secret.inputs[1].public = false;
    let keyed = keys(1, &[]);
    let [one, other] =
        [weighted(), secret].map(|circuit| Plan::new(circuit, params(1), keyed.clone()).unwrap());
    assert_ne!(one.id(), other.id(), "who sees an input is part of a plan's name");
}

#[test]
fn what_outputs_still_need_is_part_of_the_last_encrypted_step() {
    let mut circuit = weighted();
    circuit.steps.push(Step::AddNumber(1, 0.5));
    circuit.outputs.push(output("clear", 16, 5, Numbers { step: 0.0, low: -1.0, high: 2.0 }, 1.0));
    let tried = candidates(&circuit, &Asked::of(&[0.45, 1e-3])).unwrap();
    let (_, trial) = tried.last().unwrap().outcome.clone().unwrap();
    let times: Vec<f64> = trial.steps.iter().map(|step| step.milliseconds).collect();
    assert!(times[1] == 0.0 && times[3] == 0.0 && times[2] > 0.0, "{times:?}");
}
