//! ARM back-ends: one, with NEON, which every 64-bit ARM processor has.
//!
//! # What differs
//!
//! `neon` computes on pairs of its 128-bit registers, which hold what one AVX2 register does.
//! Kernels of doubles are the same text as AVX2's (`double_*` in `backend/shared`) over other
//! lanes, so bounds, tiles and tails hold as they stand. What differs:
//!
//! - **Conversions** between words and doubles are instructions. Exchanging halves of a pair takes
//!   none.
//! - **The ring scan** moves bytes by `tbl`; `trn1` and `trn2` put 2^52 above both halves of a
//!   residue at once.
//! - **Words of 64 bits** have no vector product: `uzp` parts two registers into halves, for two
//!   `umlal` and two `mla`.
//! - **Bytes times ternary rows** are `mla` of bytes.
//! - **Multi-limb products** are those in doubles: five instructions for two products of 52 bits,
//!   where words take four (`mul`, `smulh`, `adds`, `adc`) for one of 60 bits.
//! - **Upper halves in a conversion** of bases are `mul` and `umulh`; permutations are loads.
//! - **Conversions and samplers** are the portable loops, which the compiler vectorises, and the
//!   `chacha20` crate.
#![allow(unsafe_code)]

pub(crate) mod neon;
