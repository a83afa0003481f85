//! Tolerance: a trial and how far outputs may be off enter; whether they are exact enough leaves. Key
//! holder, without a key.

use super::circuit::Circuit;
use super::numbers::elements;
use super::trial::Trial;

/// log2 of the chance that any number of an answer is off by more than it may be.
pub const FAILURE_BITS: f64 = 40.0;
/// What errors may be over their forecast: those of one key are, by some hundredths.
const MARGIN: f64 = 1.1;

/// Why the outputs are not exact enough, if they are not.
pub(super) fn inexact(circuit: &Circuit, allowed: &[f64], trial: &Trial) -> Option<String> {
    let numbers: u64 = circuit.outputs.iter().filter_map(|output| elements(&output.shape)).sum();
    let deviations = deviations(numbers);
    circuit.outputs.iter().zip(&trial.outputs).zip(allowed).find_map(|((output, found), &most)| {
        let error = MARGIN * deviations * found.error;
        (error > most).then(|| {
            format!("{:?} is off by up to {error:.2e}, allowed are {most:.2e}", output.name)
        })
    })
}

/// Standard deviations that none of so many Gaussian numbers is beyond, but with the chance of a
/// failure: Q(x) < exp(-x²/2)/2.
fn deviations(numbers: u64) -> f64 {
    let bits = FAILURE_BITS + (numbers.max(1) as f64).log2();
    (2.0 * core::f64::consts::LN_2 * bits).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_of_the_tail() {
        // Q(7.4) = 6.8e-14 = 2^-43.7; two sides of one number at 2^-40: Q(x) = 2^-41 at x = 7.14.
        let one = deviations(1);
        assert!((7.14..7.5).contains(&one), "{one}");
        assert!(deviations(1 << 20) > one);
    }
}
