//! What a question takes on its way, for whoever asks what it costs.

/// Bytes of the latest lone question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Of the question.
    pub up: u64,
    /// Of its answer.
    pub down: u64,
    /// Of the part of its answer that had been fetched ahead.
    pub ahead: u64,
}
