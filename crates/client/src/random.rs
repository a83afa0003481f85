//! Random bytes and numbers.

use crate::error::{Error, Result};

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::Ended("this system gives no random bytes.".to_owned()))?;
    Ok(bytes)
}

/// Between 0 and 1; no secret.
pub fn uniform() -> f64 {
    getrandom::u32().map_or(0.5, |drawn| f64::from(drawn) / 2f64.powi(32))
}

/// Random numbers that nobody else can tell, of a seed that this system draws.
pub struct Draws(blake3::OutputReader);

impl Draws {
    pub fn new() -> Result<Self> {
        Ok(Self::seeded(&random()?))
    }

    fn seeded(seed: &[u8; 32]) -> Self {
        Draws(blake3::Hasher::new_keyed(seed).finalize_xof())
    }

    pub fn u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Below `end`, which is not zero: of 2^64 numbers so that one is no likelier than another by more than 2^-40, for any that is a
    /// number of things.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.u64()) * end as u128) >> 64) as usize
    }

    /// From 0 up to 1.
    pub fn uniform(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / 2f64.powi(53)
    }

    /// Nearly of the standard normal distribution: the sum of twelve draws, which takes no sine of a page's module.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }

    /// So many numbers below `end`, each once, ascending.
    pub fn sample(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut all: Vec<_> = (0..end).collect();
        self.shuffle(&mut all);
        let mut chosen = vec![false; end];
        all.iter().take(count).for_each(|one| chosen[*one] = true);
        (0..end).filter(|one| chosen[*one]).collect()
    }
}
