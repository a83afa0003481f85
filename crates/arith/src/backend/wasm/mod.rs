//! WebAssembly back-ends: one, with SIMD of 128 bits.
//!
//! Modules cannot ask what runs them: this one is in builds with `-C target-feature=+simd128` and in
//! no other, and whoever loads one of the two builds chooses.
#![allow(unsafe_code)]

pub(crate) mod simd128;
