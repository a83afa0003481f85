//! Bytes of sums of 24, 32 or 64 bits, little-endian.

use super::Width;

pub(super) fn append_u32(width: Width, sums: &[u32], out: &mut Vec<u8>) {
    let bytes = width.word_bytes();
    let start = out.len();
    out.resize(start + sums.len() * bytes, 0);
    match bytes {
        4 => {
            for (word, sum) in out[start..].as_chunks_mut::<4>().0.iter_mut().zip(sums) {
                *word = sum.to_le_bytes();
            }
        }
        _ => {
            for (word, sum) in out[start..].as_chunks_mut::<3>().0.iter_mut().zip(sums) {
                let bytes = sum.to_le_bytes();
                *word = [bytes[0], bytes[1], bytes[2]];
            }
        }
    }
}

pub(super) fn append_u64(sums: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + sums.len() * 8, 0);
    for (word, sum) in out[start..].as_chunks_mut::<8>().0.iter_mut().zip(sums) {
        *word = sum.to_le_bytes();
    }
}
