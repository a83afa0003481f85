//! The server of a program: computes the encrypted answer from a plan, a key holder's evaluation keys and encrypted inputs.
//!
//! - keys: `plan id 16 | a frame of evaluation keys for each of the plan's sets`, and, where steps
//!   refresh registers, one of bootstrapping keys;
//! - an input: `plan id 16 | its number u32 | a ciphertext for each of its registers`, or, of a
//!   public one, `plan id 16 | its number u32 | its numbers, f64`;
//! - an answer: `plan id 16 | a ciphertext for each register of each output`, or, of a register that
//!   is computed of public inputs alone, its numbers, f64, in place of a ciphertext;
//!
//! where everything within, but the numbers of an input, is a length u64 and a frame.

use super::arrays::Input;
use super::ckks::CkksMachine;
use super::clear::Clear;
use super::list_bytes::f64_of;
use super::machine::execute;
use super::mixed::{Held, Mixed};
use super::numbers::elements;
use super::plan::Plan;
use crate::error::{Error, Result};
use ciphervec_he::ckks::{BootstrappingKeys, Ciphertext, EvaluationKeys};
use ciphervec_he::wire::{self, HEADER_LEN, Header, KeyId, Kind, Reader, Scheme};
use std::sync::Arc;

/// The half of a program that computes: a plan and the keys of one key holder.
pub struct Server {
    plan: Arc<Plan>,
    machine: CkksMachine,
    key: KeyId,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "program::Server({}, key {})", self.plan.id(), self.key)
    }
}

/// One input, encrypted or public, read and checked.
#[derive(Clone, Debug)]
pub struct Sealed {
    index: usize,
    key: KeyId,
    registers: Vec<Held<Arc<Ciphertext>, Vec<f64>>>,
}

impl Sealed {
    /// Reads an input that a client's `encrypt` wrote under that key.
    ///
    /// # Errors
    /// Damaged or foreign bytes, an input of another plan or under another key, ciphertexts that are
    /// not as the plan has them, and public numbers that the input was not declared to hold.
    pub fn read(plan: &Plan, key: KeyId, bytes: &[u8]) -> Result<Self> {
        let circuit = plan.circuit();
        let mut reader =
            open(plan, Kind::ProgramInput, bytes, |header| expect_key(key, header.key))?;
        let index = reader.u32()? as usize;
        let Some(input) = circuit.inputs.get(index) else {
            let expected = circuit.inputs.len();
            return Err(reader.error(format!("one of {expected} inputs, got {index}")).into());
        };
        let registers = if input.public {
            let values = numbers(&mut reader, input)?;
            let placed = input.scatter(&values, circuit.slots)?;
            placed.into_iter().map(Held::Public).collect()
        } else {
            sealed_registers(&mut reader, plan, key, input)?
        };
        reader.finish()?;
        Ok(Sealed { index, key, registers })
    }

    /// Its number among the plan's inputs.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// The numbers of a public input, of which nothing is checked but how many there are.
fn numbers(reader: &mut Reader<'_>, input: &Input) -> Result<Vec<f64>> {
    let expected = elements(&input.shape).unwrap_or(0);
    if reader.remaining() as u64 != expected.saturating_mul(8) {
        let (name, shape, left) = (&input.name, &input.shape, reader.remaining());
        let detail = format!(
            "{name:?} has the shape {shape:?}: {expected} numbers of 8 bytes expected, got {left} bytes"
        );
        return Err(reader.error(detail).into());
    }
    (0..expected).map(|_| f64_of(reader)).collect()
}

/// The ciphertexts of an input.
fn sealed_registers(
    reader: &mut Reader<'_>,
    plan: &Plan,
    key: KeyId,
    input: &Input,
) -> Result<Vec<Held<Arc<Ciphertext>, Vec<f64>>>> {
    let (params, circuit, level) = (plan.params(), plan.circuit(), plan.input_level());
    let views = input.views.iter();
    let places = views.flat_map(|view| core::iter::repeat_n(view, view.registers as usize));
    let mut registers = Vec::new();
    for view in places {
        let frame = take(reader)?;
        let ciphertext = Ciphertext::from_bytes(params, frame)?;
        expect_key(key, ciphertext.key_id())?;
        let fresh = ciphertext.slots() == circuit.slots
            && ciphertext.degree() == 1
            && ciphertext.level() == level
            && ciphertext.scale().to_bits() == params.scale(level).to_bits()
            && ciphertext.magnitude() <= input.magnitude(view);
        if !fresh {
            let detail = "a fresh ciphertext with the plan's slots and magnitude expected";
            return Err(reader.error(detail).into());
        }
        registers.push(Held::Sealed(Arc::new(ciphertext)));
    }
    Ok(registers)
}

/// The frames that stand one after the other in `bytes`, at most so many.
///
/// # Errors
/// What is no frame, a frame that ends too late, more frames than that.
pub fn frames(bytes: &[u8], most: usize) -> Result<Vec<&[u8]>> {
    let what = "a row of frames";
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let mut reader = Reader::new(what, rest);
        let head = reader.take(HEADER_LEN)?;
        let mut length = [0; 8];
        length.copy_from_slice(&head[24..32]);
        let payload = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        reader.take(payload)?;
        if found.len() == most {
            return Err(reader.error(format!("at most {most} frames expected")).into());
        }
        let (frame, after) = rest.split_at(HEADER_LEN + payload);
        found.push(frame);
        rest = after;
    }
    Ok(found)
}

/// The key that evaluation keys belong to, by their header alone.
///
/// # Errors
/// What is no frame of them.
pub fn key_of_keys(frame: &[u8]) -> Result<KeyId> {
    Ok(wire::open_start(Kind::ProgramKeys, frame, frame.len())?.0.key)
}

/// The key that an input is encrypted under, by its header alone.
///
/// # Errors
/// What is no frame of one.
pub fn key_of_input(frame: &[u8]) -> Result<KeyId> {
    Ok(wire::open_start(Kind::ProgramInput, frame, frame.len())?.0.key)
}

impl Server {
    /// A server for the plan, with what a client's `evaluation_keys` made.
    ///
    /// # Errors
    /// Damaged or foreign bytes, keys of another plan, and keys that are not those the plan lists.
    pub fn new(plan: Arc<Plan>, keys: &[u8]) -> Result<Self> {
        let mut key = KeyId([0; 8]);
        let mut reader = open(&plan, Kind::ProgramKeys, keys, |header| {
            key = header.key;
            Ok(())
        })?;
        let mut sets = Vec::new();
        for set in plan.keys() {
            let read = EvaluationKeys::from_bytes(plan.params(), take(&mut reader)?)?;
            if !read.covers(&set.key_plan()) {
                return Err(reader.error("keys that the plan lists expected, some lack").into());
            }
            expect_key(key, read.key_id())?;
            sets.push(Arc::new(read));
        }
        let mut machine = CkksMachine::new(plan.params(), sets).keeping(plan.encoded().clone());
        if let Some(bootstrapper) = plan.bootstrapper() {
            let read = BootstrappingKeys::from_bytes(plan.params(), take(&mut reader)?)?;
            expect_key(key, read.key_id())?;
            machine = machine.refreshing(bootstrapper.clone(), read);
        }
        if let Some(exponential) = plan.exponential() {
            machine = machine.looking_up(exponential.clone());
        }
        reader.finish()?;
        Ok(Server { plan, machine, key })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The key that inputs must be encrypted under.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// Reads an input that a client's `encrypt` wrote, once for however many runs.
    ///
    /// # Errors
    /// As [`Sealed::read`].
    pub fn read(&self, bytes: &[u8]) -> Result<Sealed> {
        Sealed::read(&self.plan, self.key, bytes)
    }

    /// The answer to one input of each kind, in any order. `after` is called with the number of
    /// every step that is done.
    ///
    /// # Errors
    /// [`Error::Program`] for an input that is missing or comes twice; a step that cannot be
    /// computed.
    pub fn run(&self, inputs: &[Sealed], mut after: impl FnMut(usize)) -> Result<Vec<u8>> {
        self.run_while(inputs, |step| {
            after(step);
            Ok(())
        })
    }

    /// [`Self::run`], which `after` may end: everything that was computed is let go of.
    ///
    /// # Errors
    /// As [`Self::run`], and those of `after`.
    pub fn run_while(
        &self,
        inputs: &[Sealed],
        mut after: impl FnMut(usize) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let circuit = self.plan.circuit();
        let mut ordered: Vec<Option<&Sealed>> = vec![None; circuit.inputs.len()];
        for input in inputs {
            expect_key(self.key, input.key)?;
            if ordered[input.index].replace(input).is_some() {
                return Err(self.refuse(input.index, "came twice"));
            }
        }
        let mut registers = Vec::with_capacity(circuit.input_registers());
        for (index, input) in ordered.iter().enumerate() {
            let input = input.ok_or_else(|| self.refuse(index, "is missing"))?;
            registers.extend(input.registers.iter().cloned());
        }
        let machine = Mixed { sealed: &self.machine, open: Clear };
        let outputs = execute(circuit, &machine, registers, |step, _| after(step))?;
        let mut body = Vec::new();
        for output in &outputs {
            match output {
                Held::Sealed(ciphertext) => put(&mut body, &ciphertext.to_bytes()),
                Held::Public(values) => put(&mut body, &bytes_of(values)),
            }
        }
        Ok(frame(&self.plan, Kind::ProgramAnswer, self.key, &body))
    }

    fn refuse(&self, index: usize, what: &str) -> Error {
        let name = &self.plan.circuit().inputs[index].name;
        let detail = format!("input {name:?} {what}; one of each is needed");
        Error::Program { operation: "a run", detail }
    }
}

/// Refuses what belongs to another key.
pub fn expect_key(expected: KeyId, actual: KeyId) -> Result<()> {
    if actual == expected {
        return Ok(());
    }
    let what = "a part of a program";
    Err(ciphervec_he::Error::WrongKey { what, expected, actual }.into())
}

/// Numbers one after the other.
pub fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Writes a length and a frame.
pub fn put(out: &mut Vec<u8>, frame: &[u8]) {
    out.extend((frame.len() as u64).to_le_bytes());
    out.extend(frame);
}

/// Reads what [`put`] wrote.
pub fn take<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = reader.u64()?;
    let length = usize::try_from(length).map_err(|_| {
        reader.error(format!("{length} bytes expected, {} left", reader.remaining()))
    })?;
    Ok(reader.take(length)?)
}

/// What belongs to a plan, framed.
pub fn frame(plan: &Plan, kind: Kind, key: KeyId, body: &[u8]) -> Vec<u8> {
    let mut frame = begun(plan, HEADER_LEN + 16 + body.len());
    frame.extend_from_slice(body);
    sealed(plan, kind, key, &mut frame);
    frame
}

/// A frame without its header, of what belongs to a plan, with room for so many bytes.
pub fn begun(plan: &Plan, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes);
    frame.resize(HEADER_LEN, 0);
    frame.extend_from_slice(&plan.id().0);
    frame
}

/// Writes the header of a frame that [`begun`] has begun.
pub fn sealed(plan: &Plan, kind: Kind, key: KeyId, frame: &mut [u8]) {
    let params = plan.params().param_id();
    Header { scheme: Scheme::Ckks, kind, params, key }.seal(frame);
}

/// The body of a frame that belongs to this plan.
pub fn open<'a>(
    plan: &Plan,
    kind: Kind,
    bytes: &'a [u8],
    check: impl FnOnce(&Header) -> Result<()>,
) -> Result<Reader<'a>> {
    let (header, payload) = wire::open(kind, bytes)?;
    let mut reader = Reader::new(kind.as_str(), payload);
    let id: [u8; 16] = reader.array()?;
    if id != plan.id().0 || header.params != plan.params().param_id() {
        let detail = format!(
            "this is of plan {}, and the plan here is {}; take the plan that it was made for",
            crate::decode::hex(&id),
            plan.id()
        );
        return Err(Error::Program { operation: kind.as_str(), detail });
    }
    check(&header)?;
    Ok(reader)
}
