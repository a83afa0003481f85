//! Authorisation: whose token a request bears, and what that one may do. For the gate; knows no HTTP.

mod access;
mod in_flight;
pub mod issuers;
mod scope;
pub mod tokens;
mod verb;

pub use access::{Access, Principal, Sender};
pub use in_flight::{InFlight, InFlightGuard};
pub use scope::Scope;
pub use verb::Verb;
