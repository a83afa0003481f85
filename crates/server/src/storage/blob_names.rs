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
/// Its wrapped key.
pub(super) const WRAP: &str = "wrap";
/// The attachment that holds a collection's evaluation keys.
pub(super) const EVALUATION: &str = "evaluation";
