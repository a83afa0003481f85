//! Changes of representation of residues, four words at a time.

use crate::backend::portable;

crate::backend::shared::convert::widened_conversions!("avx2,fma");

#[target_feature(enable = "avx2")]
pub(crate) fn pack24(out: &mut [u8], values: &[u32]) {
    portable::convert::pack24(out, values);
}

#[target_feature(enable = "avx2")]
pub(crate) fn unpack24(out: &mut [u32], bytes: &[u8]) {
    portable::convert::unpack24(out, bytes);
}
