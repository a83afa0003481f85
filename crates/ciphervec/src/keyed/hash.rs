//! What a key becomes: a tag that its record bears, and a place in each part of the table. For both sides.

use zeroize::Zeroizing;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// What stands for a key beside its record: no two keys of a table have the same.
pub type Tag = [u8; TAG_BYTES];

/// Parts that a digest has a place in.
pub(super) const MAX_PARTS: usize = 3;

/// A key that records are looked up by. Two keys of different kinds are different, whatever they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupKey<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// Text, as its UTF-8 bytes; nothing is normalised.
    Text(&'a str),
    /// A whole number.
    Integer(i128),
}

/// The keyed hash of one table.
#[derive(Clone)]
pub struct KeyHash(Zeroizing<[u8; 32]>);

/// What a key hashes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest {
    /// The tag.
    pub tag: Tag,
    words: [u64; MAX_PARTS],
}

impl KeyHash {
    /// Under a seed of the publisher's, or a secret of the table's owner.
    pub fn new(key: [u8; 32]) -> Self {
        KeyHash(Zeroizing::new(key))
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Hashes a key, in a time that depends on its length alone.
    pub fn digest(&self, key: LookupKey<'_>) -> Digest {
        let number;
        let (kind, bytes): (u8, &[u8]) = match key {
            LookupKey::Bytes(bytes) => (0, bytes),
            LookupKey::Text(text) => (1, text.as_bytes()),
            LookupKey::Integer(integer) => {
                number = integer.to_le_bytes();
                (2, &number)
            }
        };
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[kind]).update(bytes);
        let mut out = [0; TAG_BYTES + 8 * MAX_PARTS];
        hasher.finalize_xof().fill(&mut out);
        let (mut tag, mut words) = ([0; TAG_BYTES], [0; MAX_PARTS]);
        tag.copy_from_slice(&out[..TAG_BYTES]);
        for (word, bytes) in words.iter_mut().zip(out[TAG_BYTES..].as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Digest { tag, words }
    }
}

impl Digest {
    /// The bucket of a part that the key's record may be in, of so many. Each attempt at placing all keys has other ones.
    pub fn bucket(&self, part: usize, attempt: u32, buckets: usize) -> usize {
        // The finaliser of SplitMix64: a permutation, so that uniform words stay uniform.
        let mut word = self.words[part] ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        ((u128::from(word) * buckets as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_of_other_kinds_and_under_other_seeds_are_other_keys() {
        let keys = [
            LookupKey::Bytes(b"7"),
            LookupKey::Text("7"),
            LookupKey::Integer(7),
            LookupKey::Integer(-7),
            LookupKey::Bytes(&7i128.to_le_bytes()),
            LookupKey::Bytes(b""),
            LookupKey::Text(""),
        ];
        let tags: HashSet<Tag> = [1u8, 2]
            .into_iter()
            .flat_map(|seed| keys.map(|key| KeyHash::new([seed; 32]).digest(key).tag))
            .collect();
        assert_eq!(tags.len(), 14);
    }

    #[test]
    fn buckets_are_within_the_table_and_change_with_part_and_attempt() {
        let hash = KeyHash::new([3; 32]);
        let mut counts = [0u32; 10];
        let mut moved = 0;
        for key in 0..10_000 {
            let digest = hash.digest(LookupKey::Integer(key));
            counts[digest.bucket(1, 0, 10)] += 1;
            moved += u32::from(digest.bucket(1, 0, 1000) != digest.bucket(1, 1, 1000));
            assert_eq!(digest.bucket(2, 5, 1), 0);
        }
        // A thousand each, of deviation 30; one in a thousand stays where it was.
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        assert!(moved > 9_900, "{moved}");
    }
}
