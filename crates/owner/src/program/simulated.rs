//! Computes a circuit on numbers with the noise that encryption is forecast to add. The key holder runs it, without a key.

use super::clear::{decoded, placed};
use super::tolerance::traced;
use super::trial::TrialMachine;
use super::{Answer, Circuit, Clear, FAILURE_BITS, Held, Machine, Mixed, Plan, Trial, execute};
use crate::error::Result;
use ciphervec_he_secret::ckks::{
    Deviation, LookupTable, ParamsSpec, Polynomial, Ring, Sign, Traced,
};
use ciphervec_he_secret::gaussian;

/// A machine on plain numbers, to which every step adds noise of the standard deviation that is
/// forecast for it alone: Gaussian, times what a secret key has in a slot where it has a part in it.
/// What came with its operands goes the way that numbers go, so that comparisons of what is close fail
/// as often as encrypted ones.
pub struct Simulated {
    trial: TrialMachine,
    seed: [u8; 32],
    /// Squares of the values of a secret key, on average 1.
    key: Vec<f64>,
}

/// A register: its numbers, and what is known of the ciphertext that they stand for.
#[derive(Clone)]
pub struct Noisy {
    values: Vec<f64>,
    traced: Traced,
}

impl Simulated {
    /// The outputs of a circuit under these parameters, as a key holder would decode them, for the
    /// values of its inputs in row-major order. The same seed draws the same noise.
    ///
    /// # Errors
    /// As [`Clear::answers`], and where the parameters do not serve.
    pub fn answers(
        circuit: &Circuit,
        spec: &ParamsSpec,
        seed: [u8; 32],
        inputs: &[Vec<f64>],
    ) -> Result<Vec<Answer>> {
        let tracing = traced(circuit, FAILURE_BITS, false, true);
        Self::on(circuit, TrialMachine::new(spec, Some(tracing))?, seed, inputs)
    }

    /// [`Self::answers`] of a plan.
    ///
    /// # Errors
    /// As [`Self::answers`], and where a server would stop.
    pub fn of(plan: &Plan, seed: [u8; 32], inputs: &[Vec<f64>]) -> Result<Vec<Answer>> {
        if let Some(bootstrapper) = plan.bootstrapper() {
            Trial::served(plan.circuit(), bootstrapper)?;
        }
        Self::on(plan.circuit(), TrialMachine::simulating(plan), seed, inputs)
    }

    fn on(
        circuit: &Circuit,
        trial: TrialMachine,
        seed: [u8; 32],
        inputs: &[Vec<f64>],
    ) -> Result<Vec<Answer>> {
        // Other streams are the steps'.
        let repeats =
            if trial.refreshes() { 1 } else { (trial.max_slots() / circuit.slots).max(1) };
        let key = gaussian::pairs(&seed, u64::MAX, circuit.slots * repeats);
        let square = |&[re, im]: &[f64; 2]| match trial.ring() {
            Ring::ConjugateInvariant => re * re,
            _ => 0.5 * (re * re + im * im),
        };
        let mean = |slot: &[[f64; 2]]| slot.iter().map(square).sum::<f64>() / repeats as f64;
        let key = key.chunks(repeats).map(mean).collect();
        let machine = Simulated { key, trial, seed };
        let values = placed(circuit, inputs)?;
        let expected = machine.trial.inputs(circuit)?;
        let registers = values.into_iter().zip(expected).map(|both| match both {
            (Held::Sealed(values), Held::Sealed(traced)) => {
                let values = machine.with_noise(values, &traced);
                Held::Sealed(Noisy { values, traced })
            }
            (Held::Sealed(values) | Held::Public(values), _) => Held::Public(values),
        });
        let mixed = Mixed::from_parts(&machine, Clear);
        let outputs = execute(circuit, &mixed, registers.collect(), |_, _| Ok(()))?;
        let shown = |held: Held<Noisy, Vec<f64>>| match held {
            Held::Sealed(one) => one.values,
            Held::Public(values) => values,
        };
        decoded(circuit, &outputs.into_iter().map(shown).collect::<Vec<_>>())
    }

    /// Numbers plus noise of which this much is expected.
    fn with_noise(&self, mut values: Vec<f64>, own: &Traced) -> Vec<f64> {
        let Deviation { std, keyed } = own.deviation();
        if std > 0.0 {
            // What is certain to be off alike is.
            let noise = gaussian::pairs(&self.seed, own.stream(), values.len().div_ceil(2));
            let drawn = noise.iter().flatten().zip(&self.key);
            for (value, (one, key)) in values.iter_mut().zip(drawn) {
                *value += std * (1.0 - keyed + keyed * key).sqrt() * one;
            }
        }
        values
    }

    fn one(
        &self,
        a: &Noisy,
        clear: impl FnOnce(&Vec<f64>) -> Result<Vec<f64>>,
        trial: impl Fn(&Traced) -> Result<Traced>,
    ) -> Result<Noisy> {
        let own = trial(&a.traced.silent())?;
        let values = self.with_noise(clear(&a.values)?, &own);
        Ok(Noisy { values, traced: self.kept(trial(&a.traced)?) })
    }

    /// What is kept of an expectation: of one in a loop that refreshes no errors, as those of all
    /// rounds together say nothing of those that stand in slots.
    fn kept(&self, traced: Traced) -> Traced {
        if self.trial.refreshes() { traced.silent() } else { traced }
    }

    fn two(
        &self,
        (a, b): (&Noisy, &Noisy),
        clear: impl FnOnce(&Vec<f64>, &Vec<f64>) -> Result<Vec<f64>>,
        trial: impl Fn(&Traced, &Traced) -> Result<Traced>,
    ) -> Result<Noisy> {
        let own = trial(&a.traced.silent(), &b.traced.silent())?;
        let values = self.with_noise(clear(&a.values, &b.values)?, &own);
        Ok(Noisy { values, traced: self.kept(trial(&a.traced, &b.traced)?) })
    }
}

impl Machine for Simulated {
    type Register = Noisy;

    fn add(&self, a: &Noisy, b: &Noisy) -> Result<Noisy> {
        self.two((a, b), |x, y| Clear.add(x, y), |x, y| self.trial.add(x, y))
    }

    fn subtract(&self, a: &Noisy, b: &Noisy) -> Result<Noisy> {
        self.two((a, b), |x, y| Clear.subtract(x, y), |x, y| self.trial.subtract(x, y))
    }

    fn negate(&self, a: &Noisy) -> Result<Noisy> {
        self.one(a, |x| Clear.negate(x), |x| self.trial.negate(x))
    }

    fn add_number(&self, a: &Noisy, number: f64) -> Result<Noisy> {
        self.one(a, |x| Clear.add_number(x, number), |x| self.trial.add_number(x, number))
    }

    fn multiply_number(&self, a: &Noisy, number: f64) -> Result<Noisy> {
        let trial = |x: &Traced| self.trial.multiply_number(x, number);
        self.one(a, |x| Clear.multiply_number(x, number), trial)
    }

    fn multiply_integer(&self, a: &Noisy, factor: i64) -> Result<Noisy> {
        let trial = |x: &Traced| self.trial.multiply_integer(x, factor);
        self.one(a, |x| Clear.multiply_integer(x, factor), trial)
    }

    fn add_vector(&self, a: &Noisy, values: &[f64]) -> Result<Noisy> {
        self.one(a, |x| Clear.add_vector(x, values), |x| self.trial.add_vector(x, values))
    }

    fn multiply_vector(&self, a: &Noisy, values: &[f64]) -> Result<Noisy> {
        let trial = |x: &Traced| self.trial.multiply_vector(x, values);
        self.one(a, |x| Clear.multiply_vector(x, values), trial)
    }

    fn multiply(&self, a: &Noisy, b: &Noisy) -> Result<Noisy> {
        self.two((a, b), |x, y| Clear.multiply(x, y), |x, y| self.trial.multiply(x, y))
    }

    fn square(&self, a: &Noisy) -> Result<Noisy> {
        self.one(a, |x| Clear.square(x), |x| self.trial.square(x))
    }

    fn rotate(&self, a: &Noisy, steps: &[i64]) -> Result<Vec<Noisy>> {
        let rotate = |&by: &i64| {
            let mut values = a.values.clone();
            let places = by.rem_euclid(values.len() as i64) as usize;
            values.rotate_left(places);
            let trial = |x: &Traced| Ok(self.trial.rotate(x, &[by])?.swap_remove(0));
            self.one(a, |_| Ok(values), trial)
        };
        steps.iter().map(rotate).collect()
    }

    fn polynomial(&self, a: &Noisy, polynomial: &Polynomial) -> Result<Noisy> {
        let trial = |x: &Traced| self.trial.polynomial(x, polynomial);
        self.one(a, |x| Clear.polynomial(x, polynomial), trial)
    }

    fn sign(&self, a: &Noisy, sign: &Sign) -> Result<Noisy> {
        self.one(a, |x| Clear.sign(x, sign), |x| self.trial.sign(x, sign))
    }

    fn sign_stage(&self, a: &Noisy, sign: &Sign, stage: usize) -> Result<Noisy> {
        let trial = |x: &Traced| self.trial.sign_stage(x, sign, stage);
        self.one(a, |x| Clear.sign_stage(x, sign, stage), trial)
    }

    fn refresh(&self, a: &Noisy) -> Result<Noisy> {
        self.one(a, |x| Clear.refresh(x), |x| self.trial.refresh(x))
    }

    fn look_up(&self, a: &Noisy, tables: &[&LookupTable]) -> Result<Vec<Noisy>> {
        let own = self.trial.look_up(&a.traced.silent(), tables)?;
        let traced = self.trial.look_up(&a.traced, tables)?;
        let values = Clear.look_up(&a.values, tables)?.into_iter().zip(own).zip(traced);
        let noisy = values.map(|((values, own), traced)| Noisy {
            values: self.with_noise(values, &own),
            traced: self.kept(traced),
        });
        Ok(noisy.collect())
    }

    fn bound(&self, a: Noisy, bound: f64) -> Result<Noisy> {
        Ok(Noisy { traced: self.trial.bound(a.traced, bound)?, ..a })
    }

    fn settle(&self, a: &Noisy) -> Result<Option<Noisy>> {
        let Some(traced) = self.trial.settle(&a.traced)? else { return Ok(None) };
        let own = self.trial.settle(&a.traced.silent())?.unwrap_or_else(|| traced.silent());
        Ok(Some(Noisy { values: self.with_noise(a.values.clone(), &own), traced }))
    }

    fn finish(&self, a: &Noisy) -> Result<Noisy> {
        Ok(Noisy { traced: self.trial.finish(&a.traced)?, values: a.values.clone() })
    }
}
