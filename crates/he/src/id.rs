//! Identifiers of keys and of parameter sets: a description enters, eight public bytes leave. Both
//! sides.

/// The public name of a key: derived one-way from the master key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KeyId(pub [u8; 8]);

impl core::fmt::Display for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The short public name of a parameter set: the first eight bytes of BLAKE3 over its description.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParamId(pub [u8; 8]);

impl ParamId {
    /// The id of a canonical description.
    pub fn of(description: &str) -> Self {
        let digest = blake3::derive_key("ciphervec v1 param-id", description.as_bytes());
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        ParamId(id)
    }
}

impl core::fmt::Display for ParamId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
