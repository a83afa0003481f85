//! Basis conversion, four residues at a time.

crate::backend::shared::basis::double_conversion!("avx2,fma");

/// The upper halves of products of 52 bits by 52, from four products of 26 by 26.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn upper_halves(y: [u64; LANES], ratio: u64) -> [u64; LANES] {
    const LOW: u64 = (1 << 26) - 1;
    let (ratio_low, ratio_high) = (ratio & LOW, ratio >> 26);
    y.map(|y| {
        let (low, high) = (y & LOW, y >> 26);
        let middle = low * ratio_high + high * ratio_low + ((low * ratio_low) >> 26);
        high * ratio_high + (middle >> 26)
    })
}
