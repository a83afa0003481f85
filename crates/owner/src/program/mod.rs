//! Programs, the key owner's half: a [`Client`] encrypts inputs and decrypts answers; [`Simulated`] says with which noise.

mod client;
mod simulated;

pub use ciphervec::program::*;
pub use client::Client;
pub use simulated::Simulated;
