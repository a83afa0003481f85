//! Compact transport: the client sends indices as fractions of a turn in half a ring; the server makes roots of unity of them,
//! with levels to compute with.
//!
//! What is sent is modulo q_0 alone and rounded; the server takes it to the whole ring and makes
//! exp(2πi x) of it by functional bootstrapping. Numbers go two lists to a bootstrapping, as real and
//! as imaginary parts.
//!
//! With J the fraction of a turn:
//!
//! 1. The client encrypts J, times q_0, as coefficients of a polynomial of degree below N/2 under a secret of its own. It sends B
//!    bits of each and one seed of 16 bytes a query.
//! 2. The server raises modulus and ring and takes exp(2πi x) of real and of imaginary parts: two lists of roots.
//! 3. From there it is `ive`; `ive_digits` sends two roots, one for each digit.
//!
//! B is the least with which the error stays within `precision_bits`. An index is off by 2^−B/√12 of a turn, a root by √2 π times
//! that in either part, and the k-th power by k times as much.

mod carrier;
mod cost;
pub mod layout;
pub mod messages;
mod plan;
pub(in crate::lookup) mod roots;

pub use cost::CompactCost;
pub(in crate::lookup) use layout::Compact;
pub(super) use plan::CompactPlan;
