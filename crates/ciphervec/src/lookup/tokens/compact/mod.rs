//! Compact transport: the client sends indices as fractions of a turn in half a ring; the server makes roots of unity of them,
//! with levels to compute with.
//!
//! What is sent is modulo q_0 alone and rounded; the server takes it to the whole ring and makes
//! exp(2πi x) of it by functional bootstrapping. Numbers go two lists to a bootstrapping, as real and
//! as imaginary parts.

mod carrier;
mod cost;
pub mod layout;
pub mod messages;
mod plan;
pub(in crate::lookup) mod roots;

pub use cost::CompactCost;
pub(in crate::lookup) use layout::Compact;
pub(super) use plan::CompactPlan;
