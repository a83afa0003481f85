//! The secret of a half ring.

mod owner;
#[cfg(all(test, feature = "hazmat"))]
mod tests;

pub use owner::HalfRingKey;
