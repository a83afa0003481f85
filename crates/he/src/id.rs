//! Eight public bytes that name a key or a parameter set, from a hash.

fn leading(hash: &[u8; 32]) -> [u8; 8] {
    let mut id = [0; 8];
    id.copy_from_slice(&hash[..8]);
    id
}

/// Writes `bytes` as an id is shown.
pub(crate) fn write_hex(f: &mut core::fmt::Formatter<'_>, bytes: &[u8]) -> core::fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The public name of a key: derived one-way from the master key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KeyId(pub [u8; 8]);

impl KeyId {
    /// The id that a hash of a key begins with.
    #[doc(hidden)]
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        KeyId(leading(hash))
    }
}

impl core::fmt::Display for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_hex(f, &self.0)
    }
}

/// The short public name of a parameter set: the first eight bytes of BLAKE3 over its description.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParamId(pub [u8; 8]);

impl ParamId {
    /// The id of a canonical description.
    pub fn of(description: &str) -> Self {
        let digest = blake3::derive_key("ciphervec v1 param-id", description.as_bytes());
        ParamId(leading(&digest))
    }
}

impl core::fmt::Display for ParamId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_hex(f, &self.0)
    }
}
