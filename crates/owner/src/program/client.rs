//! The client of a program: it holds the key, encrypts arrays as inputs and decrypts answers.

use super::server::{self, expect_key, put};
use super::{Answer, Plan};
use crate::error::{Error, Result};
use ciphervec_he_secret::ckks::{Ciphertext, Encoding, Plaintext, SecretKey};
use ciphervec_he_secret::wire::{KeyId, Kind};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The half of a program that holds the key.
pub struct Client {
    plan: Arc<Plan>,
    secret: SecretKey,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "program::Client({}, redacted)", self.secret.key_id())
    }
}

impl Client {
    /// A fresh key.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn generate(plan: Arc<Plan>) -> Result<Self> {
        let secret = SecretKey::generate(plan.params())?;
        Ok(Client { plan, secret })
    }

    /// The key, not encrypted.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    /// Whoever has the key that [`Self::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes, and the key of a plan with other parameters.
    pub fn from_secret_bytes(plan: Arc<Plan>, bytes: &[u8]) -> Result<Self> {
        let secret = SecretKey::from_bytes(plan.params(), bytes)?;
        Ok(Client { plan, secret })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The key's public name.
    pub fn key_id(&self) -> KeyId {
        self.secret.key_id()
    }

    /// The evaluation keys that the plan lists, for [`super::Server::new`].
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn evaluation_keys(&self) -> Result<Vec<u8>> {
        let mut frame = server::begun(&self.plan, self.plan.key_bytes()?);
        for set in self.plan.keys() {
            put(&mut frame, &self.secret.evaluation_keys(&set.key_plan())?.to_bytes());
        }
        if let Some(bootstrapper) = self.plan.bootstrapper() {
            // Large: nothing else is held beside the frame and these.
            let keys = self.secret.bootstrapping_keys(bootstrapper)?.to_bytes();
            put(&mut frame, &keys);
        }
        server::sealed(&self.plan, Kind::ProgramKeys, self.key_id(), &mut frame);
        Ok(frame)
    }

    /// The input of that name as it is sent, encrypted unless it is public: its values in row-major
    /// order.
    ///
    /// # Errors
    /// [`Error::Program`] for a name that the plan does not have, and for values other than those
    /// that it was declared with; [`ciphervec_he_secret::Error::Randomness`].
    pub fn encrypt(&self, name: &str, values: &[f64]) -> Result<Vec<u8>> {
        let circuit = self.plan.circuit();
        let found = circuit.inputs.iter().enumerate().find(|(_, input)| input.name == name);
        let (index, input) = found.ok_or_else(|| {
            let names = circuit.inputs.iter().map(|input| format!("{:?}", input.name));
            let detail =
                format!("one of {} expected, got {name:?}", names.collect::<Vec<_>>().join(", "));
            Error::Program { operation: "an input", detail }
        })?;
        let mut body = (index as u32).to_le_bytes().to_vec();
        if input.public {
            input.check(values)?;
            body.extend(server::bytes_of(values));
            return Ok(self.frame(Kind::ProgramInput, &body));
        }
        let registers = Zeroizing::new(input.scatter(values, circuit.slots)?);
        let views = input.views.iter();
        let places = views.flat_map(|view| core::iter::repeat_n(view, view.registers as usize));
        for (register, view) in registers.iter().zip(places) {
            let encoding = Encoding {
                level: Some(self.plan.input_level()),
                slots: Some(circuit.slots),
                magnitude: Some(input.magnitude(view)),
                ..Encoding::default()
            };
            let plaintext = Plaintext::encode_with(self.plan.params(), register, &encoding)?;
            put(&mut body, &self.secret.encrypt_seeded(&plaintext)?.to_bytes());
        }
        Ok(self.frame(Kind::ProgramInput, &body))
    }

    /// The outputs of an answer, in the plan's order. They are for the owner of the key: what they
    /// tell others about it, `docs/programs.md` says.
    ///
    /// # Errors
    /// Damaged or foreign bytes; [`Error::Program`] for an answer that is none of this plan's, and
    /// for numbers that no output can have.
    pub fn decrypt(&self, bytes: &[u8]) -> Result<Vec<Answer>> {
        let params = self.plan.params();
        let mut reader = server::open(&self.plan, Kind::ProgramAnswer, bytes, |header| {
            expect_key(self.key_id(), header.key)
        })?;
        let (slots, public) = (self.plan.circuit().slots, self.plan.circuit().public());
        let mut answers = Vec::new();
        for output in &self.plan.circuit().outputs {
            let mut registers = Zeroizing::new(Vec::with_capacity(output.registers.len()));
            for &register in &output.registers {
                let frame = server::take(&mut reader)?;
                let values = if public[register as usize] {
                    numbers(frame)
                } else {
                    let ciphertext = Ciphertext::from_bytes(params, frame)?;
                    self.secret.decrypt(&ciphertext)?.decode()
                };
                if values.len() != slots {
                    let detail = format!("{slots} slots expected, got {}", values.len());
                    return Err(reader.error(detail).into());
                }
                registers.push(values);
            }
            answers.push(output.answer(&registers, slots)?);
        }
        reader.finish()?;
        Ok(answers)
    }

    fn frame(&self, kind: Kind, body: &[u8]) -> Vec<u8> {
        server::frame(&self.plan, kind, self.key_id(), body)
    }
}

/// The numbers of a register that was computed of public inputs alone.
fn numbers(frame: &[u8]) -> Vec<f64> {
    let (whole, rest) = frame.as_chunks::<8>();
    // Bytes left over make it one number too long.
    let last = (!rest.is_empty()).then_some(f64::NAN);
    whole.iter().map(|bytes| f64::from_le_bytes(*bytes)).chain(last).collect()
}
