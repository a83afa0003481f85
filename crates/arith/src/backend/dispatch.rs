//! A back-end and a kernel's arguments enter, that back-end's kernel runs. One match per operation, all of them here.
#![allow(unsafe_code)]

use super::products::{Reduction, Row};
use super::{Backend, portable};
use crate::basis::BasisConversion;
use crate::modulus::{Modulus, Shoup};
use crate::ntt::NttTable;
use crate::pcmm::Weights;

#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, avx512f};

/// How a back-end's Montgomery kernels hold numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimbFormat {
    /// Bits of a limb.
    pub radix: u32,
    /// Residues whose limbs lie side by side.
    pub width: usize,
    /// The number of limbs is a multiple of it.
    pub tile: usize,
    /// Whether limbs lie around zero, not above it.
    pub signed: bool,
    /// A limb as the kernels store it.
    pub encode: fn(i64) -> u64,
    /// And back.
    pub decode: fn(u64) -> i64,
}

/// Runs the kernel of the same name in one of the three modules, after seeing that the processor can.
macro_rules! on {
    ($backend:expr, $module:ident :: $kernel:ident $(::<$flag:ident>)? ($($argument:expr),* $(,)?)) => {{
        let backend: Backend = $backend;
        assert!(backend.is_available(), "this processor cannot run the {} back-end", backend.name());
        match backend {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion saw every feature that the kernel is compiled with.
            Backend::Avx512 => unsafe { avx512::$module::$kernel$(::<$flag>)?($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion saw every feature that the kernel is compiled with.
            Backend::Avx2 | Backend::Avx512f => unsafe { avx2::$module::$kernel$(::<$flag>)?($($argument),*) },
            _ => portable::$module::$kernel$(::<$flag>)?($($argument),*),
        }
    }};
}

/// The same for the multi-limb products, which AVX-512 F has kernels of its own for.
macro_rules! on_montgomery {
    ($backend:expr, $kernel:ident ($($argument:expr),* $(,)?)) => {
        match $backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512f => {
                assert!(Backend::Avx512f.is_available(), "this processor cannot run avx512f");
                // SAFETY: the assertion saw every feature that the kernel is compiled with.
                unsafe { avx512f::montgomery::$kernel($($argument),*) }
            }
            other => on!(other, montgomery::$kernel($($argument),*)),
        }
    };
}

pub(crate) fn forward<const LAZY: bool>(backend: Backend, table: &NttTable, data: &mut [u64]) {
    on!(backend, ntt::forward::<LAZY>(table, data));
}

pub(crate) fn inverse<const LAZY: bool>(backend: Backend, table: &NttTable, data: &mut [u64]) {
    on!(backend, ntt::inverse::<LAZY>(table, data));
}

pub(crate) fn add_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    on!(Backend::current(), poly::add_assign(a, b, m));
}

pub(crate) fn sub_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    on!(Backend::current(), poly::sub_assign(a, b, m));
}

pub(crate) fn neg_assign(a: &mut [u64], m: &Modulus) {
    on!(Backend::current(), poly::neg_assign(a, m));
}

pub(crate) fn mul(out: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    on!(Backend::current(), poly::mul(out, a, b, m));
}

pub(crate) fn mul_assign(a: &mut [u64], b: &[u64], m: &Modulus) {
    on!(Backend::current(), poly::mul_assign(a, b, m));
}

pub(crate) fn mul_add_assign(acc: &mut [u64], a: &[u64], b: &[u64], m: &Modulus) {
    on!(Backend::current(), poly::mul_add_assign(acc, a, b, m));
}

pub(crate) fn scalar_mul_assign(a: &mut [u64], s: &Shoup, m: &Modulus) {
    on!(Backend::current(), poly::scalar_mul_assign(a, s, m));
}

pub(crate) fn dot(out: &mut [u64], a: &[&[u64]], b: &[&[u64]], m: &Modulus) {
    on!(Backend::current(), poly::dot(out, a, b, m));
}

pub(crate) fn sub_scale_assign(a: &mut [u64], b: &[u64], s: &Shoup, m: &Modulus) {
    on!(Backend::current(), poly::sub_scale_assign(a, b, s, m));
}

pub(crate) fn sub_centred_scale_assign(
    a: &mut [u64],
    b: &[u64],
    from: &Modulus,
    s: &Shoup,
    m: &Modulus,
) {
    on!(Backend::current(), poly::sub_centred_scale_assign(a, b, from, s, m));
}

pub(crate) fn recentre_to(out: &mut [u64], poly: &[u64], from: &Modulus, to: &Modulus) {
    on!(Backend::current(), poly::recentre_to(out, poly, from, to));
}

pub(crate) fn permute(out: &mut [u64], a: &[u64], perm: &[u32]) {
    on!(Backend::current(), switch::permute(out, a, perm));
}

pub(crate) fn dot_pair(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    m: &Modulus,
) {
    on!(Backend::current(), switch::dot_pair(out0, out1, digits, keys0, keys1, m));
}

pub(crate) fn dot_pair_permuted(
    out0: &mut [u64],
    out1: &mut [u64],
    digits: &[&[u64]],
    keys0: &[&[u64]],
    keys1: &[&[u64]],
    perm: &[u32],
    m: &Modulus,
) {
    on!(Backend::current(), switch::dot_pair_permuted(out0, out1, digits, keys0, keys1, perm, m));
}

pub(crate) fn convert_basis(c: &BasisConversion, from: &[&[u64]], to: &mut [&mut [u64]]) {
    on!(Backend::current(), basis::convert(c, from, to));
}

pub(crate) fn pcmm(weights: &Weights, inputs: &[&[u64]], outputs: &mut [&mut [u64]], m: &Modulus) {
    on!(Backend::current(), pcmm::multiply(weights, inputs, outputs, m));
}

pub(crate) fn tile_u32(backend: Backend, tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    on!(backend, matmul::tile_u32(tile, w, query, out));
}

pub(crate) fn tile_u24(backend: Backend, tile: &[u8], w: usize, query: &[i32], out: &mut [u32]) {
    on!(backend, matmul::tile_u24(tile, w, query, out));
}

pub(crate) fn tile_u64(backend: Backend, tile: &[u8], w: usize, query: &[i64], out: &mut [u64]) {
    on!(backend, matmul::tile_u64(tile, w, query, out));
}

pub(crate) fn unpack50(bytes: &[u8], out: &mut [u64]) {
    on!(Backend::current(), ring::unpack50(bytes, out));
}

pub(crate) fn ring_scan(
    data: &[u8],
    nodes: usize,
    queries: &[&[u64]],
    m: &Modulus,
    u: &mut [u64],
    v: &mut [u64],
) {
    on!(Backend::current(), ring::scan(data, nodes, queries, m, u, v));
}

pub(crate) fn accept(words: &mut [u64], mask: u64, q: u64) -> usize {
    on!(Backend::current(), sample::accept(words, mask, q))
}

pub(crate) fn gaussian(words: &[u64], out: &mut [i32]) {
    on!(Backend::current(), sample::gaussian(words, out));
}

pub(crate) fn batch_u32(
    backend: Backend,
    tile: &[u8],
    w: usize,
    packed: &[i32],
    block: usize,
    out: &mut [&mut [u32]],
) {
    on!(backend, matmul::batch_u32(tile, w, packed, block, out));
}

pub(crate) fn batch_u24(
    backend: Backend,
    tile: &[u8],
    w: usize,
    packed: &[i32],
    block: usize,
    out: &mut [&mut [u32]],
) {
    on!(backend, matmul::batch_u24(tile, w, packed, block, out));
}

pub(crate) fn batch_u64(
    backend: Backend,
    tile: &[u8],
    w: usize,
    packed: &[i64],
    block: usize,
    out: &mut [&mut [u64]],
) {
    on!(backend, matmul::batch_u64(tile, w, packed, block, out));
}

/// How many queries a back-end's batch kernels take at a time.
pub(crate) fn query_block(backend: Backend) -> usize {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => avx512::matmul::QUERIES,
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 | Backend::Avx512f => avx2::matmul::QUERIES,
        _ => portable::matmul::QUERIES,
    }
}

pub(crate) fn recentre(poly: &mut [u64], from: u64, to: u64) {
    on!(Backend::current(), convert::recentre(poly, from, to));
}

pub(crate) fn centre(poly: &mut [u64], modulus: u64) {
    on!(Backend::current(), convert::centre(poly, modulus));
}

pub(crate) fn lift(out: &mut [u64], values: &[i64], modulus: u64) {
    on!(Backend::current(), convert::lift(out, values, modulus));
}

pub(crate) fn lift_ternary(out: &mut [u64], values: &[i8], modulus: u64) {
    on!(Backend::current(), convert::lift_ternary(out, values, modulus));
}

pub(crate) fn lift_noisy(out: &mut [u64], values: &[i64], noise: &[i32], modulus: u64) {
    on!(Backend::current(), convert::lift_noisy(out, values, noise, modulus));
}

pub(crate) fn switch_down(out: &mut [u32], poly: &[u64], modulus: u64) {
    on!(Backend::current(), convert::switch_down(out, poly, modulus));
}

pub(crate) fn switch_up(out: &mut [u64], values: &[u32], modulus: u64) {
    on!(Backend::current(), convert::switch_up(out, values, modulus));
}

/// Fills `out` with keystream from block `counter` on, if the back-end has a kernel of its own for that.
pub(crate) fn keystream(
    key: &[u8; 32],
    nonce: &[u8; 12],
    counter: u32,
    out: &mut [[u8; 1024]],
) -> bool {
    match Backend::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `current` only ever gives a back-end that was seen to be available.
        Backend::Avx512 => unsafe { avx512::chacha::keystream(key, nonce, counter, out) },
        _ => {
            let _ = (key, nonce, counter, out);
            false
        }
    }
}

pub(crate) fn pack24(out: &mut [u8], values: &[u32]) {
    on!(Backend::current(), convert::pack24(out, values));
}

pub(crate) fn unpack24(out: &mut [u32], bytes: &[u8]) {
    on!(Backend::current(), convert::unpack24(out, bytes));
}

pub(crate) fn montgomery_mul(
    backend: Backend,
    r: &Reduction,
    lanes: usize,
    out: &mut [Row],
    a: &[Row],
    b: &[Row],
    m: &mut [Row],
) {
    on_montgomery!(backend, mul(r, lanes, out, a, b, m));
}

pub(crate) fn montgomery_square(
    backend: Backend,
    r: &Reduction,
    lanes: usize,
    out: &mut [Row],
    a: &[Row],
    m: &mut [Row],
) {
    on_montgomery!(backend, square(r, lanes, out, a, m));
}

pub(crate) fn montgomery_select(
    backend: Backend,
    out: &mut [Row],
    table: &[Row],
    index: &[u64; 8],
) {
    on_montgomery!(backend, select(out, table, index));
}

pub(crate) fn montgomery_select_single(
    backend: Backend,
    out: &mut [Row],
    table: &[u64],
    index: &[u64; 8],
) {
    on_montgomery!(backend, select_single(out, table, index));
}

/// How a back-end's Montgomery kernels hold numbers.
pub(crate) fn limb_format(backend: Backend) -> LimbFormat {
    macro_rules! format {
        ($module:ident, $signed:literal) => {
            LimbFormat {
                radix: $module::montgomery::RADIX,
                width: $module::montgomery::WIDTH,
                tile: $module::montgomery::TILE,
                signed: $signed,
                encode: $module::montgomery::encode,
                decode: $module::montgomery::decode,
            }
        };
    }
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => format!(avx512, false),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512f => format!(avx512f, true),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => format!(avx2, true),
        _ => format!(portable, true),
    }
}
