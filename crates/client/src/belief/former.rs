//! What Python clients remembered before this crate did it for them, in the user's state folder and in clear. It counts where nothing was
//! remembered since: a server must not gain a clean record by an upgrade of its client.

use ciphervec_owner::IndexSpec;
use serde::Deserialize;

use crate::belief::pins::Pin;
use crate::belief::trust::Values;
use crate::host::FORMER_COUNTS;
use crate::json;

/// What they remembered of a collection on a server; `state` since format 2.
#[derive(Deserialize)]
pub struct FormerTrust {
    format: u64,
    server: String,
    collection: String,
    pub version: u64,
    pub head: String,
    pub pins: Values,
    pub state: Option<Pin>,
}

/// Beside what they remembered of one in a folder, a [`Pin`].
#[derive(Deserialize)]
struct Format {
    format: u64,
}

/// The name that a host knows the first by.
pub fn of_server(server: &str, collection: &str) -> String {
    format!("former/server\n{server}\n{collection}")
}

/// The second.
pub fn of_origin(origin: &str) -> String {
    format!("former/origin\n{origin}")
}

/// What they counted of results for others, of an index of this description: as [`crate::view::flooding`] keeps it. It counts beside what is
/// counted since.
pub fn of_counts(spec: &IndexSpec) -> String {
    let digits = spec.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{FORMER_COUNTS}{digits}")
}

/// And the list of consumed segments.
pub fn of_consumed(origin: &str) -> String {
    format!("former/consumed\n{origin}")
}

/// Reads what was kept under [`of_server`]; none for what is no such thing.
pub fn trust_of(data: &[u8], server: &str, collection: &str) -> Option<FormerTrust> {
    let found: FormerTrust = json::read(data).ok()?;
    let here = (found.server == server) && (found.collection == collection);
    (here && [1, 2].contains(&found.format)).then_some(found)
}

/// Reads what was kept under [`of_origin`].
pub fn pin_of(data: &[u8], origin: &str) -> Option<Pin> {
    let (Format { format }, pin): (_, Pin) = (json::read(data).ok()?, json::read(data).ok()?);
    (format == 1 && pin.origin == origin).then_some(pin)
}
