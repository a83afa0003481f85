//! What is believed of what a store shows: one file a subject. Nothing below this module is taken from a server unchecked.

pub mod choices;
pub mod description;
pub mod fetch_book;
pub mod former;
pub mod holder;
mod home;
pub mod pins;
pub mod quarantine_book;
mod remembered;
pub mod session_book;
pub mod signed;
pub mod state;
pub mod trust;
pub mod vault;
