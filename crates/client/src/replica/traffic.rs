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

impl Traffic {
    /// That of a question which took several messages.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Traffic {
            up: self.up + other.up,
            down: self.down + other.down,
            ahead: self.ahead + other.ahead,
        }
    }
}
