//! Audit logs, for servers and for whoever checks them: each line is hashed with all before it, so that none is changed, left out
//! or put in between unseen, and a key that decrypts nothing signs where the log has come to.
//!
//! A line is a JSON object that ends with its number and the chain's value, BLAKE3 of the value before, the number and the line's
//! own text. Whoever can write the file can still cut off its end, up to the last value that somebody else has seen.
//!
//! The last two fields of a line, without spaces around them, are `"line"`, its number from 1 on in its file, and `"chain"`, 64
//! hexadecimal digits: BLAKE3's `derive_key`, context `ciphervec v1 line of an audit log`, of the former line's chain (32 zeros
//! before the first), the number u64 and the line's text up to the comma before `"line"`. These lines have fields of their own:
//!
//! |line begins|contains|
//! |---|---|
//! |`{"event":"signed","key":…,"signature":…`|an Ed25519 key and its signature of `ciphervec v1 audit log`, a zero byte, the former line's number u64 and chain|
//! |`{"event":"begun","after_line":…,"after":…`|first in a file that follows another: the last number and chain there|
//! |`{"event":"continued","unsigned":…`|how many lines had no signature when the log was gone on with|
//! |`{"event":"lost","lines":…`|how many lines could not be written|

mod chain;
#[cfg(not(target_arch = "wasm32"))]
mod file;
mod verify;

pub use chain::{AUDIT_KEY_BYTES, Chain, Mark, Place, verifying_key};
#[cfg(not(target_arch = "wasm32"))]
pub use file::{AuditLog, verify};
pub use verify::{Broken, Check, Verified, begins};

/// Bytes of the longest line that is read.
pub const MOST: u64 = 1 << 20;
// How lines begin that say something of the log itself.
const BEGUN: &str = "{\"event\":\"begun\"";
const FOLLOWING: &str = "{\"event\":\"begun\",\"after_line\":";
const CONTINUED: &str = "{\"event\":\"continued\",\"unsigned\":";
const LOST: &str = "{\"event\":\"lost\",\"lines\":";
const SIGNATURE: &str = "{\"event\":\"signed\",\"key\":\"";
