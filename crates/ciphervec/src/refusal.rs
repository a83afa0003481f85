//! Why a circuit cannot be, or a ring does not serve it, as its author would say it. Key holder, without a key.

/// Why a circuit cannot be, or a ring does not serve it.
#[non_exhaustive]
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Signs of numbers that are too close to 0.
    #[error("numbers are told apart more finely than {levels} levels reach")]
    TooFine {
        /// The most levels of a sign.
        levels: usize,
    },
    /// More ways of taking signs than a circuit has.
    #[error("numbers of {signs} different ranges are compared, and {most} are the most")]
    Signs {
        /// Those of the circuit.
        signs: usize,
        /// The most.
        most: usize,
    },
    /// Numbers that are too far off where their sign is taken.
    #[error("numbers are off by {off} where they are compared, and at most {most} serves")]
    TooNoisy {
        /// The largest error, with the chance that it is larger.
        off: String,
        /// The largest that the sign was built for.
        most: String,
    },
    /// An output that is too far off.
    #[error("{output:?} is off by up to {off:.2e}, allowed are {most:.2e}")]
    Inexact {
        /// Its name.
        output: String,
        /// What its numbers may be off by.
        off: f64,
        /// What is allowed.
        most: f64,
    },
    /// Registers of more slots than the ring has, or refreshes.
    #[error("{slots} slots are needed, of {most} at most")]
    Slots {
        /// Those of the circuit.
        slots: usize,
        /// Those of the ring.
        most: u64,
    },
    /// More levels in a row than any ring has.
    #[error("more than {levels} levels are needed")]
    TooDeep {
        /// The most levels.
        levels: usize,
    },
    /// A modulus that is too wide to be secure.
    #[error("{levels} levels of {bits} bits need more than the {most} bits that are secure")]
    Insecure {
        /// Levels of the circuit.
        levels: usize,
        /// Bits of each.
        bits: u32,
        /// The most bits of all.
        most: u32,
    },
    /// Numbers that are larger than what is left of the modulus.
    #[error("numbers up to {magnitude:.3e} need {needed:.0} bits, {left:.0} are left")]
    TooLarge {
        /// The largest number.
        magnitude: f64,
        /// Bits that it needs.
        needed: f64,
        /// Bits that are left.
        left: f64,
    },
    /// A step that takes more levels than lie between two refreshes.
    #[error("a step takes {needed} levels, and {levels} lie between two refreshes")]
    LongStep {
        /// Levels of the step.
        needed: usize,
        /// Those between two refreshes.
        levels: usize,
    },
    /// Steps that take more levels than lie between two refreshes.
    #[error("more than {levels} levels lie between two refreshes")]
    FarApart {
        /// Those between two refreshes.
        levels: usize,
    },
    /// Numbers that are refreshed only after they are scaled down, for which no level is left.
    #[error("numbers over 1 have to be refreshed, and none of {levels} levels is left for it")]
    OverOne {
        /// Those between two refreshes.
        levels: usize,
    },
    /// Refreshes that fail too often.
    #[error("{refreshes} refreshes fail with a chance of 2^-{bits:.0}, not 2^-{asked}")]
    Chance {
        /// How many there are.
        refreshes: usize,
        /// log2 of one over the chance that one of them fails.
        bits: f64,
        /// What was asked for.
        asked: u8,
    },
    /// Tables, which only rings that refresh look up.
    #[error("tables are looked up by bootstrapping, which this ring is not for")]
    LookUp,
    /// A ring that serves, and is not the best.
    #[error("it serves, and costs {times:.2} times as much, time and keys together")]
    Dearer {
        /// Its weight over that of the best.
        times: f64,
    },
    /// A size or a number that no step takes, with the words of what refused it.
    #[error("a step does not fit the sizes of its numbers")]
    Unfit(String),
}
