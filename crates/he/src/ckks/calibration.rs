//! Times a transform and a product modulo one prime on this machine, in milliseconds.

use std::time::{Duration, Instant};

use super::spec::ALL_LOG_DEGREES;
use super::widths::within;
use crate::error::Result;
use ciphervec_arith::{NttTable, ntt_primes, poly};

/// Primes that are worked with in turn: roots and residues of one are not left in the nearest cache
/// for the next time, as they are not in an operation on ciphertexts.
const PRIMES: usize = 8;
const PRIME_BITS: u32 = 50;
/// Rounds over all primes at least, and the time after which none is begun.
const ROUNDS: usize = 3;
const ENOUGH: Duration = Duration::from_millis(2);

/// What work on residues takes on one thread of this machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Calibration {
    /// log2 of the ring degree.
    pub log_degree: u32,
    /// Milliseconds of a transform modulo one prime.
    pub transform_ms: f64,
    /// Milliseconds of a product with a sum, residue by residue.
    pub product_ms: f64,
}

impl Calibration {
    /// Times both; the quickest round counts, which is the one that was not interrupted.
    ///
    /// # Errors
    /// [`crate::Error::Range`] for a degree that no transform serves.
    pub fn measure(log_degree: u32) -> Result<Self> {
        within("log2 of the ring degree", ALL_LOG_DEGREES, (log_degree, ""))?;
        let degree = 1usize << log_degree;
        let primes = ntt_primes(PRIME_BITS, degree, PRIMES)?;
        let tables = primes.iter().map(|&prime| NttTable::new(degree, prime));
        let tables = tables.collect::<core::result::Result<Vec<_>, _>>()?;
        let mut values: Vec<Vec<u64>> =
            (0..=2 * PRIMES).map(|k| (0..degree as u64).map(|x| x + k as u64).collect()).collect();
        let transform_ms = quickest(|| {
            for (table, limb) in tables.iter().zip(&mut values) {
                table.forward(limb);
            }
        });
        let (sums, factors) = values.split_at_mut(PRIMES);
        let product_ms = quickest(|| {
            let pairs = factors.windows(2);
            for ((table, sum), pair) in tables.iter().zip(&mut *sums).zip(pairs) {
                poly::mul_add_assign(sum, &pair[0], &pair[1], table.modulus());
            }
        });
        Ok(Calibration { log_degree, transform_ms, product_ms })
    }
}

/// Milliseconds of one of [`PRIMES`] parts of `work`.
fn quickest(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut least = f64::INFINITY;
    for round in 0.. {
        if round >= ROUNDS && begin.elapsed() > ENOUGH {
            break;
        }
        let clock = Instant::now();
        work();
        least = least.min(clock.elapsed().as_secs_f64());
    }
    least * 1e3 / PRIMES as f64
}
