//! Single stored words.

/// Writes `value` as word `index` of `out`.
#[inline(always)]
pub(super) fn store<const WIDTH: usize>(out: &mut [u8], index: usize, value: u64) {
    out[index * WIDTH..][..WIDTH].copy_from_slice(&value.to_le_bytes()[..WIDTH]);
}

/// Reads word `index` of `bytes`.
#[inline(always)]
pub(super) fn load<const WIDTH: usize>(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word[..WIDTH].copy_from_slice(&bytes[index * WIDTH..][..WIDTH]);
    u64::from_le_bytes(word)
}
