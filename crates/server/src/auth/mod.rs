//! Authorisation: a bearer token enters, who sent it and what that one may do leaves. Server side;
//! knows no HTTP.

mod access;
mod in_flight;
pub mod tokens;
mod verb;

pub use access::{Access, Principal};
pub use in_flight::{InFlight, InFlightGuard};
pub use verb::Verb;
