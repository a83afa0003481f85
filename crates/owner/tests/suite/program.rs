//! Programs at the level of slots: what a server makes of encrypted registers against the same steps
//! on plain numbers, and bytes from elsewhere. In a small ring that is not secure.

use ciphervec_he_secret::ckks::{Params, ParamsSpec, Polynomial, Ring, Sign};
use ciphervec_he_secret::params::Security;
use ciphervec_owner::program::{
    Asked, Block, Circuit, Clear, Client, Decoding, Domain, Input, KeySet, Loop, Numbers, Output,
    Placement, Plan, Reading, Refusal, Server, Simulated, Step, Undecided, View, candidates,
};
use std::sync::Arc;

pub(crate) fn params(levels: usize) -> Arc<Params> {
    Params::insecure_new(ParamsSpec {
        log_degree: 10,
        ring: Ring::ConjugateInvariant,
        base_bits: 50,
        scale_bits: 40,
        levels,
        special_primes: 2,
        special_bits: 50,
        digits: (levels + 1).div_ceil(2),
        security: Security::Classical128,
    })
    .unwrap()
}

/// `count` elements in a row from the first place on, `times` over.
pub(crate) fn row(count: u32, times: u32) -> Placement {
    let loops = vec![
        Loop { count: times, element: 0, place: i64::from(count) },
        Loop { count, element: 1, place: 1 },
    ];
    Placement { blocks: vec![Block { element: 0, place: 0, loops }], domain: Domain::Slots }
}

pub(crate) fn input(name: &str, count: u32, numbers: Numbers, unit: f64) -> Input {
    let views =
        vec![View { registers: 1, unit, reading: Reading::Numbers, placement: row(count, 1) }];
    Input { name: name.into(), public: false, shape: vec![count], numbers, views }
}

pub(crate) fn output(name: &str, count: u32, register: u32, numbers: Numbers, unit: f64) -> Output {
    Output {
        name: name.into(),
        shape: vec![count],
        numbers,
        unit,
        registers: vec![register],
        placement: row(count, 1),
        decoding: Decoding::Numbers,
    }
}

const BYTES: Numbers = Numbers { step: 1.0, low: 0.0, high: 255.0 };

/// Σ (a − b)² of two arrays of 16 bytes.
fn distance() -> Circuit {
    let mut steps = vec![Step::Subtract(0, 1), Step::Square(2)];
    for bit in 0..4 {
        let sum = 1 + steps.len() as u32;
        steps.extend([Step::Rotate(sum, 1 << bit), Step::Add(sum, sum + 1)]);
    }
    let sum = 1 + steps.len() as u32;
    let largest = Numbers { high: 16.0 * 255.0 * 255.0, ..BYTES };
    let mut out = output("distance", 1, sum, largest, 512.0 * 512.0);
    out.shape = vec![];
    Circuit {
        slots: 16,
        inputs: vec![input("a", 16, BYTES, 512.0), input("b", 16, BYTES, 512.0)],
        constants: vec![],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps,
        outputs: vec![out],
    }
}

pub(crate) fn keys(level: usize, rotations: &[i64]) -> Vec<KeySet> {
    vec![
        KeySet { level, relinearise: true, rotations: [].into() },
        KeySet { level, relinearise: false, rotations: rotations.iter().copied().collect() },
    ]
}

fn halves(circuit: Circuit, levels: usize, rotations: &[i64]) -> (Client, Server) {
    let plan = Plan::new(circuit, params(levels), keys(levels, rotations)).unwrap();
    let plan = Arc::new(plan);
    let client = Client::generate(plan.clone()).unwrap();
    let server = Server::new(plan, &client.evaluation_keys().unwrap()).unwrap();
    (client, server)
}

fn ask(client: &Client, server: &Server, inputs: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    let sealed = inputs
        .iter()
        .map(|(name, values)| server.read(&client.encrypt(name, values).unwrap()).unwrap());
    let mut steps = 0;
    let answer = server.run(&sealed.collect::<Vec<_>>(), |_| steps += 1).unwrap();
    assert_eq!(steps, server.plan().circuit().steps.len());
    client.decrypt(&answer).unwrap().into_iter().map(|answer| answer.values).collect()
}

#[test]
fn a_distance_of_integers_is_exact() {
    let (client, server) = halves(distance(), 1, &[1, 2, 4, 8]);
    let a: Vec<f64> = (0..16).map(|i| f64::from(i * 37 % 256)).collect();
    let b: Vec<f64> = (0..16).map(|i| f64::from(i * 91 % 256)).collect();
    let expected: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
    let found = ask(&client, &server, &[("b", &b), ("a", &a)]);
    assert_eq!(found, [[expected]]);
    assert_eq!(ask(&client, &server, &[("a", &[255.0; 16]), ("b", &[0.0; 16])]), [[1040400.0]]);
    let (clear, _) = Clear::run(&distance(), &[a, b]).unwrap();
    assert_eq!(clear[0][0] * 512.0 * 512.0, expected);
}

/// A circuit of random steps, at most `depth` levels deep, with values that stay small.
pub(crate) fn random(seed: u64, depth: usize) -> Circuit {
    let mut state = seed;
    let mut below = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let real = Numbers { step: 0.0, low: -1.0, high: 1.0 };
    let constants: Vec<Vec<f64>> =
        vec![vec![0.5, -1.0], (0..16).map(|i| f64::from(i) / 16.0 - 0.4).collect()];
    let polynomials = vec![
        Polynomial::chebyshev(-1.0, 1.0, &[0.1, 0.5, 0.0, -0.3]).unwrap(),
        Polynomial::power(&[0.25, 0.0, 0.5]).unwrap(),
    ];
    let mut steps = Vec::new();
    // Of every register: levels it took, and a bound on its values.
    let mut all = vec![(0, 1.0f64); 3];
    while steps.len() < 24 {
        let (a, b) = (below(all.len()), below(all.len()));
        let ((deep_a, a_most), (deep_b, b_most)) = (all[a], all[b]);
        let (x, y) = (a as u32, b as u32);
        let number = below(64) as f64 / 32.0 - 1.0;
        let both = deep_a.max(deep_b);
        let (step, after) = match below(12) {
            0 => (Step::Add(x, y), (both, a_most + b_most)),
            1 => (Step::Subtract(x, y), (both, a_most + b_most)),
            2 => (Step::Negate(x), all[a]),
            3 => (Step::AddNumber(x, number), (deep_a, a_most + number.abs())),
            4 => (Step::MultiplyNumber(x, number), (deep_a + 1, a_most)),
            5 => (Step::MultiplyInteger(x, below(5) as i64 - 2), (deep_a, 2.0 * a_most)),
            6 => (Step::AddVector(x, below(2) as u32), (deep_a, a_most + 1.0)),
            7 => (Step::MultiplyVector(x, below(2) as u32), (deep_a + 1, a_most)),
            8 => (Step::Multiply(x, y), (both + 1, a_most * b_most)),
            9 => (Step::Square(x), (deep_a + 1, a_most * a_most)),
            10 => (Step::Rotate(x, [1, 2, 4, 8][below(4)]), all[a]),
            _ if a_most <= 1.0 => (Step::Polynomial(x, below(2) as u32), (deep_a + 2, 1.0)),
            _ => continue,
        };
        // The last level holds numbers below 2^9.
        if after.0 < depth && after.1 <= 8.0 {
            steps.push(step);
            all.push(after);
        }
    }
    let places = 3..all.len() as u32;
    let outputs = places.map(|register| {
        output(
            &format!("r{register}"),
            16,
            register,
            Numbers { step: 0.0, low: -8.0, high: 8.0 },
            1.0,
        )
    });
    let inputs = ["x", "y", "z"].map(|name| input(name, 16, real, 1.0)).to_vec();
    let (signs, outputs) = (vec![], outputs.collect());
    Circuit { slots: 16, inputs, constants, polynomials, signs, tables: vec![], steps, outputs }
}

#[test]
fn random_steps_agree_with_the_same_on_plain_numbers() {
    for seed in 0..8 {
        let circuit = random(seed, 5);
        let values: Vec<Vec<f64>> = (0..3)
            .map(|which| (0..16).map(|i| f64::from(i * 7 + which * 5) % 17.0 / 8.5 - 1.0).collect())
            .collect();
        let (clear, _) = Clear::run(&circuit, &values).unwrap();
        let (client, server) = halves(circuit, 5, &[1, 2, 4, 8]);
        let named: Vec<(&str, &[f64])> =
            ["x", "y", "z"].into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        for (found, expected) in ask(&client, &server, &named).iter().zip(&clear) {
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f64::max) < 1e-6, "seed {seed}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn a_comparison_of_bytes_is_exact() {
    // [a < b] as the sign of (2 (b - a) - 1) / 511, numbers at a unit of 255.5.
    let (mut circuit, half) = (distance(), 0.5 / 255.5);
    circuit.inputs.iter_mut().for_each(|input| input.views[0].unit = 255.5);
    circuit.signs = vec![Sign::new(half, 6.0).unwrap()];
    circuit.steps = vec![
        Step::Subtract(1, 0),
        Step::AddNumber(2, -half),
        Step::Bound(3, 1.0),
        Step::Sign(4, 0),
        Step::AddNumber(5, 1.0),
    ];
    let truth = Numbers { step: 1.0, low: 0.0, high: 1.0 };
    let mut out = output("less", 16, 6, truth, 0.5);
    out.decoding = Decoding::Booleans;
    circuit.outputs = vec![out];
    let depth = circuit.signs[0].depth();
    let a: Vec<f64> = (0..16).map(|i| f64::from(i * 37 % 256)).collect();
    let b: Vec<f64> =
        a.iter().zip([0.0, 1.0, -1.0].iter().cycle()).map(|(a, d)| (a + d).abs()).collect();
    let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| f64::from(u8::from(a < b))).collect();
    let mut graded = circuit.clone();
    graded.signs = vec![Sign::graded(half, 6.0, half / 8.0).unwrap()];
    for (circuit, depth) in [(&circuit, depth), (&graded, graded.signs[0].depth())] {
        let back = Plan::new(circuit.clone(), params(depth), keys(depth, &[])).unwrap().to_bytes();
        assert_eq!(Plan::from_bytes(&back).unwrap().circuit(), circuit);
    }
    let (client, server) = halves(circuit, depth, &[]);
    assert_eq!(ask(&client, &server, &[("a", &a), ("b", &b)]), [expected]);
}

#[test]
fn the_smallest_ring_that_serves_is_found_with_the_keys_that_it_takes() {
    let tried = candidates(&distance(), &Asked::of(&[0.45])).unwrap();
    let found = tried.last().unwrap();
    let (spec, trial) = found.outcome.clone().unwrap();
    assert_eq!(found.log_degree, 13, "{tried:?}");
    assert!(matches!(tried[0].outcome, Err(Refusal::Insecure { most: 106, .. })), "{tried:?}");
    assert_eq!(trial.steps.len(), distance().steps.len());
    assert!(trial.outputs[0].within <= 0.45 && trial.outputs[0].error < 0.45 / 9.0);
    let plan = Arc::new(Plan::of(distance(), spec, trial.keys).unwrap());
    let client = Client::generate(plan.clone()).unwrap();
    let keys = client.evaluation_keys().unwrap();
    assert_eq!(keys.len(), plan.key_bytes().unwrap());
    let server = Server::new(plan.clone(), &keys).unwrap();
    let sealed = ["a", "b"].map(|name| client.encrypt(name, &[1.0; 16]).unwrap());
    assert_eq!(sealed[0].len(), plan.input_bytes(&plan.circuit().inputs[0]));
    let answer = server.run(&sealed.map(|bytes| server.read(&bytes).unwrap()), |_| ()).unwrap();
    assert_eq!(answer.len(), plan.answer_bytes(&trial.levels_sent));
    for shift in 0..8 {
        let a: Vec<f64> = (0..16).map(|i| f64::from((i * 37 + shift) % 256)).collect();
        let b: Vec<f64> = (0..16).map(|i| f64::from(i * 91 % 256)).collect();
        let expected: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
        assert_eq!(ask(&client, &server, &[("a", &a), ("b", &b)]), [[expected]]);
    }
    // A number can be so wide that no scale tells its neighbours apart, and the last candidate says
    // so.
    let tried = candidates(&distance(), &Asked::of(&[1e-12])).unwrap();
    assert_eq!(tried.len(), 6);
    let why = tried[5].outcome.clone().unwrap_err();
    assert!(matches!(&why, Refusal::Inexact { output, .. } if output == "distance"), "{why}");
}

#[test]
fn errors_are_as_large_and_as_seldom_as_was_forecast() {
    const SLOTS: u32 = 1 << 12;
    // Σ over pairs of (a - b)² of numbers 0 … 15, read as reals, so that their errors are seen.
    let nibbles = Numbers { step: 1.0, low: 0.0, high: 15.0 };
    let seen = Numbers { step: 0.0, low: 0.0, high: 450.0 };
    let circuit = Circuit {
        slots: SLOTS as usize,
        inputs: vec![input("a", SLOTS, nibbles, 1.0), input("b", SLOTS, nibbles, 1.0)],
        constants: vec![],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps: vec![
            Step::Subtract(0, 1),
            Step::Bound(2, 15.0),
            Step::Square(3),
            Step::Rotate(4, 1),
            Step::Add(4, 5),
        ],
        outputs: vec![output("sums", SLOTS, 6, seen, 1.0)],
    };
    let tried = candidates(&circuit, &Asked::of(&[0.45])).unwrap();
    let (spec, trial) = tried.last().unwrap().outcome.clone().unwrap();
    let forecast = trial.outputs[0].error;
    let plan = Arc::new(Plan::of(circuit, spec, trial.keys).unwrap());
    let client = Client::generate(plan.clone()).unwrap();
    let server = Server::new(plan, &client.evaluation_keys().unwrap()).unwrap();
    let (mut squares, mut far, mut count) = (0.0, 0, 0);
    for turn in 0..16u32 {
        // Differences as large as was declared, whose squares are off by the most.
        let a: Vec<f64> =
            (0..SLOTS).map(|i| f64::from((i * i + 3 * i + turn) % 97 % 2) * 15.0).collect();
        let b: Vec<f64> = a.iter().map(|a| 15.0 - a).collect();
        let square = |i: usize| (a[i] - b[i]) * (a[i] - b[i]);
        for (i, found) in ask(&client, &server, &[("a", &a), ("b", &b)])[0].iter().enumerate() {
            let off = found - square(i) - square((i + 1) % SLOTS as usize);
            squares += off * off;
            // Of a Gaussian 2^-10 are beyond 3.2972 deviations.
            far += usize::from(off.abs() > 3.2972 * forecast);
            count += 1;
        }
    }
    let deviation = (squares / f64::from(count)).sqrt();
    assert!((0.7..1.1).contains(&(deviation / forecast)), "{deviation:e} against {forecast:e}");
    // Of 65,536 are 64; the margin of a tenth that plans leave takes twice and a half as many.
    assert!(far <= 64 * 5 / 2, "{far} of {count}");
}

#[test]
fn simulated_noise_is_as_large_as_that_of_encryption() {
    let tried = candidates(&distance(), &Asked::of(&[0.45])).unwrap();
    let (spec, trial) = tried.last().unwrap().outcome.clone().unwrap();
    // A sum of squares read as a real number shows its noise.
    let mut circuit = distance();
    circuit.outputs[0].numbers.step = 0.0;
    let plan = Arc::new(Plan::of(circuit.clone(), spec, trial.keys).unwrap());
    let client = Client::generate(plan.clone()).unwrap();
    let server = Server::new(plan, &client.evaluation_keys().unwrap()).unwrap();
    let a: Vec<f64> = (0..16).map(|i| f64::from(i * 37 % 256)).collect();
    let b: Vec<f64> = (0..16).map(|i| f64::from(i * 91 % 256)).collect();
    let exact = Clear::answers(&circuit, &[a.clone(), b.clone()]).unwrap().0[0].values[0];
    let inputs = [a.clone(), b.clone()];
    let simulate = |seed: u8| {
        Simulated::answers(&circuit, &spec, [seed; 32], &inputs).unwrap()[0].values[0] - exact
    };
    assert_eq!(simulate(7).to_bits(), simulate(7).to_bits());
    let of =
        |errors: &[f64]| (errors.iter().map(|x| x * x).sum::<f64>() / errors.len() as f64).sqrt();
    let simulated = of(&(0..200).map(simulate).collect::<Vec<_>>());
    let measured = of(&(0..200)
        .map(|_| ask(&client, &server, &[("a", &a), ("b", &b)])[0][0] - exact)
        .collect::<Vec<_>>());
    let forecast = trial.outputs[0].error;
    assert!((0.8..1.2).contains(&(simulated / forecast)), "{simulated:e} against {forecast:e}");
    // Differences here are smaller than the largest, with which the forecast is made.
    assert!((0.2..1.2).contains(&(measured / simulated)), "{measured:e} against {simulated:e}");
}

/// Σ table[i] over eight integers i of 0 … 15, in two groups.
fn table() -> Circuit {
    let reading = Reading::Counts { count: 16, terms: 4, inner: 1 };
    let views = vec![View { registers: 1, unit: 1.0, reading, placement: row(32, 1) }];
    let index = Numbers { step: 1.0, low: 0.0, high: 15.0 };
    let values: Vec<f64> = (0..16).map(|i| f64::from(i * i % 23)).collect();
    let mut steps = vec![Step::MultiplyVector(0, 0)];
    for bit in 0..4 {
        let sum = steps.len() as u32;
        steps.extend([Step::Rotate(sum, 1 << bit), Step::Add(sum, sum + 1)]);
    }
    let sum = steps.len() as u32;
    let mut out = output("sums", 2, sum, Numbers { high: 88.0, ..BYTES }, 1.0);
    out.placement.blocks[0].loops = vec![Loop { count: 2, element: 1, place: 16 }];
    Circuit {
        slots: 32,
        inputs: vec![Input {
            name: "i".into(),
            public: false,
            shape: vec![8],
            numbers: index,
            views,
        }],
        constants: vec![values],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps,
        outputs: vec![out],
    }
}

#[test]
fn counts_of_indices_look_them_up_in_a_public_table() {
    let (client, server) = halves(table(), 1, &[1, 2, 4, 8]);
    let back = Plan::from_bytes(&client.plan().to_bytes()).unwrap();
    assert_eq!(back.circuit(), &table());
    let indices = [0.0, 15.0, 3.0, 3.0, 9.0, 9.0, 9.0, 1.0];
    let entry = |i: &f64| (i * i) % 23.0;
    let sums = indices.chunks(4).map(|group| group.iter().map(entry).sum());
    assert_eq!(ask(&client, &server, &[("i", &indices)]), [sums.collect::<Vec<f64>>()]);
    assert!(client.encrypt("i", &[16.0; 8]).is_err());
    // Groups whose numbers are apart.
    let counted = Reading::Counts { count: 2, terms: 2, inner: 3 };
    let mut apart = table();
    apart.inputs[0].shape = vec![12];
    apart.inputs[0].numbers.high = 1.0;
    apart.inputs[0].views[0].reading = counted;
    apart.inputs[0].views[0].placement = row(12, 1);
    let bits = [1., 0., 1., 1., 1., 0., 0., 0., 0., 0., 0., 1.];
    let found = &apart.inputs[0].scatter(&bits, 32).unwrap()[0][..12];
    assert_eq!(found, [0., 2., 1., 1., 1., 1., 2., 0., 2., 0., 1., 1.]);
}

#[test]
fn counts_that_an_input_does_not_have_are_refused() {
    let spoil = |what: &str, change: fn(&mut Input)| {
        let mut circuit = table();
        change(&mut circuit.inputs[0]);
        let error = circuit.check().expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    fn counts(count: u32, terms: u32, inner: u32) -> Reading {
        Reading::Counts { count, terms, inner }
    }
    spoil("what is counted", |input| input.numbers.high = 16.0);
    spoil("what is counted", |input| input.numbers.step = 0.5);
    spoil("what is counted", |input| input.numbers.low = -1.0);
    spoil("counts", |input| input.views[0].reading = counts(16, 3, 1));
    spoil("counts", |input| input.views[0].reading = counts(16, 0, 1));
    spoil("counts", |input| input.views[0].reading = counts(16, 4, u32::MAX));
    spoil("a placement", |input| input.views[0].reading = counts(16, 8, 1));
    spoil("the integers", |input| input.views[0].reading = counts(u32::MAX, 4, 1));
}

/// The digits of three numbers from −2 on, in steps of a quarter.
fn digits(below: bool) -> Circuit {
    let reading = Reading::Digits { finer: 2, low: -8, bits: 2, digits: 2, below };
    let numbers = Numbers { step: 0.5, low: -1.5, high: 1.5 };
    let views = vec![View { registers: 1, unit: 1.0, reading, placement: row(24, 1) }];
    let mut circuit = table();
    circuit.inputs =
        vec![Input { name: "x".into(), public: false, shape: vec![3], numbers, views }];
    circuit.outputs[0].numbers = Numbers { step: 0.0, low: -1e3, high: 1e3 };
    circuit
}

#[test]
fn digits_of_an_input_stand_in_its_slots() {
    // 2, 8 and 14 quarters above −2, in base 4: 02, 20 and 32.
    let numbers = [-1.5, 0.0, 1.5];
    let own = [0., 0., 1., 0., 1., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0.];
    let last = [0., 0., 1., 0., 0., 0., 0., 1.];
    let found = &digits(false).inputs[0].scatter(&numbers, 32).unwrap()[0][..24];
    assert_eq!(found, [&own[..], &last].concat());
    let own = [1., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 1., 1., 0., 0.];
    let last = [1., 1., 0., 0., 1., 1., 1., 0.];
    let found = &digits(true).inputs[0].scatter(&numbers, 32).unwrap()[0][..24];
    assert_eq!(found, [&own[..], &last].concat());
    for failure in [0, 64] {
        let plan = Plan::new(digits(true), params(1), keys(1, &[1, 2, 4, 8])).unwrap();
        let plan = if failure > 0 { plan.with_failure(failure) } else { plan };
        let bytes = plan.to_bytes();
        let back = Plan::from_bytes(&bytes).unwrap();
        assert_eq!((back.circuit(), back.failure()), (&digits(true), failure));
        assert_eq!(back.to_bytes(), bytes);
    }
}

#[test]
fn digits_that_an_input_does_not_have_are_refused() {
    let spoil = |what: &str, change: fn(&mut Input)| {
        let mut circuit = digits(false);
        change(&mut circuit.inputs[0]);
        let error = circuit.check().expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    fn read(finer: u32, low: i64, bits: u32, digits: u32) -> Reading {
        Reading::Digits { finer, low, bits, digits, below: false }
    }
    spoil("what has digits", |input| input.numbers.high = 2.0);
    spoil("what has digits", |input| input.numbers.low = -2.5);
    spoil("what has digits", |input| input.numbers.step = 0.0);
    spoil("what has digits", |input| input.views[0].reading = read(0, -8, 2, 2));
    spoil("what has digits", |input| input.views[0].reading = read(2, i64::MIN, 2, 2));
    spoil("the bits of a digit", |input| input.views[0].reading = read(2, -8, 0, 2));
    spoil("the bits of a digit", |input| input.views[0].reading = read(2, -8, 17, 2));
    spoil("the digits of a number", |input| input.views[0].reading = read(2, -8, 2, u32::MAX));
    spoil("a placement", |input| input.views[0].placement = row(25, 1));
}

#[test]
fn a_plan_comes_back_from_its_bytes_and_not_from_others() {
    for seed in 0..4 {
        let plan = Plan::new(random(seed, 4), params(4), keys(4, &[1, 2, 4, 8])).unwrap();
        let bytes = plan.to_bytes();
        let back = Plan::from_bytes(&bytes).unwrap();
        assert_eq!((back.id(), back.circuit()), (plan.id(), plan.circuit()));
        assert_eq!(back.to_bytes(), bytes);
        for cut in (0..bytes.len()).step_by(41) {
            assert!(Plan::from_bytes(&bytes[..cut]).is_err());
        }
        // With what is said of failures, it is another.
        let said = plan.clone().with_failure(128);
        let back = Plan::from_bytes(&said.to_bytes()).unwrap();
        assert_eq!((back.failure(), back.id(), plan.failure()), (128, said.id(), 0));
        assert_eq!((back.circuit(), back.to_bytes()), (plan.circuit(), said.to_bytes()));
        assert_ne!(said.id(), plan.id());
        for (plan, failure) in [(plan, 0), (said, 128)] {
            let open = plan.clone().with_undecided(Undecided::Refused);
            let back = Plan::from_bytes(&open.to_bytes()).unwrap();
            assert_eq!((back.failure(), back.undecided()), (failure, Undecided::Refused));
            assert_eq!(plan.undecided(), Undecided::Nothing);
            assert_eq!((back.id(), back.to_bytes()), (open.id(), open.to_bytes()));
            assert_ne!(open.id(), plan.id());
        }
    }
}

#[test]
fn circuits_that_cannot_be_computed_are_refused() {
    let spoil = |what: &str, change: fn(&mut Circuit)| {
        let mut circuit = distance();
        change(&mut circuit);
        let error = circuit.check().expect_err(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    spoil("an operand", |c| c.steps[0] = Step::Add(0, 2));
    spoil("a constant", |c| c.steps[0] = Step::AddVector(0, 0));
    spoil("a polynomial", |c| c.steps[0] = Step::Polynomial(0, 3));
    spoil("a sign", |c| c.steps[0] = Step::Sign(0, 0));
    spoil("a rotation", |c| c.steps[0] = Step::Rotate(0, 16));
    spoil("a number", |c| c.steps[0] = Step::AddNumber(0, f64::NAN));
    spoil("a bound", |c| c.steps[0] = Step::Bound(0, 0.0));
    spoil("slots", |c| c.slots = 12);
    spoil("a placement", |c| c.inputs[0].views[0].placement = row(16, 2));
    spoil("the slots of all inputs", |c| {
        c.slots = 1 << 17;
        c.inputs[0].views[0].registers = 1 << 12;
    });
    spoil("a unit", |c| c.inputs[0].views[0].unit = 0.0);
    spoil("inputs", |c| c.inputs[1].name = "a".into());
    spoil("an output", |c| c.outputs[0].registers = vec![99]);
    spoil("the elements", |c| c.inputs[0].shape = vec![u32::MAX, u32::MAX, u32::MAX]);
    spoil("a constant", |c| c.constants = vec![vec![1.0, 2.0, 3.0]]);
    let unkeyed = Plan::new(distance(), params(1), keys(1, &[1, 2, 4])).unwrap_err();
    assert!(unkeyed.to_string().contains("rotations by 8"), "{unkeyed}");
    let unkeyed = Plan::new(distance(), params(1), vec![]).unwrap_err();
    assert!(unkeyed.to_string().contains("products"), "{unkeyed}");
}

#[test]
fn what_belongs_to_another_plan_or_key_is_refused() {
    let (client, server) = halves(distance(), 1, &[1, 2, 4, 8]);
    let (stranger, _) = halves(distance(), 1, &[1, 2, 4, 8]);
    let mut wider = distance();
    wider.outputs[0].name = "d".into();
    let (other, elsewhere) = halves(wider, 1, &[1, 2, 4, 8]);
    let a = client.encrypt("a", &[1.0; 16]).unwrap();
    assert!(server.read(&stranger.encrypt("a", &[1.0; 16]).unwrap()).is_err());
    let error = elsewhere.read(&a).unwrap_err().to_string();
    assert!(error.contains("take the plan that it was made for"), "{error}");
    assert!(Server::new(client.plan().clone(), &other.evaluation_keys().unwrap()).is_err());
    let sealed = server.read(&a).unwrap();
    let error = server.run(std::slice::from_ref(&sealed), |_| ()).unwrap_err().to_string();
    assert!(error.contains("\"b\" is missing"), "{error}");
    let error = server.run(&[sealed.clone(), sealed], |_| ()).unwrap_err().to_string();
    assert!(error.contains("came twice"), "{error}");
    for byte in (0..a.len()).step_by(997) {
        let mut damaged = a.clone();
        damaged[byte] ^= 1;
        assert!(server.read(&damaged).is_err(), "byte {byte}");
    }
    // What was not declared never leaves the client.
    for (values, says) in [
        (vec![256.0; 16], "element 0 is 256"),
        (vec![0.5; 16], "multiples of 1"),
        (vec![f64::NAN; 16], "is NaN"),
        (vec![1.0; 15], "got 15"),
    ] {
        let error = client.encrypt("a", &values).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(client.encrypt("c", &[1.0; 16]).unwrap_err().to_string().contains("\"a\", \"b\""));
}

#[test]
fn one_constant_serves_every_level_and_every_run() {
    let real = Numbers { step: 0.0, low: -1.0, high: 1.0 };
    let weights: Vec<f64> = (0..16).map(|i| f64::from(i - 8) / 8.0).collect();
    // (x w + w) w w, where one constant is added once and is a factor at three levels.
    let circuit = Circuit {
        slots: 16,
        inputs: vec![input("x", 16, real, 1.0)],
        constants: vec![weights.clone()],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps: vec![
            Step::MultiplyVector(0, 0),
            Step::AddVector(1, 0),
            Step::MultiplyVector(2, 0),
            Step::MultiplyVector(3, 0),
        ],
        outputs: vec![output("result", 16, 4, Numbers { low: -2.0, high: 2.0, ..real }, 1.0)],
    };
    let plan = Arc::new(Plan::new(circuit, params(3), vec![]).unwrap());
    for _ in 0..2 {
        // Another client of the plan finds what is encoded already.
        let client = Client::generate(plan.clone()).unwrap();
        let server = Server::new(plan.clone(), &client.evaluation_keys().unwrap()).unwrap();
        for turn in 0..3 {
            let x: Vec<f64> = (0..16).map(|i| f64::from((i * 5 + turn) % 7 - 3) / 3.0).collect();
            let sealed = server.read(&client.encrypt("x", &x).unwrap()).unwrap();
            let first = server.run(std::slice::from_ref(&sealed), |_| ()).unwrap();
            assert_eq!(first, server.run(&[sealed], |_| ()).unwrap());
            let found = client.decrypt(&first).unwrap().swap_remove(0).values;
            for ((found, x), w) in found.iter().zip(&x).zip(&weights) {
                assert!((found - (x * w + w) * w * w).abs() < 1e-6, "{found} of {x}, {w}");
            }
        }
    }
}
