//! Operands of conversions: which digit of a residue is cut.

/// One of the signed digits of a residue in `(-q/2, q/2)`, q below 2^50.
pub(crate) struct SignedDigit {
    /// Makes all residues positive, half a digit at every place; and rounds.
    pub offset: u64,
    /// Where the digit starts.
    pub shift: u32,
    /// The digit's bits.
    pub mask: u64,
    /// What the offset adds to it.
    pub half: u64,
}
