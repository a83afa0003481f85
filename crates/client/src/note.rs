//! Notes for a user's own log of what a client did: which operation, on which collection, how many rows and bytes, and
//! whether it was done. Never content: no id, text, vector or field, and no message of an error, which may name some.

use serde::Serialize;

/// What a client did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Note<'a> {
    /// Such as `add`, `query` or `rotate-keys`.
    pub action: &'static str,
    /// The collection's name, or a table's.
    pub collection: &'a str,
    /// `done`; or `failed`, also where the caller ended it.
    pub outcome: &'static str,
    /// Rows that were written, deleted or returned, or queries that were asked.
    pub count: u64,
}

impl Note<'_> {
    /// A line of an audit log: a JSON object with the time since 1970 in seconds, and bytes of bodies that were sent and received.
    pub fn line(&self, time: f64, sent: u64, received: u64) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            time: f64,
            #[serde(flatten)]
            note: &'a Note<'a>,
            sent: u64,
            received: u64,
        }
        // Numbers and names always become JSON.
        serde_json::to_string(&Line { time, note: self, sent, received }).unwrap_or_default()
    }
}
