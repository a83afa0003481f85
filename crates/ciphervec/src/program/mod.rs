//! Programs: plain functions of arrays, planned by their owner, run on encrypted arrays by a server.
//! Both sides.
//!
//! A [`Circuit`] is what is computed: steps on *registers*, vectors of as many numbers as there are
//! slots. A [`Machine`] computes its steps: [`Clear`] on numbers, [`CkksMachine`] on ciphertexts. A
//! [`Plan`] is a circuit with parameters and the list of keys that it needs; a
//! [`Server`] runs it for a client of `ciphervec-owner`, with bytes between them.

mod arrays;
mod circuit;
mod ckks;
#[doc(hidden)]
pub mod clear;
mod encoded;
mod fit;
mod footprint;
mod list_bytes;
mod look_up;
mod machine;
mod mixed;
mod numbers;
mod placement;
mod plan;
mod reach;
mod reading;
mod reference;
mod refresh_search;
mod refreshed;
mod refreshing;
mod rounding;
mod serialize;
#[doc(hidden)]
pub mod server;
mod step_bytes;
#[doc(hidden)]
pub mod tolerance;
#[doc(hidden)]
pub mod trial;
mod view_bytes;
mod weighing;

pub use crate::refusal::Refusal;
pub use arrays::{Answer, Decoding, Input, Output, Register, View};
pub use circuit::{Circuit, Step};
pub use ckks::CkksMachine;
pub use clear::Clear;
pub use fit::{Candidate, candidates};
pub use footprint::Footprint;
pub use machine::{Constant, Machine, execute};
pub use mixed::{Held, Mixed, Open};
pub use numbers::Numbers;
pub use placement::{Block, Domain, Loop, Placement};
pub use plan::{KeySet, Plan, PlanId, Undecided};
pub use reading::Reading;
pub use refreshed::Refreshed;
pub use serialize::PlanBytes;
pub use server::{Sealed, Server, frames, key_of_input, key_of_keys};
pub use tolerance::{Asked, FAILURE_BITS, OutputForecast};
pub use trial::{StepForecast, Trial};
