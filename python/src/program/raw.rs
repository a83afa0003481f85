//! The parts of a circuit as Python names them, in tuples, and answers as it takes them.

use ciphervec_owner::program::{
    Answer, Block, Decoding, Domain, Loop, Numbers, Placement, Reading, Step,
};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::errors::InvalidInput;

/// `(element, place, [(count, element, place), …])`.
pub type RawBlock = (u64, u64, Vec<(u32, i64, i64)>);

/// Blocks, and whether places are coefficients.
pub type RawPlacement = (Vec<RawBlock>, bool);

/// `(step, low, high)`, a step of 0 for reals.
pub type RawNumbers = (f64, f64, f64);

/// What of an input's numbers stands in a view, if not they themselves.
#[derive(FromPyObject)]
pub enum Read {
    /// `(count, terms, inner)`.
    Counts(u32, u32, u32),
    /// `(finer, low, bits, digits, below)`.
    Digits(u32, i64, u32, u32, bool),
}

/// `(registers, unit, placement, reading)`.
pub type RawView = (u32, f64, RawPlacement, Option<Read>);

/// `(name, public, shape, numbers, views)`.
pub type RawInput = (String, bool, Vec<u32>, RawNumbers, Vec<RawView>);

/// `(name, shape, numbers, unit, registers, placement, decoding)`.
pub type RawOutput = (String, Vec<u32>, RawNumbers, f64, Vec<u32>, RawPlacement, String);

/// `(operation, a, b, number)`.
pub type RawStep = (String, u32, u32, f64);

/// A name, a shape, the decoding and the values of an output.
pub type RawAnswer<'py> = (String, Vec<u32>, &'static str, Bound<'py, PyArray1<f64>>);
pub fn placement((blocks, coefficients): RawPlacement) -> Placement {
    let block = |(element, place, loops): RawBlock| {
        let turn = |(count, element, place)| Loop { count, element, place };
        Block { element, place, loops: loops.into_iter().map(turn).collect() }
    };
    let domain = if coefficients { Domain::Coefficients } else { Domain::Slots };
    Placement { blocks: blocks.into_iter().map(block).collect(), domain }
}

pub fn reading(raw: Option<Read>) -> Reading {
    match raw {
        None => Reading::Numbers,
        Some(Read::Counts(count, terms, inner)) => Reading::Counts { count, terms, inner },
        Some(Read::Digits(finer, low, bits, digits, below)) => {
            Reading::Digits { finer, low, bits, digits, below }
        }
    }
}

pub fn numbers((step, low, high): RawNumbers) -> Numbers {
    Numbers { step, low, high }
}

pub fn decoding(name: &str) -> PyResult<Decoding> {
    match name {
        "numbers" => Ok(Decoding::Numbers),
        "booleans" => Ok(Decoding::Booleans),
        "one_hot" => Ok(Decoding::OneHot),
        "largest" => Ok(Decoding::Largest),
        "most" => Ok(Decoding::Most),
        other => Err(InvalidInput::new_err(format!("unknown decoding {other:?}"))),
    }
}

pub fn decoding_name(decoding: Decoding) -> &'static str {
    match decoding {
        Decoding::Numbers => "numbers",
        Decoding::Booleans => "booleans",
        Decoding::OneHot => "one_hot",
        Decoding::Largest => "largest",
        Decoding::Most => "most",
    }
}

pub fn step((operation, a, b, number): RawStep) -> PyResult<Step> {
    Ok(match operation.as_str() {
        "add" => Step::Add(a, b),
        "subtract" => Step::Subtract(a, b),
        "negate" => Step::Negate(a),
        "add_number" => Step::AddNumber(a, number),
        "multiply_number" => Step::MultiplyNumber(a, number),
        "multiply_integer" => Step::MultiplyInteger(a, number as i64),
        "add_vector" => Step::AddVector(a, b),
        "multiply_vector" => Step::MultiplyVector(a, b),
        "multiply" => Step::Multiply(a, b),
        "square" => Step::Square(a),
        "rotate" => Step::Rotate(a, number as i32),
        "polynomial" => Step::Polynomial(a, b),
        "sign" => Step::Sign(a, b),
        "bound" => Step::Bound(a, number),
        "look_up" => Step::LookUp(a, b),
        other => return Err(InvalidInput::new_err(format!("unknown step {other:?}"))),
    })
}

pub fn raw_answers(py: Python<'_>, answers: Vec<Answer>) -> Vec<RawAnswer<'_>> {
    let raw = |answer: Answer| {
        let values = PyArray1::from_vec(py, answer.values);
        (answer.name, answer.shape, decoding_name(answer.decoding), values)
    };
    answers.into_iter().map(raw).collect()
}
