//! Authorisation: whose token a request bears, and what that one may do. For the gate; knows no HTTP.

mod access;
mod accounts;
pub mod issuers;
mod limits;
mod scope;
pub mod tokens;
mod usage;
mod verb;

pub use access::{Access, Principal, Sender};
pub use accounts::{Accounts, Asked, InFlightGuard, Turned};
pub use limits::{Full, Limits, Rate, Stored};
pub use scope::Scope;
pub use verb::Verb;
