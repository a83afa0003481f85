//! Computes the steps of a circuit on CKKS ciphertexts, for the server: it holds evaluation keys
//! only.

use super::encoded::Encoded;
use super::look_up::nothing_to_look_up_with;
use super::machine::{Constant, Machine};
use crate::error::{Error, Result};
use ciphervec_he::ckks::{
    Bootstrapper, BootstrappingKeys, Ciphertext, Components, EvaluationKeys, Evaluator,
    Exponential, LookupTable, Params, Polynomial, Sign,
};
use std::sync::Arc;

/// Bits that an answer's modulus has beyond its largest number: the sign, and room for noise.
const ANSWER_BITS: f64 = 3.0;

/// A machine on leveled CKKS ciphertexts. Keys come in sets, each for a level: the keys of a low
/// level are small.
pub struct CkksMachine {
    params: Arc<Params>,
    /// By level, ascending.
    evaluators: Vec<Evaluator>,
    encoded: Arc<Encoded>,
    /// What refreshes registers, where the plan has that done.
    bootstrapping: Option<(Arc<Bootstrapper>, BootstrappingKeys)>,
    /// What looks tables up with the same keys, where the plan has that done.
    exponential: Option<Arc<Exponential>>,
}

impl CkksMachine {
    /// A machine with these keys, all of one secret key.
    pub fn new(params: &Arc<Params>, mut keys: Vec<Arc<EvaluationKeys>>) -> Self {
        keys.sort_by_key(|keys| keys.level());
        let mut evaluators: Vec<_> = keys.into_iter().map(Evaluator::new).collect();
        if evaluators.is_empty() {
            evaluators.push(Evaluator::without_keys(params.clone()));
        }
        CkksMachine {
            params: params.clone(),
            evaluators,
            encoded: Arc::default(),
            bootstrapping: None,
            exponential: None,
        }
    }

    /// The same, which keeps encoded constants where others of the plan find them.
    pub(super) fn keeping(mut self, encoded: Arc<Encoded>) -> Self {
        self.encoded = encoded;
        self
    }

    /// The same, which refreshes registers.
    pub fn refreshing(mut self, bootstrapper: Arc<Bootstrapper>, keys: BootstrappingKeys) -> Self {
        self.bootstrapping = Some((bootstrapper, keys));
        self
    }

    /// The same, which looks tables up beside refreshing.
    pub fn looking_up(mut self, exponential: Arc<Exponential>) -> Self {
        self.exponential = Some(exponential);
        self
    }

    /// Whoever does what needs no key.
    fn any(&self) -> &Evaluator {
        &self.evaluators[0]
    }

    /// The first that can: who has the keys for the level is tried before who has larger ones.
    fn first<T>(
        &self,
        level: usize,
        work: impl Fn(&Evaluator) -> core::result::Result<T, ciphervec_he::Error>,
    ) -> Result<T> {
        let reaches =
            |evaluator: &&Evaluator| evaluator.keys().is_some_and(|keys| keys.level() >= level);
        let mut failure = None;
        for evaluator in self.evaluators.iter().filter(reaches) {
            match work(evaluator) {
                Ok(done) => return Ok(done),
                Err(error @ ciphervec_he::Error::MissingKey { .. }) => failure = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(work(self.any())?),
        }
    }
}

impl Machine for CkksMachine {
    type Register = Arc<Ciphertext>;

    fn add(&self, a: &Arc<Ciphertext>, b: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().add(a, b)?))
    }

    fn subtract(&self, a: &Arc<Ciphertext>, b: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().sub(a, b)?))
    }

    fn negate(&self, a: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().negate(a)))
    }

    fn add_number(&self, a: &Arc<Ciphertext>, number: f64) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().add_scalar(a, number)?))
    }

    fn multiply_number(&self, a: &Arc<Ciphertext>, number: f64) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().multiply_scalar(a, number)?))
    }

    fn multiply_integer(&self, a: &Arc<Ciphertext>, factor: i64) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().multiply_integer(a, factor)?))
    }

    fn add_vector(&self, a: &Arc<Ciphertext>, values: &[f64]) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().add_values(a, values)?))
    }

    fn multiply_vector(&self, a: &Arc<Ciphertext>, values: &[f64]) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().multiply_values(a, values)?))
    }

    fn add_constant(&self, a: &Arc<Ciphertext>, constant: Constant<'_>) -> Result<Arc<Ciphertext>> {
        let operand = (a.level(), a.scale(), a.slots());
        let plaintext = self.encoded.get(&self.params, constant, operand)?;
        Ok(Arc::new(self.any().add_plain(a, &plaintext)?))
    }

    fn multiply_constant(
        &self,
        a: &Arc<Ciphertext>,
        constant: Constant<'_>,
    ) -> Result<Arc<Ciphertext>> {
        let operand = (a.level(), self.any().factor_scale(a)?, a.slots());
        let plaintext = self.encoded.get(&self.params, constant, operand)?;
        Ok(Arc::new(self.any().multiply_plain(a, &plaintext)?))
    }

    fn multiply(&self, a: &Arc<Ciphertext>, b: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().multiply(a, b)?))
    }

    fn square(&self, a: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(self.any().square(a)?))
    }

    fn rotate(&self, a: &Arc<Ciphertext>, steps: &[i64]) -> Result<Vec<Arc<Ciphertext>>> {
        if let [steps] = steps {
            let rotated = self.first(a.level(), |evaluator| evaluator.rotate(a, *steps))?;
            return Ok(vec![Arc::new(rotated)]);
        }
        let decomposed = self.any().decompose(a)?;
        let rotate = |steps: &i64| {
            let rotated = self.first(a.level(), |evaluator| {
                evaluator.rotate_hoisted(&decomposed, core::slice::from_ref(steps))
            });
            rotated.map(|mut one| Arc::new(one.swap_remove(0)))
        };
        steps.iter().map(rotate).collect()
    }

    fn polynomial(&self, a: &Arc<Ciphertext>, polynomial: &Polynomial) -> Result<Arc<Ciphertext>> {
        self.first(a.level(), |evaluator| evaluator.polynomial(a, polynomial)).map(Arc::new)
    }

    fn sign(&self, a: &Arc<Ciphertext>, sign: &Sign) -> Result<Arc<Ciphertext>> {
        self.first(a.level(), |evaluator| evaluator.sign(a, sign)).map(Arc::new)
    }

    fn sign_stage(
        &self,
        a: &Arc<Ciphertext>,
        sign: &Sign,
        stage: usize,
    ) -> Result<Arc<Ciphertext>> {
        self.first(a.level(), |evaluator| evaluator.sign_stage(a, sign, stage)).map(Arc::new)
    }

    fn refresh(&self, a: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        let Some((bootstrapper, keys)) = &self.bootstrapping else {
            let detail = "no bootstrapping keys are here to refresh a register with".into();
            return Err(Error::Program { operation: "a refresh", detail });
        };
        Ok(Arc::new(bootstrapper.bootstrap(a, keys)?))
    }

    fn look_up(
        &self,
        a: &Arc<Ciphertext>,
        tables: &[&LookupTable],
    ) -> Result<Vec<Arc<Ciphertext>>> {
        let (Some((_, keys)), Some(exponential)) = (&self.bootstrapping, &self.exponential) else {
            return Err(nothing_to_look_up_with("a look-up"));
        };
        let roots = exponential.from_slots(a, Components::Real, keys)?;
        let values = roots.iter().map(|root| exponential.look_up_all(root, tables, keys));
        let values: Vec<Vec<Ciphertext>> = values.collect::<core::result::Result<_, _>>()?;
        Ok(values.into_iter().flatten().map(Arc::new).collect())
    }

    fn bound(&self, a: Arc<Ciphertext>, bound: f64) -> Result<Arc<Ciphertext>> {
        Ok(Arc::new(Arc::unwrap_or_clone(a).with_magnitude(bound)?))
    }

    fn settle(&self, a: &Arc<Ciphertext>) -> Result<Option<Arc<Ciphertext>>> {
        if a.degree() == 1 && !self.any().is_pending(a) {
            return Ok(None);
        }
        let settled = self.first(a.level(), |evaluator| evaluator.normalise(a))?;
        Ok(Some(Arc::new(settled)))
    }

    fn finish(&self, a: &Arc<Ciphertext>) -> Result<Arc<Ciphertext>> {
        let needed = (a.scale() * a.magnitude()).log2() + ANSWER_BITS;
        let fits = |level: &usize| self.params.log_modulus(*level) >= needed;
        match (0..a.level()).find(fits) {
            Some(level) => Ok(Arc::new(self.any().drop_to(a, level)?)),
            None => Ok(a.clone()),
        }
    }
}
