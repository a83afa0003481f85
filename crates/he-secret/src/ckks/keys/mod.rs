//! Keys: secret ones, and the public ones that they make.

mod budget;
pub(super) mod key_switch_key;
mod secret;

pub use budget::{Budget, PublishPolicy};
pub use secret::SecretKey;
