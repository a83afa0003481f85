//! Arithmetic: residues, transforms, packed scans and samplers in; the same numbers on every
//! machine out. Both sides.
//!
//! Four back-ends (AVX-512, AVX-512 F, AVX2, portable) are compiled into every build for x86-64 and
//! one is chosen at run time; 64-bit ARM has NEON in place of the first three, and WebAssembly a build
//! with SIMD and one without; see [`Backend`].
//! Whatever the choice, every function here returns the same bits.
#![deny(unsafe_code)]

pub mod backend;
pub mod basis;
pub mod convert;
pub mod curve25519;
pub mod error;
pub mod float_scan;
pub mod matmul;
pub mod modulus;
pub mod montgomery;
pub mod ntt;
pub mod parallel;
pub mod pcmm;
pub mod poly;
pub mod prime;
pub mod ring;
pub mod rns;
pub mod sample;
pub mod words;
pub mod wrapping;

pub use backend::{Backend, buffer};
pub use basis::BasisConversion;
pub use buffer::AlignedBytes;
pub use error::ArithError;
pub use modulus::{Modulus, Shoup};
pub use ntt::NttTable;
pub use prime::{is_prime, ntt_primes};
pub use rns::RnsPair;
pub use sample::{GAUSSIAN_BOUND, Stream};
