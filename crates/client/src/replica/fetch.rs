//! What a server may see of which rows are read.

/// How rows that were found are read from a server. A folder and memory are read here, and show nobody anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fetch {
    /// In modes that hide queries without showing which: all of them where they take a megabyte at most, else in private, or refused where
    /// that is not offered or takes a second or longer. In other modes, and where rows are routed, by segments.
    #[default]
    Auto,
    /// In private, however long it takes.
    Private,
    /// Row by row: the server sees which they are.
    Rows,
    /// With their segments: the server sees which these are.
    Segments,
    /// Metadata and documents of all rows at once, whichever are wanted: the server sees that some are read. Vectors as [`Self::Segments`].
    Collection,
}
