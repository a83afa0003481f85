//! What an additively homomorphic key rests on, in words and bits.

/// What `security()` says of a key. Nobody's opinion: a row of a published table and a named assumption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecurityStatement {
    /// Bits against classical attacks; 0 where the table has no row as short.
    pub bits: u32,
    /// The source of `bits`.
    pub table: &'static str,
    /// The assumption that semantic security rests on.
    pub assumption: &'static str,
    /// Whether the assumption is believed to hold against quantum computers.
    pub post_quantum: bool,
    /// Whether the key is for tests and reproductions of papers only.
    pub insecure: bool,
}
