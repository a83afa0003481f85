//! Steps of a circuit as bytes of a plan.
//!
//! `operation u8 | a u32 | b, 8 bytes`, little-endian: a register, a constant, a polynomial, a
//! table or a number; of a stage of a sign, the sign and then the stage, u32 each.
//!
//! Operations: 0 a + b · 1 a − b · 2 −a · 3 a + f64 · 4 a times f64 · 5 a times i64 · 6 a + constant b · 7 a times constant b · 8
//! a b · 9 a² · 10 slots from b (i64) on · 11 polynomial b · 12 a, known to be at most f64 · 13 sign b · 14 a, refreshed · 15
//! stage of a sign · 16 a looked up in table b. b is u64, or zero where there is none.

use super::circuit::Step;
use crate::error::Result;
use ciphervec_he::wire::Reader;

/// Bytes of a step.
pub(super) const STEP_BYTES: usize = 13;

/// What [`read_step`] reads.
pub(super) fn step_bytes(step: Step) -> [u8; STEP_BYTES] {
    let whole = |register: u32| u64::from(register).to_le_bytes();
    let (operation, a, b) = match step {
        Step::Add(a, b) => (0, a, whole(b)),
        Step::Subtract(a, b) => (1, a, whole(b)),
        Step::Negate(a) => (2, a, [0; 8]),
        Step::AddNumber(a, number) => (3, a, number.to_le_bytes()),
        Step::MultiplyNumber(a, number) => (4, a, number.to_le_bytes()),
        Step::MultiplyInteger(a, factor) => (5, a, factor.to_le_bytes()),
        Step::AddVector(a, index) => (6, a, whole(index)),
        Step::MultiplyVector(a, index) => (7, a, whole(index)),
        Step::Multiply(a, b) => (8, a, whole(b)),
        Step::Square(a) => (9, a, [0; 8]),
        Step::Rotate(a, steps) => (10, a, i64::from(steps).to_le_bytes()),
        Step::Polynomial(a, index) => (11, a, whole(index)),
        Step::Bound(a, bound) => (12, a, bound.to_le_bytes()),
        Step::Sign(a, index) => (13, a, whole(index)),
        Step::Refresh(a) => (14, a, [0; 8]),
        Step::SignStage(a, index, stage) => {
            (15, a, (u64::from(index) | u64::from(stage) << 32).to_le_bytes())
        }
        Step::LookUp(a, index) => (16, a, whole(index)),
    };
    let mut out = [0; STEP_BYTES];
    out[0] = operation;
    out[1..5].copy_from_slice(&a.to_le_bytes());
    out[5..].copy_from_slice(&b);
    out
}

/// A step, of registers and parts that nobody has looked for yet.
///
/// # Errors
/// An operation that there is not, and an operand that it does not have.
pub(super) fn read_step(reader: &mut Reader<'_>) -> Result<Step> {
    let (operation, a, b) = (reader.u8()?, reader.u32()?, reader.array::<8>()?);
    let malformed = |reader: &Reader<'_>| reader.error(format!("operand {b:?} of {operation}"));
    let whole =
        |reader: &Reader<'_>| u32::try_from(u64::from_le_bytes(b)).map_err(|_| malformed(reader));
    let none = |reader: &Reader<'_>| if b == [0; 8] { Ok(a) } else { Err(malformed(reader)) };
    let number = f64::from_le_bytes(b);
    Ok(match operation {
        0 => Step::Add(a, whole(reader)?),
        1 => Step::Subtract(a, whole(reader)?),
        2 => Step::Negate(none(reader)?),
        3 => Step::AddNumber(a, number),
        4 => Step::MultiplyNumber(a, number),
        5 => Step::MultiplyInteger(a, i64::from_le_bytes(b)),
        6 => Step::AddVector(a, whole(reader)?),
        7 => Step::MultiplyVector(a, whole(reader)?),
        8 => Step::Multiply(a, whole(reader)?),
        9 => Step::Square(none(reader)?),
        10 => {
            let steps = i32::try_from(i64::from_le_bytes(b)).map_err(|_| malformed(reader))?;
            Step::Rotate(a, steps)
        }
        11 => Step::Polynomial(a, whole(reader)?),
        12 => Step::Bound(a, number),
        13 => Step::Sign(a, whole(reader)?),
        14 => Step::Refresh(none(reader)?),
        15 => {
            let both = u64::from_le_bytes(b);
            Step::SignStage(a, both as u32, (both >> 32) as u32)
        }
        16 => Step::LookUp(a, whole(reader)?),
        other => return Err(reader.error(format!("unknown operation {other}")).into()),
    })
}
