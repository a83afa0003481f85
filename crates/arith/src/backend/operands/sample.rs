//! Discrete Gaussian: the tail probabilities that keystream words are compared with. Both sides.

/// Largest magnitude of a sample: beyond it lies less than `2^-64` of the distribution.
pub const GAUSSIAN_BOUND: i32 = 29;

/// Its standard deviation parameter.
pub const GAUSSIAN_SIGMA: f64 = 3.2;

/// `round(2^63 P(|X| >= k))` for `k = 1 ..= 29`, where `P(X = x)` is proportional to
/// `exp(-x^2 / (2 3.2^2))` over the integers, computed with 80 decimal digits. The next entry would
/// round to zero. The statistical distance between what these integers define and the exact
/// distribution, half the sum of the absolute differences, is below `2^-60`.
pub(crate) const GAUSSIAN_TAIL: [u64; GAUSSIAN_BOUND as usize] = [
    0x700a_d4bf_9b5e_0da8,
    0x51a5_da2b_fd90_0092,
    0x3765_1d97_d1c2_4645,
    0x22d4_3df2_1906_aefa,
    0x1437_96b5_79d0_3231,
    0x0acd_2767_162e_6a26,
    0x054c_6936_7f0a_0535,
    0x0261_b170_98e8_1590,
    0x00fa_b6a9_eaf5_a6d5,
    0x005e_3166_0724_096f,
    0x0020_4c0f_f570_cc68,
    0x000a_1908_3682_9727,
    0x0002_e06a_4c8d_42ca,
    0x0000_bf08_0851_239c,
    0x0000_2d19_d2fa_8110,
    0x0000_09af_c555_d78b,
    0x0000_01e4_5466_58bc,
    0x0000_0055_febf_31ad,
    0x0000_000d_e075_c589,
    0x0000_0002_08dc_fe0c,
    0x0000_0000_4560_2b8e,
    0x0000_0000_0864_8732,
    0x0000_0000_00ec_0907,
    0x0000_0000_0017_8b76,
    0x0000_0000_0002_21dc,
    0x0000_0000_0000_2ce0,
    0x0000_0000_0000_0359,
    0x0000_0000_0000_003a,
    0x0000_0000_0000_0004,
];

/// Bytes of keystream that a kernel makes at a time: sixteen blocks.
pub(crate) const WIDE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// The table against the definition in double precision, whose own error is far below the
    /// bounds asked for.
    #[test]
    fn tail_table_is_the_distribution() {
        let weight = |x: i32| (-f64::from(x * x) / (2.0 * GAUSSIAN_SIGMA * GAUSSIAN_SIGMA)).exp();
        let total: f64 = (-80..=80).map(weight).sum();
        let tail = |k: i32| 2.0 * (k..=80).rev().map(weight).sum::<f64>() / total;
        let scale = (1u64 << 63) as f64;
        for (k, &entry) in (1..).zip(&GAUSSIAN_TAIL) {
            let exact = tail(k) * scale;
            assert!((entry as f64 - exact).abs() <= 0.5 + 1e-13 * exact, "entry {k}");
        }
        // What was cut off would have rounded to nothing, and lies below the stated bound.
        assert!(tail(GAUSSIAN_BOUND + 1) * scale < 0.5);
        assert!(GAUSSIAN_TAIL.is_sorted_by(|a, b| a > b));
    }
}
