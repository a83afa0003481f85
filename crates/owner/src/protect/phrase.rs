//! Recovery phrases: 32 secret bytes as 24 words for paper. Key owner only.
//!
//! BIP-39 with its English list: 256 bits and the first 8 of their SHA-256, eleven bits a word. The words are the key itself;
//! nothing is derived from them, and no passphrase goes in.

use bip39::{Language, Mnemonic};
pub use ciphervec::protect::error::{PhraseError, WORDS};
use zeroize::{Zeroize, Zeroizing};

/// The words of a key, one space between two.
pub fn encode(key: &[u8; 32]) -> Zeroizing<String> {
    // 32 bytes are always a phrase; the other lengths are what the error is for.
    let words = Mnemonic::from_entropy_in(Language::English, key).map(|mut words| {
        let text = Zeroizing::new(words.words().collect::<Vec<_>>().join(" "));
        words.zeroize();
        text
    });
    words.unwrap_or_default()
}

/// The key that the words are. Case and the space between words do not matter.
///
/// # Errors
/// [`PhraseError`], naming the first word that is unknown.
pub fn decode(text: &str) -> Result<Zeroizing<[u8; 32]>, PhraseError> {
    let actual = text.split_whitespace().count();
    if actual != WORDS {
        return Err(PhraseError::Count { actual });
    }
    let lower = Zeroizing::new(text.to_ascii_lowercase());
    let mut words =
        Mnemonic::parse_in_normalized(Language::English, &lower).map_err(|error| match error {
            bip39::Error::UnknownWord(index) => PhraseError::UnknownWord { position: index + 1 },
            bip39::Error::BadWordCount(actual) => PhraseError::Count { actual },
            _ => PhraseError::Checksum,
        })?;
    let (bytes, _) = words.to_entropy_array();
    words.zeroize();
    let bytes = Zeroizing::new(bytes);
    let mut key = Zeroizing::new([0; 32]);
    key.copy_from_slice(&bytes[..32]);
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of BIP-39's reference implementation (trezor/python-mnemonic, `vectors.json`), those of 256 bits.
    const PUBLISHED: [([u8; 32], &str); 4] = [
        (
            [0; 32],
            "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon \
             abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon art",
        ),
        (
            [0x7f; 32],
            "legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful \
             legal winner thank year wave sausage worth title",
        ),
        (
            [0x80; 32],
            "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic \
             avoid letter advice cage absurd amount doctor acoustic bless",
        ),
        (
            [0xff; 32],
            "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo vote",
        ),
    ];

    #[test]
    fn published_phrases_are_their_keys() {
        for (key, phrase) in PUBLISHED {
            assert_eq!(*encode(&key), phrase);
            assert_eq!(decode(phrase).map(|key| *key), Ok(key));
            let typed = format!("  {}\n", phrase.to_uppercase().replace(' ', "\n  "));
            assert_eq!(decode(&typed).map(|key| *key), Ok(key));
        }
    }

    #[test]
    fn a_mistake_is_named_by_its_place() {
        let (_, phrase) = PUBLISHED[1];
        let with = |at: usize, word: &str| {
            let mut words: Vec<&str> = phrase.split(' ').collect();
            words[at] = word;
            decode(&words.join(" ")).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(6, "wroth"), PhraseError::UnknownWord { position: 7 });
        assert_eq!(with(6, "zoo"), PhraseError::Checksum);
        for actual in [0, 12, 23, 25] {
            let words = vec!["zoo"; actual].join(" ");
            assert_eq!(decode(&words).map(|_| ()), Err(PhraseError::Count { actual }));
        }
    }
}
