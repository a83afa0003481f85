//! A plan: a circuit, parameters and the keys that it needs, with its public name. Public numbers only.

use super::arrays::Input;
use super::circuit::{Circuit, Step};
use super::encoded::Encoded;
use super::look_up::{beside, nothing_to_look_up_with};
use super::numbers::elements;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{
    Bootstrapper, Ciphertext, Exponential, KeyPlan, Params, Ring, SeededCiphertext,
};
use ciphervec_he::wire::HEADER_LEN;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most sets of keys of a plan.
pub(super) const MAX_KEY_SETS: usize = 64;
/// Most keys of a set.
pub(super) const MAX_KEYS: usize = 1 << 12;

/// Bytes of a plan's id in what belongs to it, of the length of a frame within, and of the number of
/// an input.
const ID_BYTES: usize = 16;
const LENGTH_BYTES: usize = 8;
const INDEX_BYTES: usize = 4;

/// Evaluation keys for ciphertexts up to a level.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeySet {
    /// The level.
    pub level: usize,
    /// Whether products are relinearised with them.
    pub relinearise: bool,
    /// Rotations.
    pub rotations: BTreeSet<i64>,
}

impl KeySet {
    #[doc(hidden)]
    pub fn key_plan(&self) -> KeyPlan {
        let plan = KeyPlan::new().rotations(self.rotations.iter().copied()).at_level(self.level);
        if self.relinearise { plan.relinearise() } else { plan }
    }
}

/// The hash that binds keys, inputs and answers to a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlanId(pub [u8; 16]);

impl PlanId {
    pub(super) fn of(payload: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&blake3::hash(payload).as_bytes()[..16]);
        PlanId(id)
    }
}

impl core::fmt::Display for PlanId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&crate::decode::hex(&self.0))
    }
}

/// What whoever compiled a plan says of its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Said {
    /// log2 of one over the chance that one is wrong or refused; 0 if nothing is said.
    pub failure: u8,
    /// What numbers do that are too close to be told apart.
    pub undecided: Undecided,
}

/// What the key's noise decides where a program compares numbers that are too close to be told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Undecided {
    /// Nothing: all are told apart.
    #[default]
    Nothing,
    /// Which of them is named or ranked first.
    Named,
    /// Whether there is an answer, too.
    Refused,
}

/// A program as it is run: a checked circuit with all that a key holder and a server must agree on.
#[derive(Clone, Debug)]
pub struct Plan {
    circuit: Circuit,
    params: Arc<Params>,
    keys: Vec<KeySet>,
    bootstrapper: Option<Arc<Bootstrapper>>,
    exponential: Option<Arc<Exponential>>,
    encoded: Arc<Encoded>,
    said: Said,
    id: PlanId,
}

/// What a plan is run under.
pub(super) enum Ground {
    /// As many levels as the circuit takes.
    Levels(Arc<Params>),
    /// Registers are refreshed.
    Refreshed(Arc<Bootstrapper>),
}

impl Plan {
    /// A plan of a circuit under these parameters.
    ///
    /// # Errors
    /// [`Error::Range`] for a circuit that [`Circuit::check`] refuses, more slots than the
    /// parameters have, a set of keys for a level that they don't have, parameters whose levels come
    /// in stages, and a product or a rotation that no set has a key for.
    pub fn new(circuit: Circuit, params: Arc<Params>, keys: Vec<KeySet>) -> Result<Self> {
        Plan::identified(circuit, Ground::Levels(params), keys)
    }

    /// A plan of a circuit whose steps refresh registers.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn refreshing(
        circuit: Circuit,
        bootstrapper: Arc<Bootstrapper>,
        keys: Vec<KeySet>,
    ) -> Result<Self> {
        Plan::identified(circuit, Ground::Refreshed(bootstrapper), keys)
    }

    /// The plan, which says that an answer is wrong or refused with a chance below `2^-bits`; 0 says
    /// nothing.
    pub fn with_failure(self, bits: u8) -> Self {
        let said = Said { failure: bits, ..self.said };
        self.saying(said).renamed()
    }

    /// The plan, which says what the key's noise decides.
    pub fn with_undecided(self, undecided: Undecided) -> Self {
        let said = Said { undecided, ..self.said };
        self.saying(said).renamed()
    }

    /// The same under the same name.
    pub(super) fn saying(self, said: Said) -> Self {
        Plan { said, ..self }
    }

    fn renamed(self) -> Self {
        Plan { id: PlanId::of(&self.payload()), ..self }
    }

    pub(super) fn said(&self) -> Said {
        self.said
    }

    /// What the key's noise decides, as its maker says.
    pub fn undecided(&self) -> Undecided {
        self.said.undecided
    }

    /// log2 of one over the chance that an answer is wrong or refused, as its maker says; 0 if
    /// nothing is said.
    pub fn failure(&self) -> u8 {
        self.said.failure
    }

    fn identified(circuit: Circuit, ground: Ground, keys: Vec<KeySet>) -> Result<Self> {
        let plan = Plan::named(circuit, ground, keys, PlanId([0; 16]))?;
        Ok(Plan { id: PlanId::of(&plan.payload()), ..plan })
    }

    /// A plan of that name, of which nothing is said.
    pub(super) fn named(
        circuit: Circuit,
        ground: Ground,
        keys: Vec<KeySet>,
        id: PlanId,
    ) -> Result<Self> {
        circuit.check()?;
        let (params, bootstrapper) = match ground {
            Ground::Levels(params) => (params, None),
            Ground::Refreshed(one) => (one.params().clone(), Some(one)),
        };
        if bootstrapper.is_none() && (circuit.refreshes() > 0 || !params.stages().is_empty()) {
            let detail = "registers are refreshed, or levels come in stages, and no bootstrapper \
                          is there for it"
                .into();
            return Err(Error::Program { operation: "a plan", detail });
        }
        let range =
            |what, expected: String, actual: String| Error::Range { what, expected, actual };
        if bootstrapper.is_some() && params.ring() != Ring::Standard {
            let [expected, actual] =
                [Ring::Standard, params.ring()].map(|ring| ring.as_str().into());
            return Err(range("the ring that registers are refreshed in", expected, actual));
        }
        let exponential = match (&bootstrapper, circuit.tables.len()) {
            (_, 0) => None,
            (Some(bootstrapper), _) => Some(beside(bootstrapper)?),
            (None, _) => return Err(nothing_to_look_up_with("a plan")),
        };
        if circuit.slots > params.max_slots() {
            let expected = format!("at most {}, those of the parameters", params.max_slots());
            return Err(range("the number of slots", expected, circuit.slots.to_string()));
        }
        if keys.len() > MAX_KEY_SETS {
            let expected = format!("at most {MAX_KEY_SETS}");
            return Err(range("the sets of keys", expected, keys.len().to_string()));
        }
        for set in &keys {
            if set.level > params.max_level() || set.rotations.len() > MAX_KEYS {
                let expected =
                    format!("of level {} at most and {MAX_KEYS} rotations", params.max_level());
                let actual = format!("level {}, {} rotations", set.level, set.rotations.len());
                return Err(range("a set of keys", expected, actual));
            }
            let slots = params.max_slots() as i64;
            if let Some(far) = set.rotations.iter().find(|steps| !(1..slots).contains(*steps)) {
                let expected = format!("by 1 to {} slots", slots - 1);
                return Err(range("the rotation of a key", expected, far.to_string()));
            }
        }
        let plan = Plan {
            circuit,
            params,
            keys,
            bootstrapper,
            exponential,
            encoded: Arc::default(),
            said: Said::default(),
            id,
        };
        plan.check_keys()?;
        Ok(plan)
    }

    /// Refuses steps that no set has a key for.
    fn check_keys(&self) -> Result<()> {
        let missing = |what: String| Error::Program {
            operation: "a plan",
            detail: format!("no set of keys has one for {what}, which a step needs"),
        };
        let relinearised = self.keys.iter().any(|set| set.relinearise);
        let products = |step: Step| match step {
            Step::Multiply(..) | Step::Square(_) | Step::Sign(..) | Step::SignStage(..) => true,
            Step::Polynomial(_, index) => self.circuit.polynomials[index as usize].degree() > 1,
            _ => false,
        };
        if !relinearised && self.circuit.switching().any(products) {
            return Err(missing("products".into()));
        }
        let slots = self.circuit.slots as i64;
        let rotations = self.keys.iter().flat_map(|set| &set.rotations);
        let held: BTreeSet<i64> = rotations.map(|steps| steps.rem_euclid(slots)).collect();
        for step in self.circuit.switching() {
            if let Step::Rotate(_, steps) = step {
                let steps = i64::from(steps).rem_euclid(slots);
                if steps != 0 && !held.contains(&steps) {
                    return Err(missing(format!("rotations by {steps}")));
                }
            }
        }
        Ok(())
    }

    /// What is computed.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// What refreshes registers, where steps do.
    pub fn bootstrapper(&self) -> Option<&Arc<Bootstrapper>> {
        self.bootstrapper.as_ref()
    }

    /// What looks tables up, where steps do: with the keys that refresh.
    pub fn exponential(&self) -> Option<&Arc<Exponential>> {
        self.exponential.as_ref()
    }

    /// The level that inputs are encrypted at.
    pub fn input_level(&self) -> usize {
        self.bootstrapper.as_ref().map_or(self.params.max_level(), |one| one.level())
    }

    /// The keys that a server needs, beside those of a bootstrapper.
    pub fn keys(&self) -> &[KeySet] {
        &self.keys
    }

    /// Its public name: a hash of all of it.
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// Bytes of the keys that a client sends.
    ///
    /// # Errors
    /// None: keys of a plan have the levels of its parameters.
    pub fn key_bytes(&self) -> Result<usize> {
        let mut bytes = HEADER_LEN + ID_BYTES;
        for set in &self.keys {
            bytes += LENGTH_BYTES + set.key_plan().bytes(&self.params)?;
        }
        if let Some(bootstrapper) = &self.bootstrapper {
            bytes += LENGTH_BYTES + bootstrapper.plan()?.key_bytes;
        }
        Ok(bytes)
    }

    /// Bytes of the keys in a server's memory.
    ///
    /// # Errors
    /// As [`Self::key_bytes`].
    pub fn key_memory(&self) -> Result<u64> {
        let memory = |plan: KeyPlan| Ok(plan.memory(&self.params)? as u64);
        let keys: u64 = self.keys.iter().map(|set| memory(set.key_plan())).sum::<Result<u64>>()?;
        let Some(bootstrapper) = &self.bootstrapper else { return Ok(keys) };
        let refreshing = bootstrapper.key_plans().iter().cloned();
        let refreshing: u64 = refreshing.map(memory).sum::<Result<u64>>()?;
        // And the two keys to and from the sparse secret.
        Ok(keys + refreshing + 2 * memory(KeyPlan::new().relinearise())?)
    }

    /// Constants that servers have encoded.
    pub(super) fn encoded(&self) -> &Arc<Encoded> {
        &self.encoded
    }

    /// Bytes of the matrices that registers are refreshed with, in memory.
    pub(super) fn diagonal_bytes(&self) -> Result<u64> {
        let refreshing = match &self.bootstrapper {
            Some(bootstrapper) => bootstrapper.plan()?.diagonal_bytes as u64,
            None => 0,
        };
        let looking_up = match &self.exponential {
            Some(exponential) => exponential.plan()?.diagonal_bytes as u64,
            None => 0,
        };
        Ok(refreshing + looking_up)
    }

    /// Bytes of an input as it is sent: encrypted, or, if it is public, its numbers.
    pub fn input_bytes(&self, input: &Input) -> usize {
        if input.public {
            let numbers = elements(&input.shape).unwrap_or(0) as usize;
            return HEADER_LEN + ID_BYTES + INDEX_BYTES + numbers * size_of::<f64>();
        }
        let registers: usize = input.views.iter().map(|view| view.registers as usize).sum();
        let one = SeededCiphertext::bytes_at(&self.params, self.input_level());
        HEADER_LEN + ID_BYTES + INDEX_BYTES + registers * (LENGTH_BYTES + one)
    }

    /// Bytes of an answer whose encrypted registers are sent at these levels, as a trial says.
    pub fn answer_bytes(&self, levels: &[usize]) -> usize {
        let one = |&level: &usize| LENGTH_BYTES + Ciphertext::bytes_at(&self.params, level, 1);
        let (public, outputs) = (self.circuit.public(), self.circuit.outputs.iter());
        let registers = outputs.flat_map(|output| &output.registers);
        let open = registers.filter(|&&register| public[register as usize]).count();
        let open = open * (LENGTH_BYTES + self.circuit.slots * size_of::<f64>());
        HEADER_LEN + ID_BYTES + open + levels.iter().map(one).sum::<usize>()
    }
}
