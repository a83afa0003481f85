//! Receives the functions of an index one by one, and brings each to the level that is asked for.

use crate::error::Result;
use ciphervec_he::ckks::{Ciphertext, Evaluator};

/// Takes the functions as they are made: place and ciphertext.
pub(in crate::lookup::tokens) type Sink<'a> = dyn FnMut(usize, Ciphertext) -> Result<()> + 'a;

/// The least k with 2^k at least `n`.
pub(in crate::lookup::tokens) fn ceil_log2(n: usize) -> usize {
    n.max(1).next_power_of_two().ilog2() as usize
}

/// The same numbers at `level` and its canonical scale.
pub(in crate::lookup::tokens) fn settle(
    evaluator: &Evaluator,
    x: &Ciphertext,
    level: usize,
) -> Result<Ciphertext> {
    if x.level() == level { Ok(x.clone()) } else { Ok(evaluator.match_level(x, level)?) }
}
