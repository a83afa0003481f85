//! Filter tags: keyed tags of chosen fields' values, by which a server matches rows. Key owner only.
//!
//! Tags leak equality: a server sees which rows share a value of a field, and which rows a filtered query asks for.

pub use ciphervec::protect::filter::*;

/// The tag of `field = value`: the first 16 bytes of keyed BLAKE3 over the field's length, the
/// field and the value.
pub fn tag(filter_key: &[u8; 32], field: &str, value: &[u8]) -> FilterTag {
    let mut hasher = blake3::Hasher::new_keyed(filter_key);
    hasher.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes()).update(value);
    let mut tag = [0; 16];
    tag.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_depend_on_key_field_and_value() {
        let key = [1; 32];
        assert_eq!(tag(&key, "colour", b"red"), tag(&key, "colour", b"red"));
        assert_ne!(tag(&key, "colour", b"red"), tag(&key, "colour", b"blue"));
        assert_ne!(tag(&key, "colour", b"red"), tag(&key, "colou", b"rred"));
        assert_ne!(tag(&key, "colour", b"red"), tag(&[2; 32], "colour", b"red"));
    }
}
