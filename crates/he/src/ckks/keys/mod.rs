//! Public keys and evaluation keys, and the plan of those to make. The secret key is in
//! `ciphervec-he-secret`.

mod evaluation;
mod key_switch_key;
mod plan;
mod public;

pub use evaluation::EvaluationKeys;
pub use key_switch_key::KeySwitchKey;
pub use plan::KeyPlan;
pub use public::PublicKey;
