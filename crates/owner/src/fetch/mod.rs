//! Private fetch, the key owner's half: records are sealed to one length ([`RecordClass`]), and a [`FetchSession`] asks for
//! some and opens them.

mod record;
mod session;

pub use ciphervec::fetch::*;
pub use record::RecordClass;
pub use session::{Asked, FetchSession, MAX_FETCHED};
