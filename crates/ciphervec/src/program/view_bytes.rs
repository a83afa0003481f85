//! What inputs and outputs hold where it is not their numbers in slots, and what is said of answers, as bytes of a plan.
//!
//! - counts: `number of the input u32 | number of its view u32 | count, terms, inner u32`, in order;
//! - coefficients, arrays that stand in them and not in slots: `0 u8 | number of the input u32 |
//!   number of its view u32`, or `1 u8 | number of the output u32 | 0 u32`, in order;
//! - digits: `number of the input u32 | number of its view u32 | finer, bits, digits u32 | low i64 |
//!   below u8`, in order;
//! - public inputs: `number of the input u32`, in order;
//! - where numbers may be too close to be told apart, `1 u8` or `2 u8`: see [`Undecided`].
//!
//! A view of counts holds how often each of 0 … count − 1 is among `terms` numbers of the input, `inner` apart. One of
//! coefficients has its places as coefficients of `X^k + X^-k`. One of digits holds, of how many steps / finer each number is
//! above low of them, the digits of so many bits, the lowest first, as 2^bits numbers each: 1 at the digit and else 0, or, if
//! below is 1, 1 at all places below the digit.

use super::arrays::{Input, Output};
use super::circuit::{Circuit, MAX_PARTS, MAX_REGISTERS};
use super::list_bytes::{flag, items, list};
use super::placement::Domain;
use super::plan::{Said, Undecided};
use super::reading::Reading;
use crate::error::Result;
use ciphervec_he::wire::Reader;

/// Which view, and the steps, bits and number of its digits.
type DigitShape = [u32; 5];

/// What [`read_kinds`] reads; nothing where all views are of numbers, in slots, all inputs are secret,
/// and nothing is said of answers.
pub(super) fn write_kinds(circuit: &Circuit, of_answers: Said, out: &mut Vec<u8>) {
    let mut counts: Vec<[u32; 5]> = Vec::new();
    let mut coefficients: Vec<(u8, [u32; 2])> = Vec::new();
    let mut digits_of: Vec<(DigitShape, i64, bool)> = Vec::new();
    for (input, one) in circuit.inputs.iter().enumerate() {
        for (view, held) in one.views.iter().enumerate() {
            match held.reading {
                Reading::Numbers => {}
                Reading::Counts { count, terms, inner } => {
                    counts.push([input as u32, view as u32, count, terms, inner]);
                }
                Reading::Digits { finer, low, bits, digits, below } => {
                    digits_of.push(([input as u32, view as u32, finer, bits, digits], low, below));
                }
            }
            if held.placement.domain == Domain::Coefficients {
                coefficients.push((0, [input as u32, view as u32]));
            }
        }
    }
    for (index, output) in circuit.outputs.iter().enumerate() {
        if output.placement.domain == Domain::Coefficients {
            coefficients.push((1, [index as u32, 0]));
        }
    }
    let public = (0u32..).zip(&circuit.inputs).filter(|(_, input)| input.public);
    let public: Vec<u32> = public.map(|(index, _)| index).collect();
    let Said { failure, undecided } = of_answers;
    let open = undecided != Undecided::Nothing;
    let said = failure > 0 || !digits_of.is_empty() || !public.is_empty() || open;
    if !counts.is_empty() || !coefficients.is_empty() || said {
        list(out, &counts, |out, one| one.iter().for_each(|x| out.extend(x.to_le_bytes())));
    }
    if !coefficients.is_empty() || said {
        list(out, &coefficients, |out, (kind, one)| {
            out.push(*kind);
            one.iter().for_each(|x| out.extend(x.to_le_bytes()));
        });
    }
    if said {
        out.push(failure);
    }
    if !digits_of.is_empty() || !public.is_empty() || open {
        list(out, &digits_of, |out, (shape, low, below)| {
            shape.iter().for_each(|x| out.extend(x.to_le_bytes()));
            out.extend(low.to_le_bytes());
            out.push(u8::from(*below));
        });
    }
    if !public.is_empty() || open {
        list(out, &public, |out, input| out.extend(input.to_le_bytes()));
    }
    if open {
        out.push(undecided as u8);
    }
}

/// Reads what [`write_kinds`] wrote into the views of a circuit; returns what is said of answers.
pub(super) fn read_kinds(reader: &mut Reader<'_>, circuit: &mut Circuit) -> Result<Said> {
    read_counts(reader, &mut circuit.inputs)?;
    read_coefficients(reader, &mut circuit.inputs, &mut circuit.outputs)?;
    let failure = read_failure(reader)?;
    read_digits(reader, &mut circuit.inputs)?;
    read_public(reader, &mut circuit.inputs)?;
    Ok(Said { failure, undecided: read_undecided(reader)? })
}

/// Which views hold counts of an input's numbers, if any does.
fn read_counts(reader: &mut Reader<'_>, inputs: &mut [Input]) -> Result<()> {
    if reader.remaining() == 0 {
        return Ok(());
    }
    let counts = items(reader, 20, MAX_REGISTERS, |reader| {
        let mut one = [0; 5];
        for field in &mut one {
            *field = reader.u32()?;
        }
        Ok(one)
    })?;
    let ascending = counts.is_sorted_by(|a, b| a[..2] < b[..2]);
    if counts.is_empty() && reader.remaining() == 0 || !ascending {
        return Err(reader.error("counts of views in ascending order expected").into());
    }
    for [input, view, count, terms, inner] in counts {
        let found = inputs.get_mut(input as usize).and_then(|one| one.views.get_mut(view as usize));
        let Some(found) = found else {
            return Err(reader.error(format!("no view {view} of input {input}")).into());
        };
        found.reading = Reading::Counts { count, terms, inner };
    }
    Ok(())
}

/// Which views hold digits of an input's numbers, if any does.
fn read_digits(reader: &mut Reader<'_>, inputs: &mut [Input]) -> Result<()> {
    if reader.remaining() == 0 {
        return Ok(());
    }
    let views = items(reader, 29, MAX_REGISTERS, |reader| {
        let mut shape: DigitShape = [0; 5];
        for field in &mut shape {
            *field = reader.u32()?;
        }
        Ok((shape, i64::from_le_bytes(reader.array()?), flag(reader)?))
    })?;
    let listed = !views.is_empty() || reader.remaining() > 0;
    if !listed || !views.is_sorted_by(|(a, ..), (b, ..)| a[..2] < b[..2]) {
        return Err(reader.error("digits of views in ascending order expected").into());
    }
    for ([input, view, finer, bits, digits], low, below) in views {
        let found = inputs.get_mut(input as usize).and_then(|one| one.views.get_mut(view as usize));
        match found {
            Some(found) if found.reading == Reading::Numbers => {
                found.reading = Reading::Digits { finer, low, bits, digits, below };
            }
            _ => {
                let detail = format!("no view {view} of numbers of input {input}");
                return Err(reader.error(detail).into());
            }
        }
    }
    Ok(())
}

/// Which inputs are public, if any is.
fn read_public(reader: &mut Reader<'_>, inputs: &mut [Input]) -> Result<()> {
    if reader.remaining() == 0 {
        return Ok(());
    }
    let public = items(reader, 4, MAX_PARTS, |reader| Ok(reader.u32()?))?;
    let listed = !public.is_empty() || reader.remaining() > 0;
    if !listed || !public.is_sorted_by(|a, b| a < b) {
        return Err(reader.error("public inputs in ascending order expected").into());
    }
    for input in public {
        match inputs.get_mut(input as usize) {
            Some(found) => found.public = true,
            None => return Err(reader.error(format!("no input {input}, which is public")).into()),
        }
    }
    Ok(())
}

/// What the key's noise decides, if anything.
fn read_undecided(reader: &mut Reader<'_>) -> Result<Undecided> {
    if reader.remaining() == 0 {
        return Ok(Undecided::Nothing);
    }
    match reader.u8()? {
        1 => Ok(Undecided::Named),
        2 => Ok(Undecided::Refused),
        other => Err(reader.error(format!("what noise decides is 1 or 2, got {other}")).into()),
    }
}

/// Which arrays stand in coefficients, if any does.
fn read_coefficients(
    reader: &mut Reader<'_>,
    inputs: &mut [Input],
    outputs: &mut [Output],
) -> Result<()> {
    if reader.remaining() == 0 {
        return Ok(());
    }
    let arrays = items(reader, 9, MAX_REGISTERS, |reader| {
        Ok([u32::from(reader.u8()?), reader.u32()?, reader.u32()?])
    })?;
    let listed = !arrays.is_empty() || reader.remaining() > 0;
    if !listed || !arrays.is_sorted_by(|a, b| a < b) {
        return Err(reader.error("arrays in coefficients in ascending order expected").into());
    }
    for one in arrays {
        let [kind, index, view] = one.map(|x| x as usize);
        let placement = match kind {
            0 => inputs
                .get_mut(index)
                .and_then(|input| input.views.get_mut(view))
                .map(|view| &mut view.placement),
            1 if view == 0 => outputs.get_mut(index).map(|output| &mut output.placement),
            _ => None,
        };
        let Some(placement) = placement else {
            return Err(reader.error(format!("no array {kind} {index} {view}")).into());
        };
        placement.domain = Domain::Coefficients;
    }
    Ok(())
}

/// log2 of one over the chance that an answer is wrong or refused, if that is said.
fn read_failure(reader: &mut Reader<'_>) -> Result<u8> {
    if reader.remaining() == 0 {
        return Ok(0);
    }
    match reader.u8()? {
        // Unless digits follow.
        0 if reader.remaining() == 0 => {
            Err(reader.error("a chance of failure above 0 bits expected").into())
        }
        bits => Ok(bits),
    }
}
