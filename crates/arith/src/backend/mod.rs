//! Back-ends: families of kernels, one for an instruction set, chosen at run time. Both sides.
//!
//! `table.rs` lists the back-ends, `dispatch.rs` the operations. A back-end is a folder with a
//! module for each kind of operation, as in `portable`; what it has no kernel for it re-exports
//! from another. `shared` has the shapes that vector kernels of any width are written in,
//! `montgomery_products` the one that plain kernels have too, and `operands` what kernels read.
//!
//! # Rules for all back-ends
//!
//! - Kernels carry `#[target_feature]`; `backend/choice.rs` chooses a back-end once at run time.
//!   `CIPHERVEC_BACKEND=portable|avx2|avx512f|avx512|neon` forces one. `avx512` needs F, DQ, BW, VL, IFMA and VBMI.
//! - `tests/suite/backends_agree.rs` compares every kernel with the portable one, bit for bit.
//! - `unsafe` covers memory access through vector pointers, and the calls in `backend/dispatch.rs` after the processor is
//!   checked.
//! - Code whose values must stay in registers is a macro: nothing forces a `#[target_feature]` function inline.
//!
//! **To add a back-end**, follow "A SIMD back-end" in `CONTRIBUTING.md`. Re-export from `portable` what has no
//! kernel of its own; the macros in `backend/shared` and `backend/montgomery_products.rs` work for lanes of any width.
//!
//! # Which module
//!
//! All are in `crates/arith/src/backend/`.
//!
//! | kernel | bounds | the same for other instructions |
//! |---|---|---|
//! | transform (NTT), primes below 2^50 | `shared/ntt.rs`: doubles, passes, the conjugate-invariant ring | `x86/avx512/ifma_butterflies.rs`: integers; `wasm/simd128/residue.rs` |
//! | sums of products | `x86/avx512/lazy_reduction.rs` | `shared/poly.rs` |
//! | conversion of bases, permutations | `shared/basis.rs`, `x86/avx512/poly.rs` | `arm/mod.rs` |
//! | ring scan | `shared/ring.rs`: doubles | `x86/avx512/ring.rs`: IFMA |
//! | scans of words, rows of float32 | `shared/wrapping.rs` | |
//! | plaintext matrices | `shared/pcmm.rs` | |
//! | samplers | `x86/avx512/sample.rs` | `wasm/simd128/mod.rs` |
//! | multi-limb products | `montgomery_products.rs` | `shared/fma_limbs.rs`: doubles |
//!
//! `cargo bench -p ciphervec-arith` measures kernels; `benches/ntt` runs tfhe-ntt 0.7.1 beside.
//!
//! # Multi-limb products
//!
//! Modulo n², an element is x₀ + x₁n in two digits. A product with its reduction is 5L² limb products for digits of L
//! limbs, where a number twice as long takes 8L² (`montgomery_products.rs`).
//!
//! # ARM
//!
//! `neon` computes on pairs of its 128-bit registers; kernels of doubles are the same text as AVX2's over other lanes, so
//! that bounds hold as they stand. `make test` runs the tests of `ciphervec-arith` in QEMU, CI on an ARM machine. No time
//! was measured on ARM so far.
//!
//! # WebAssembly
//!
//! An engine without SIMD refuses a module that contains it. So the row in `backend/table.rs` exists only in builds with
//! `-C target-feature=+simd128`, and the loader calls `WebAssembly.validate` to choose one of two builds. `make web` runs
//! the tests of `ciphervec-arith` for `wasm32-wasip1` in Node, except those of panics and threads, which the target lacks.

#[cfg(target_arch = "aarch64")]
pub(crate) mod arm;
pub mod buffer;
mod choice;
pub(crate) mod dispatch;
pub(crate) mod montgomery_products;
pub(crate) mod operands;
mod pages;
pub(crate) mod portable;
// Where the target has no vector back-end, only the portable one draws from it.
#[allow(dead_code, unused_imports, unused_macros)]
pub(crate) mod shared;
mod table;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) mod wasm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

pub use choice::{BACKEND_VARIABLE, Backend};
