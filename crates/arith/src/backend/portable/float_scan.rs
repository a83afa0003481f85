//! Inner products of float32 rows with queries in double precision, in eight sums each.

pub(crate) fn products(rows: &[u8], dim: usize, queries: &[f64], out: &mut [&mut [[u8; 4]]]) {
    for (k, out) in out.iter_mut().enumerate() {
        let query = &queries[k * dim..][..dim];
        for (v, out) in out.iter_mut().enumerate() {
            let row = &rows[4 * dim * v..][..4 * dim];
            let mut sums = [0.0; 8];
            let (words, query) = (row.as_chunks::<32>().0, query.as_chunks::<8>().0);
            for (words, query) in words.iter().zip(query) {
                for ((sum, word), q) in sums.iter_mut().zip(words.as_chunks::<4>().0).zip(query) {
                    *sum += f64::from(f32::from_le_bytes(*word)) * q;
                }
            }
            *out = finish(&sums, row, &queries[k * dim..][..dim]);
        }
    }
}

/// The inner product, of which `sums` has all but the last dimensions.
#[inline(always)]
pub(crate) fn finish(sums: &[f64; 8], row: &[u8], query: &[f64]) -> [u8; 4] {
    let (words, rest) = (row.as_chunks::<4>().0, query.len() / 8 * 8);
    let rest: f64 = words[rest..]
        .iter()
        .zip(&query[rest..])
        .map(|(word, q)| f64::from(f32::from_le_bytes(*word)) * q)
        .sum();
    ((sums.iter().sum::<f64>() + rest) as f32).to_le_bytes()
}
