//! Roofline: what this machine can do at best, measured in the run whose kernels it is compared
//! with.
#![allow(dead_code)] // Each bench uses its own part.

use std::hint::black_box;
use std::time::Instant;

use ciphervec_arith::AlignedBytes;

/// Best of several runs, in seconds.
pub fn best(runs: usize, mut work: impl FnMut()) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Bytes a second that one thread reads from memory, summing 512 MiB.
pub fn read_bandwidth() -> f64 {
    let mut data = AlignedBytes::zeroed(512 << 20);
    data.as_mut_slice().fill(1);
    let data: &[u64] = bytemuck::cast_slice(&data);
    let seconds = best(5, || {
        let mut sums = [0u64; 32];
        for line in data.as_chunks::<32>().0 {
            for (s, x) in sums.iter_mut().zip(line) {
                *s = s.wrapping_add(*x);
            }
        }
        black_box(sums);
    });
    (8 * data.len()) as f64 / seconds
}

/// Operations a second and lane, from independent chains of one instruction; 0 where the processor
/// lacks it.
#[derive(Clone, Copy, Default)]
pub struct Peaks {
    /// Double multiply-adds.
    pub fma: f64,
    /// Double multiply-adds, four at a time.
    pub fma256: f64,
    /// 52-bit integer multiply-adds.
    pub ifma: f64,
    /// 32-bit low products, each added to a sum.
    pub muladd32: f64,
}

pub fn peaks() -> Peaks {
    // Measured on x86-64 alone.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut peaks = Peaks::default();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor was just seen to have the instructions.
            peaks = unsafe { x86::peaks() };
        }
        if is_x86_feature_detected!("avx512ifma") {
            // SAFETY: the processor was just seen to have the instructions.
            peaks.ifma = unsafe { x86::ifma() };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor was just seen to have the instructions.
            peaks.fma256 = unsafe { x86::fma256() };
        }
    }
    peaks
}

/// Prints a floor beside the kernel it belongs to.
pub fn report(what: &str, floor: f64, why: &str, seconds: f64) {
    println!(
        "{what}: {:.4} ms, floor {:.4} ms ({why}), ratio {:.2}",
        1e3 * seconds,
        1e3 * floor,
        seconds / floor
    );
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Peaks, best};
    use core::arch::x86_64::*;
    use std::hint::black_box;

    const ROUNDS: usize = 1_000_000;
    const CHAINS: usize = 12;

    #[target_feature(enable = "avx512f")]
    pub fn peaks() -> Peaks {
        let per_second = |lanes: f64, seconds: f64| lanes * (ROUNDS * CHAINS) as f64 / seconds;
        let fma = best(5, || {
            let c = _mm512_set1_pd(black_box(0.5));
            let mut x = [c; CHAINS];
            for _ in 0..ROUNDS {
                for x in &mut x {
                    *x = _mm512_fmadd_pd(*x, c, c);
                }
            }
            black_box(x);
        });
        let muladd32 = best(5, || {
            // Squares: a product of constants would be folded over the rounds.
            let c = _mm512_set1_epi32(black_box(12345));
            let mut x = [c; CHAINS];
            for _ in 0..ROUNDS {
                for x in &mut x {
                    *x = _mm512_add_epi32(_mm512_mullo_epi32(*x, *x), c);
                }
            }
            black_box(x);
        });
        Peaks {
            fma: per_second(8.0, fma),
            muladd32: per_second(16.0, muladd32),
            ..Peaks::default()
        }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn ifma() -> f64 {
        let seconds = best(5, || {
            let c = _mm512_set1_epi64(black_box(12345));
            let mut x = [c; CHAINS];
            for _ in 0..ROUNDS {
                for x in &mut x {
                    *x = _mm512_madd52lo_epu64(*x, *x, c);
                }
            }
            black_box(x);
        });
        8.0 * (ROUNDS * CHAINS) as f64 / seconds
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn fma256() -> f64 {
        let seconds = best(5, || {
            let c = _mm256_set1_pd(black_box(0.5));
            let mut x = [c; CHAINS];
            for _ in 0..ROUNDS {
                for x in &mut x {
                    *x = _mm256_fmadd_pd(*x, c, c);
                }
            }
            black_box(x);
        });
        4.0 * (ROUNDS * CHAINS) as f64 / seconds
    }
}
