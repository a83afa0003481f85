//! Word scan: eight words of 32 bits in a vector, or four of 64.

use core::arch::x86_64::*;

use core::arch::x86_64::__m256i as Words;

crate::backend::shared::matmul::word_scans!("avx2");

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> Words {
    // SAFETY: the reference covers 32 readable bytes; the load has no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<T>(to: &mut [T], x: Words) {
    assert!(size_of_val(to) >= 32);
    // SAFETY: the assertion saw 32 writable bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), x) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn zero_words() -> Words {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn set_short(q: i32) -> Words {
    _mm256_set1_epi32(q)
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply_short(x: Words, q: Words) -> Words {
    _mm256_mullo_epi32(x, q)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_short(x: Words, y: Words) -> Words {
    _mm256_add_epi32(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_long(x: Words, y: Words) -> Words {
    _mm256_add_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn keep_24(x: Words) -> Words {
    _mm256_and_si256(x, _mm256_set1_epi32(0xff_ffff))
}

/// Eight 3-byte words in 4-byte lanes, the top byte zero: the first four and 4 bytes behind them, then
/// the last four and 4 bytes before them.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(words: &[u8; 24]) -> Words {
    let (low, high) = (&words[..16], &words[8..]);
    // SAFETY: both slices are 16 readable bytes.
    let raw = unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) };
    let first = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    let last = _mm_setr_epi8(4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    _mm256_shuffle_epi8(raw, _mm256_set_m128i(last, first))
}

/// Products modulo `2^64`, or sums of such, in two parts that are put together at the end: `low` as
/// it is, and the halves of `crossed`, modulo `2^32`, above it.
#[derive(Clone, Copy)]
struct Product {
    low: __m256i,
    crossed: __m256i,
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Product { low: _mm256_setzero_si256(), crossed: _mm256_setzero_si256() }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn total(self) -> __m256i {
        let both = _mm256_add_epi32(self.crossed, _mm256_srli_epi64::<32>(self.crossed));
        _mm256_add_epi64(self.low, _mm256_slli_epi64::<32>(both))
    }
}

/// A query's word in every lane, as it is and with its halves exchanged.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_u64(q: i64) -> [__m256i; 2] {
    let q = _mm256_set1_epi64x(q);
    [q, _mm256_shuffle_epi32::<0b10_11_00_01>(q)]
}

/// Three 32-bit products by two instructions: one multiplies both halves of `x` by the other halves
/// of `q`.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply_u64(x: __m256i, [q, exchanged]: [__m256i; 2]) -> Product {
    Product { low: _mm256_mul_epu32(x, q), crossed: _mm256_mullo_epi32(x, exchanged) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_u64(sum: Product, product: Product) -> Product {
    Product {
        low: _mm256_add_epi64(sum.low, product.low),
        crossed: _mm256_add_epi32(sum.crossed, product.crossed),
    }
}
