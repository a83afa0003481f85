//! Back-ends: families of kernels, one for an instruction set, chosen at run time. Both sides.
//!
//! `table.rs` lists the back-ends, `dispatch.rs` the operations. A back-end is a folder with a
//! module for each kind of operation, as in `portable`; what it has no kernel for it re-exports
//! from another. `shared` has the shapes that vector kernels of any width are written in,
//! `montgomery_products` the one that plain kernels have too, and `operands` what kernels read.

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
