//! Receipts, for two towers: the cloud's word for an answer that a stranger carries to the key owner. Whoever has the key
//! can vouch for answers, and decrypts nothing by it.
//!
//! A receipt: seconds since 1970 u64; BLAKE3, keyed by `derive_key` of the shared 32 bytes under `ciphervec v1 receipt of an
//! answer`, of the collection's name behind its length u64, BLAKE3 of the query, the same seconds u64, BLAKE3 of the answer.

use std::fmt;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const RECEIPT_KEY_BYTES: usize = 32;
/// Bytes of a receipt: when it was issued, and a keyed hash.
pub const RECEIPT_BYTES: usize = 8 + 32;
const CONTEXT: &str = "ciphervec v1 receipt of an answer";

/// What the cloud and the key owner share.
pub struct ReceiptKey(Zeroizing<[u8; RECEIPT_KEY_BYTES]>);

impl ReceiptKey {
    /// A key of bytes that nobody can guess.
    pub fn new(bytes: [u8; RECEIPT_KEY_BYTES]) -> Self {
        Self(Zeroizing::new(blake3::derive_key(CONTEXT, &bytes)))
    }

    /// A query to a collection, whose answer is not there yet.
    pub fn asked(&self, collection: &str, query: &[u8]) -> Asked {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(collection.len() as u64).to_le_bytes()).update(collection.as_bytes());
        hasher.update(blake3::hash(query).as_bytes());
        Asked(hasher)
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ReceiptKey(redacted)")
    }
}

/// A query for whose answer there may be a receipt.
pub struct Asked(blake3::Hasher);

impl Asked {
    /// The receipt for `answer`, at `now` in seconds since 1970.
    pub fn issue(&self, now: u64, answer: &[u8]) -> [u8; RECEIPT_BYTES] {
        let mut receipt = [0; RECEIPT_BYTES];
        let (issued, mac) = receipt.split_at_mut(8);
        issued.copy_from_slice(&now.to_le_bytes());
        mac.copy_from_slice(self.mac(now, answer).as_bytes());
        receipt
    }

    /// When `receipt` was issued for `answer`; nothing if it was not. The comparison takes the same time for all.
    pub fn issued(&self, receipt: &[u8], answer: &[u8]) -> Option<u64> {
        let (issued, mac) = receipt.split_first_chunk()?;
        let issued = u64::from_le_bytes(*issued);
        let mac = blake3::Hash::from_bytes(mac.try_into().ok()?);
        (self.mac(issued, answer) == mac).then_some(issued)
    }

    fn mac(&self, issued: u64, answer: &[u8]) -> blake3::Hash {
        let mut hasher = self.0.clone();
        hasher.update(&issued.to_le_bytes()).update(blake3::hash(answer).as_bytes());
        hasher.finalize()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Asked(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By BLAKE3's own interface, from what the format says: key derivation, lengths, the order.
    #[test]
    fn a_receipt_is_what_the_format_says() {
        let key = [7; 32];
        let receipt = ReceiptKey::new(key).asked("faces", b"query").issue(1_700_000_000, b"answer");
        let mut message = 5_u64.to_le_bytes().to_vec();
        message.extend(b"faces");
        message.extend(blake3::hash(b"query").as_bytes());
        message.extend(1_700_000_000_u64.to_le_bytes());
        message.extend(blake3::hash(b"answer").as_bytes());
        let derived = blake3::derive_key("ciphervec v1 receipt of an answer", &key);
        assert_eq!(receipt[..8], 1_700_000_000_u64.to_le_bytes());
        assert_eq!(&receipt[8..], blake3::keyed_hash(&derived, &message).as_bytes());
    }

    #[test]
    fn a_receipt_is_for_one_answer_to_one_query() {
        let key = ReceiptKey::new([1; 32]);
        let asked = key.asked("faces", b"query");
        let receipt = asked.issue(9, b"answer");
        assert_eq!(asked.issued(&receipt, b"answer"), Some(9));
        assert_eq!(asked.issued(&receipt, b"another"), None);
        assert_eq!(key.asked("faces", b"other").issued(&receipt, b"answer"), None);
        assert_eq!(key.asked("face", b"query").issued(&receipt, b"answer"), None);
        assert_eq!(
            ReceiptKey::new([2; 32]).asked("faces", b"query").issued(&receipt, b"answer"),
            None
        );
        for at in 0..RECEIPT_BYTES {
            let mut changed = receipt;
            changed[at] ^= 1;
            assert_eq!(asked.issued(&changed, b"answer"), None, "byte {at}");
        }
        for length in 0..RECEIPT_BYTES {
            assert_eq!(asked.issued(&receipt[..length], b"answer"), None, "{length} bytes");
        }
        assert_eq!(asked.issued(&[&receipt[..], &[0]].concat(), b"answer"), None);
        assert!(!format!("{key:?} {asked:?}").contains('1'));
    }
}
