//! Bootstrapping keys of a secret key.

mod encapsulation;
mod keys;
mod owner;
#[cfg(all(test, feature = "hazmat"))]
mod tests;
