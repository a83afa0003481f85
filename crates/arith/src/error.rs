//! Why a parameter was refused: what was expected and what came.

/// Why a parameter was refused.
#[non_exhaustive]
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum ArithError {
    /// The modulus cannot serve.
    #[error("modulus {value} is not usable: expected {expected}")]
    Modulus {
        /// The modulus that came.
        value: u64,
        /// What was needed.
        expected: &'static str,
    },
    /// The ring degree cannot serve.
    #[error("degree {degree} is not usable: expected {expected}")]
    Degree {
        /// The degree that came.
        degree: usize,
        /// What was needed.
        expected: &'static str,
    },
    /// A set of moduli of the wrong size.
    #[error("a basis of {count} moduli is not usable: expected {expected}")]
    Basis {
        /// The number of moduli that came.
        count: usize,
        /// What was needed.
        expected: &'static str,
    },
    /// A slice of the wrong length.
    #[error("expected {expected} elements, got {actual}")]
    Length {
        /// Elements needed.
        expected: usize,
        /// Elements that came.
        actual: usize,
    },
    /// A back-end name that is unknown, or one this processor cannot run.
    #[error("back-end {name:?} is not usable here: {reason}")]
    Backend {
        /// The name that came.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Fewer primes exist in the asked range than were asked for.
    #[error(
        "expected {expected} primes of {bits} bits congruent to 1 modulo {congruence}, \
         found {found}"
    )]
    Primes {
        /// Primes asked for.
        expected: usize,
        /// Primes found.
        found: usize,
        /// Upper bound on the size, in bits.
        bits: u32,
        /// The modulus of the congruence, twice the degree.
        congruence: u64,
    },
    /// A multi-limb modulus cannot serve.
    #[error("a modulus of {bits} bits to the power {digits} is not usable: expected {expected}")]
    Wide {
        /// Bits of the modulus that came.
        bits: u32,
        /// The power that came.
        digits: usize,
        /// What was needed.
        expected: &'static str,
    },
    /// A residue is not below its modulus.
    #[error("residue {index} is not below its modulus")]
    NotReduced {
        /// Its place.
        index: usize,
    },
    /// A residue shares a factor with its modulus.
    #[error("residue {index} has no inverse: it shares a factor with the modulus")]
    NotInvertible {
        /// Its place.
        index: usize,
    },
    /// A weight of a plaintext matrix is too large.
    #[error("weight {index} is {value}: expected a magnitude below 2^31")]
    Weight {
        /// Its place in the row-major matrix.
        index: usize,
        /// The weight that came.
        value: i64,
    },
}
