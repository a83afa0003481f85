//! Segments as servers of release 0.1 left them once they had taken deleted rows out.

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::search::SegmentHead;

/// Rows of a tile, whose words lie dimension by dimension.
const TILE: usize = 64;

/// The framed segment without the rows that are `deleted`, in words of so many bytes.
pub fn without_rows(
    segment: &[u8],
    dimension: usize,
    word: usize,
    deleted: &[bool],
) -> AlignedBytes {
    let rows = deleted.len();
    let left: Vec<usize> = (0..rows).filter(|&row| !deleted[row]).collect();
    let place = |rows: usize, row: usize, dim: usize| {
        let first = row / TILE * TILE;
        (first * dimension + dim * TILE.min(rows - first) + row - first) * word
    };
    let (head, words) = segment.split_at(SegmentHead::LEN);
    let bitmap = rows.div_ceil(8).next_multiple_of(64);
    let mut out = head.to_vec();
    out.resize(head.len() + bitmap + left.len() * dimension * word, 0);
    let payload = (out.len() - 64) as u64;
    out[24..32].copy_from_slice(&payload.to_le_bytes());
    out[64 + 29] = 1;
    out[64 + 32..][..4].copy_from_slice(&(left.len() as u32).to_le_bytes());
    let (front, kept) = out.split_at_mut(head.len() + bitmap);
    for (to, &from) in left.iter().enumerate() {
        front[head.len() + from / 8] |= 1 << (from % 8);
        for dim in 0..dimension {
            let source = &words[place(rows, from, dim)..][..word];
            kept[place(left.len(), to, dim)..][..word].copy_from_slice(source);
        }
    }
    reseal(&mut out);
    AlignedBytes::from_slice(&out)
}

/// A frame whose checksum is right although its bytes are not.
pub fn reseal(bytes: &mut [u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    let checksum = *hasher.finalize().as_bytes();
    bytes[32..64].copy_from_slice(&checksum);
}
