//! Gaussian numbers in doubles, for noise on results. Owner only.
//!
//! Box & Muller in doubles, good to 53 bits and not in constant time. What they are added to is
//! rounded to a grid far coarser than their last bits. Noise of ciphertexts comes from
//! [`ciphervec_arith::sample`].

use ciphervec_arith::sample::Stream;
use zeroize::Zeroizing;

/// `count` pairs of independent standard Gaussian numbers from one stream of a seed.
pub fn pairs(seed: &[u8; 32], stream: u64, count: usize) -> Zeroizing<Vec<[f64; 2]>> {
    let mut words = Zeroizing::new(vec![0u64; 2 * count]);
    Stream::new(seed, stream).fill(bytemuck::cast_slice_mut(&mut words));
    let unit = |word: u64| ((word >> 11) as f64 + 0.5) * f64::exp2(-53.0);
    let draw = |[radius, angle]: &[u64; 2]| {
        let radius = (-2.0 * unit(*radius).ln()).sqrt();
        let (sin, cos) = (core::f64::consts::TAU * unit(*angle)).sin_cos();
        [radius * cos, radius * sin]
    };
    Zeroizing::new(words.as_chunks::<2>().0.iter().map(draw).collect())
}
