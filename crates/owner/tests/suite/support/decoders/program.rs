//! The halves of a program that has every step, with everything that they send.

use ciphervec_he_secret::ckks::{LookupTable, Params, ParamsSpec, Polynomial, Ring, Sign};
use ciphervec_he_secret::params::Security;
use ciphervec_owner::program::{
    Block, Circuit, Client, Decoding, Domain, Input, KeySet, Loop, Numbers, Output, Placement,
    Plan, Reading, Server, Step, View,
};
use std::error::Error;
use std::sync::{Arc, LazyLock};

/// A server, a client, and what travels.
pub struct Program {
    server: Server,
    client: Client,
    pub plan: Vec<u8>,
    pub keys: Vec<u8>,
    pub input: Vec<u8>,
    pub answer: Vec<u8>,
}

/// A number and its square, for eight of 0 to 15.
pub static PROGRAM: LazyLock<Program> =
    LazyLock::new(|| Program::try_new(false).expect("a small program can be made"));

/// The same of numbers that are public: what is sent is in the clear.
pub static PUBLIC_PROGRAM: LazyLock<Program> =
    LazyLock::new(|| Program::try_new(true).expect("a small program can be made"));

/// So many elements in a row.
pub fn row(count: u32) -> Placement {
    let loops = vec![Loop { count, element: 1, place: 1 }];
    Placement { blocks: vec![Block { element: 0, place: 0, loops }], domain: Domain::Slots }
}

/// x² + 3, for x in units of 16.
pub fn square() -> Circuit {
    let numbers = |high| Numbers { step: 1.0, low: 0.0, high };
    let views =
        vec![View { registers: 1, unit: 16.0, reading: Reading::Numbers, placement: row(8) }];
    Circuit {
        slots: 8,
        inputs: vec![Input {
            name: "x".into(),
            public: false,
            shape: vec![8],
            numbers: numbers(15.0),
            views,
        }],
        constants: vec![],
        polynomials: vec![],
        signs: vec![],
        tables: vec![],
        steps: vec![Step::Square(0), Step::AddNumber(1, 3.0 / 256.0)],
        outputs: vec![Output {
            name: "result".into(),
            shape: vec![8],
            numbers: numbers(228.0),
            unit: 256.0,
            registers: vec![2],
            placement: row(8),
            decoding: Decoding::Numbers,
        }],
    }
}

/// `square`, and a step of every other kind that nothing comes of.
pub fn every_step() -> Result<Circuit, Box<dyn Error>> {
    let mut circuit = square();
    circuit.constants = vec![vec![0.5, -1.0], vec![0.25]];
    circuit.polynomials =
        vec![Polynomial::chebyshev(-1.0, 1.0, &[0.1, 0.5])?, Polynomial::power(&[0.25, 0.5])?];
    circuit.signs = vec![Sign::new(0.5, 2.0)?];
    circuit.steps.extend([
        Step::Add(0, 0),
        Step::Subtract(3, 0),
        Step::Negate(4),
        Step::MultiplyInteger(0, -3),
        Step::MultiplyNumber(0, 0.5),
        Step::AddVector(0, 0),
        Step::MultiplyVector(0, 1),
        Step::Multiply(0, 3),
        Step::Rotate(0, 3),
        Step::Polynomial(0, 0),
        Step::Polynomial(0, 1),
        Step::Bound(0, 1.0),
        Step::Sign(0, 0),
    ]);
    Ok(circuit)
}

/// `square` with a register refreshed on its way, and a stage of a sign of which nothing comes.
pub fn refreshed() -> Result<Circuit, Box<dyn Error>> {
    let mut circuit = square();
    circuit.signs = vec![Sign::refreshed(0.05, 8.0, (3, 1e-6), 1e-4)?, Sign::new(0.5, 2.0)?];
    circuit.steps = vec![
        Step::Square(0),
        Step::Bound(1, 1.0),
        Step::Refresh(2),
        Step::AddNumber(3, 3.0 / 256.0),
        Step::SignStage(3, 0, 0),
    ];
    circuit.outputs[0].registers = vec![4];
    Ok(circuit)
}

/// The same from a table of sixteen squares, and another one, cleaned, of which nothing comes.
pub fn looked_up() -> Result<Circuit, Box<dyn Error>> {
    let mut circuit = refreshed()?;
    let squares: Vec<f64> = (0..16).map(|j| f64::from(j * j + 3) / 256.0).collect();
    circuit.tables =
        vec![LookupTable::new(&squares)?, LookupTable::new(&[0.5, -0.25])?.with_cleanings(2)?];
    circuit.steps.extend([Step::LookUp(0, 0), Step::LookUp(3, 1)]);
    circuit.outputs[0].registers = vec![6];
    Ok(circuit)
}

/// Σ table[i] over four indices i of 0 … 7: counts of an input, times a constant.
pub fn table() -> Circuit {
    let mut circuit = square();
    let reading = Reading::Counts { count: 8, terms: 4, inner: 1 };
    circuit.inputs[0].shape = vec![4];
    circuit.inputs[0].numbers.high = 7.0;
    circuit.inputs[0].views[0].unit = 1.0;
    circuit.inputs[0].views[0].reading = reading;
    circuit.constants = vec![(0..8).map(|i| f64::from(i * i)).collect()];
    circuit.steps = vec![Step::MultiplyVector(0, 0)];
    circuit.outputs[0].registers = vec![1];
    circuit.outputs[0].unit = 1.0;
    circuit
}

/// Σ w_i x_i of four numbers 0 … 7, as a product of polynomials.
pub fn weighted() -> Circuit {
    let mut circuit = square();
    let placed = |place, count| Placement {
        blocks: vec![Block {
            element: 0,
            place,
            loops: vec![Loop { count, element: 1, place: 1 }],
        }],
        domain: Domain::Coefficients,
    };
    circuit.slots = 16;
    circuit.inputs[0].shape = vec![4];
    circuit.inputs[0].numbers.high = 7.0;
    circuit.inputs[0].views[0].unit = 8.0;
    circuit.inputs[0].views[0].placement = placed(1, 4);
    let mut weights = [0.0; 16];
    weights[5..9].copy_from_slice(&[0.25, 1.0, 0.5, 0.125]);
    circuit.constants = vec![Domain::slots_of(&weights)];
    circuit.steps = vec![Step::MultiplyVector(0, 0)];
    let out = &mut circuit.outputs[0];
    (out.shape, out.registers, out.unit) = (vec![1], vec![1], 64.0);
    out.placement = placed(4, 1);
    circuit
}

/// x² + w, and w, which is public.
pub fn shown() -> Circuit {
    let mut circuit = square();
    let mut w = Input { name: "w".into(), public: true, ..circuit.inputs[0].clone() };
    w.views[0].unit = 256.0;
    circuit.inputs.push(w);
    circuit.steps = vec![Step::Square(0), Step::Add(2, 1)];
    circuit.outputs[0].numbers.high = 240.0;
    circuit.outputs[0].registers = vec![3];
    let w = Output { name: "w".into(), registers: vec![1], ..circuit.outputs[0].clone() };
    circuit.outputs.push(w);
    circuit
}

/// x w², and w is public: a secret one would take a key for products.
pub fn weighed() -> Circuit {
    let mut circuit = shown();
    circuit.steps = vec![Step::Square(1), Step::Multiply(0, 2)];
    circuit.outputs.truncate(1);
    circuit.outputs[0].numbers.high = 3375.0;
    circuit.outputs[0].unit = 4096.0;
    circuit
}

/// The smallest ring that is secure, with one level.
pub fn params() -> Result<Arc<Params>, Box<dyn Error>> {
    Ok(Params::new(ParamsSpec {
        log_degree: 12,
        ring: Ring::ConjugateInvariant,
        base_bits: 36,
        scale_bits: 25,
        levels: 1,
        special_primes: 1,
        special_bits: 36,
        digits: 2,
        security: Security::Classical128,
    })?)
}

/// A key for products, and one for a rotation.
pub fn key_sets() -> Vec<KeySet> {
    vec![
        KeySet { level: 0, relinearise: false, rotations: [3].into() },
        KeySet { level: 1, relinearise: true, rotations: [].into() },
    ]
}

impl Program {
    fn try_new(public: bool) -> Result<Self, Box<dyn Error>> {
        let (every, mut runs) = (every_step()?, square());
        runs.inputs[0].public = public;
        let sets = key_sets();
        let (every, sets) = if public { (weighed(), sets[..1].to_vec()) } else { (every, sets) };
        let plan = Plan::new(every, params()?, sets)?.to_bytes();
        // Steps of which nothing comes are run all the same, and take more levels than there are.
        let runs = Arc::new(Plan::new(runs, params()?, key_sets())?);
        let client = Client::generate(runs.clone())?;
        let keys = client.evaluation_keys()?;
        let server = Server::new(runs, &keys)?;
        let input = client.encrypt("x", &[0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 15.0])?;
        let answer = server.run(&[server.read(&input)?], |_| ())?;
        Ok(Program { server, client, plan, keys, input, answer })
    }

    /// What goes to both halves.
    pub fn read_plan(&self, bytes: &[u8]) -> bool {
        Plan::from_bytes(bytes).is_ok_and(|plan| {
            assert_eq!(plan.to_bytes(), bytes);
            let again =
                Plan::new(plan.circuit().clone(), plan.params().clone(), plan.keys().into());
            let again = again.map(|again| {
                again.with_failure(plan.failure()).with_undecided(plan.undecided()).id()
            });
            assert_eq!(again.ok(), Some(plan.id()));
            true
        })
    }

    /// What a server computes with.
    pub fn read_keys(&self, bytes: &[u8]) -> bool {
        Server::new(self.server.plan().clone(), bytes).is_ok()
    }

    /// An input, which is computed with.
    pub fn read_input(&self, bytes: &[u8]) -> bool {
        self.server.read(bytes).is_ok_and(|input| {
            assert!(self.server.run(&[input], |_| ()).is_ok_and(|answer| !answer.is_empty()));
            true
        })
    }

    /// An answer, which is decrypted: numbers that the result can have, or none.
    pub fn read_answer(&self, bytes: &[u8]) -> bool {
        self.client.decrypt(bytes).is_ok_and(|answers| {
            assert!(answers[0].values.iter().all(|x| x.is_finite() && x.fract() == 0.0));
            true
        })
    }
}
