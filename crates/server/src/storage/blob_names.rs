//! Blob names: what the parts of a segment and the attachments that the server reads are called.
//! Server side.

/// The rows of a segment, in the form that is searched.
pub(super) const ROWS: &str = "rows";
/// Its filter tags.
pub(super) const TAGS: &str = "tags";
/// Its sealed ids and vectors.
pub(super) const SIDECAR: &str = "sidecar";
/// Its sealed records.
pub(super) const RECORDS: &str = "records";
/// Its vectors as they were put in, sealed.
pub(super) const ORIGINALS: &str = "originals";
/// The blobs of sealed rows that are fetched in private.
pub(super) const FETCHED: [&str; 2] = [RECORDS, ORIGINALS];
/// Its wrapped key, where a writer sealed it.
pub(crate) const WRAP: &str = "wrap";
/// What a segment that a writer sealed may have: tags are the owner's, who has the key to them.
pub(crate) const APPENDED: [&str; 4] = [ROWS, SIDECAR, RECORDS, WRAP];
/// The attachment that holds a collection's evaluation keys.
pub(super) const EVALUATION: &str = "evaluation";
/// The attachment in which the owner authenticates each state: it goes with the commits that make it.
pub(crate) const STATE: &str = "state";
/// The attachment that says how a collection is routed.
pub(crate) const ROUTING: &str = "routing";
/// Attachments that go with an owner's changes of rows: the state, the list of writers' segments that were consumed, and where a
/// collection is routed its sealed table and the sealed centroids of it and of the next one.
pub(crate) const OWNED: [&str; 5] = [STATE, "consumed", ROUTING, "centroids-a", "centroids-b"];
