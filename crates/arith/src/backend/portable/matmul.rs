//! One tile of `[dim][w]` words and one query enter, `w` wrapping inner products leave.

pub(crate) fn tile_u32(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(4 * w).zip(query) {
        for (y, word) in out.iter_mut().zip(row.as_chunks::<4>().0) {
            *y = y.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(q as u32));
        }
    }
}

pub(crate) fn tile_u24(tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(3 * w).zip(query) {
        for (y, &[a, b, c]) in out.iter_mut().zip(row.as_chunks::<3>().0) {
            *y = y.wrapping_add(u32::from_le_bytes([a, b, c, 0]).wrapping_mul(q as u32));
        }
    }
    out.iter_mut().for_each(|y| *y &= 0xff_ffff);
}

pub(crate) fn tile_u64(tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    out.fill(0);
    for (row, &q) in tile.chunks_exact(8 * w).zip(query) {
        for (y, word) in out.iter_mut().zip(row.as_chunks::<8>().0) {
            *y = y.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(q as u64));
        }
    }
}
