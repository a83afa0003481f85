//! Counts transforms and products of residues that operations take, level by level.
//!
//! Counts are those of `key_switch.rs`: of transforms of one polynomial modulo one
//! prime, and of passes over such a polynomial that multiply, add or copy.

use super::calibration::Calibration;
use super::modulus_chain::ModulusChain;

/// Products of a change of basis that take as long as one whose factors come from a cache and whose
/// sum goes back there.
const IN_REGISTERS: usize = 3;
/// Such products that one with a key takes as long as.
const FROM_MEMORY: usize = 2;

/// What was done at one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LevelWork {
    /// Number-theoretic transforms modulo one prime, forward or back.
    pub transforms: u64,
    /// Products, sums and copies of a polynomial modulo one prime.
    pub products: u64,
    /// Key switches of products.
    pub relinearisations: u64,
    /// Key switches of rotations and conjugations.
    pub rotations: u64,
}

impl LevelWork {
    /// Milliseconds of one thread.
    pub fn milliseconds(&self, calibration: &Calibration) -> f64 {
        let LevelWork { transforms, products, .. } = *self;
        transforms as f64 * calibration.transform_ms + products as f64 * calibration.product_ms
    }
}

impl core::ops::AddAssign for LevelWork {
    fn add_assign(&mut self, other: Self) {
        self.transforms += other.transforms;
        self.products += other.products;
        self.relinearisations += other.relinearisations;
        self.rotations += other.rotations;
    }
}

/// What was done, by the level of the operands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Work {
    levels: Vec<LevelWork>,
}

impl Work {
    /// From level 0 to the highest that was worked at.
    pub fn levels(&self) -> &[LevelWork] {
        &self.levels
    }

    /// Of all levels together.
    pub fn total(&self) -> LevelWork {
        let mut total = LevelWork::default();
        self.levels.iter().for_each(|&level| total += level);
        total
    }

    /// Milliseconds of one thread.
    pub fn milliseconds(&self, calibration: &Calibration) -> f64 {
        self.total().milliseconds(calibration)
    }

    /// Adds what was done at `level`.
    pub(super) fn count(&mut self, level: usize, work: LevelWork) {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelWork::default());
        }
        self.levels[level] += work;
    }
}

/// Passes over `count` polynomials modulo all primes of a level.
pub(super) fn passes(level: usize, count: usize) -> LevelWork {
    LevelWork { products: (count * (level + 1)) as u64, ..LevelWork::default() }
}

/// A rescale of so many parts: the last limb is transformed back, and forward modulo every prime
/// that is left, where it is reduced, subtracted and scaled.
pub(super) fn rescale(level: usize, parts: usize) -> LevelWork {
    LevelWork {
        transforms: (parts * (level + 1)) as u64,
        products: (2 * parts * level) as u64,
        ..LevelWork::default()
    }
}

/// An encoding at a level: the embedding, which takes about as long as three transforms, rounding,
/// and a transform modulo every prime.
pub(super) fn encode(level: usize) -> LevelWork {
    LevelWork {
        transforms: (level + 4) as u64,
        products: (level + 1) as u64,
        ..LevelWork::default()
    }
}

impl ModulusChain {
    /// Cutting a polynomial into digits and transforming them.
    pub(super) fn decomposition(&self, level: usize) -> LevelWork {
        let (digits, wide) = (self.digits(level), level + 1 + self.special.len());
        // Of each digit to all other primes: sums of products that stay in registers.
        let extended: usize = (0..digits)
            .map(|digit| self.digit_range(level, digit).len())
            .map(|width| width * (wide - width))
            .sum();
        LevelWork {
            transforms: (digits * wide) as u64,
            products: (extended / IN_REGISTERS) as u64,
            ..LevelWork::default()
        }
    }

    /// What follows in a key switch: products of the digits with the key, which comes from memory,
    /// and the division of two sums by P.
    pub(super) fn switch_of_digits(&self, level: usize) -> LevelWork {
        let (primes, special) = (level + 1, self.special.len());
        let keys = 2 * self.digits(level) * (primes + special) * FROM_MEMORY;
        let remainders = 2 * special * primes / IN_REGISTERS;
        LevelWork {
            transforms: (2 * (primes + special)) as u64,
            products: (keys + remainders + 6 * primes) as u64,
            ..LevelWork::default()
        }
    }
}
