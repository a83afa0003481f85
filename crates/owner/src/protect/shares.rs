//! Shares of a master key: any `need` of `of` give it back, fewer nothing at all (Shamir's scheme over GF(2⁸)). Key owner only.
//!
//! Kind 8 of `CVKEYFIL`: magic | version u32 | 8 | need, of, number | key id 16 | split 16 | for each share a hash, 32 |
//! value 32 | BLAKE3 of all before.
//!
//! The hashes are of all shares of the split, and the *split* is the hash of need, of, key id and hashes: a share that was
//! changed, or that belongs to another split of the same key, is named before anything is put together. A value is uniform in
//! 256 bits for whoever has fewer than `need`, so that its hash tells nothing.

use crate::decode::{DecodeError, hex};
use crate::protect::hybrid::Drawn;
use crate::protect::keyfile::{self, Head, KeyfileError, SHARE};
pub use ciphervec::protect::error::{MAX_SHARES, ShareError};
use std::path::Path;
use vsss_rs::Gf256;
use zeroize::Zeroizing;

const MASTER: usize = 32;

/// One share. `Debug` is redacted; wiped on drop.
pub struct Share {
    need: u8,
    number: u8,
    key_id: [u8; 16],
    hashes: Vec<[u8; 32]>,
    value: Zeroizing<[u8; MASTER]>,
}

impl core::fmt::Debug for Share {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Share({} of split {}, redacted)", self.number, hex(&self.split()))
    }
}

/// The shares of `master`.
///
/// # Errors
/// [`ShareError::Numbers`], [`ShareError::Envelope`].
pub(crate) fn split(
    master: &[u8; MASTER],
    key_id: &[u8; 16],
    need: u8,
    of: u8,
) -> Result<Vec<Share>, ShareError> {
    let numbers = ShareError::Numbers { need, of };
    if !(2..=of).contains(&need) {
        return Err(numbers);
    }
    let dealt = Gf256::split_array(need.into(), of.into(), master, Drawn::fresh()?);
    let mut values = Vec::with_capacity(of.into());
    for share in dealt.map_err(|_| ShareError::Numbers { need, of })? {
        let share = Zeroizing::new(share);
        let (Some(&number), Some(value)) = (share.first(), share.get(1..)) else {
            return Err(numbers);
        };
        let mut kept = Zeroizing::new([0; MASTER]);
        kept.copy_from_slice(value);
        values.push((number, kept));
    }
    let hashes: Vec<_> = values.iter().map(|(number, value)| hash(*number, value)).collect();
    let share =
        |(number, value)| Share { need, number, key_id: *key_id, hashes: hashes.clone(), value };
    Ok(values.into_iter().map(share).collect())
}

/// The master that shares give, and the key id that they name. The caller compares the two, and says [`other_key`].
///
/// # Errors
/// All cases but [`ShareError::Numbers`].
pub(crate) fn combine(
    shares: &[&Share],
) -> Result<(Zeroizing<[u8; MASTER]>, [u8; 16]), ShareError> {
    let Some(first) = shares.first() else {
        return Err(ShareError::Few {
            split: "of no share".to_owned(),
            key_id: "unknown".to_owned(),
            need: 2,
            given: 0,
        });
    };
    for (at, share) in shares.iter().enumerate() {
        if share.split() != first.split() {
            return Err(share.other_split_than(first));
        }
        if shares[..at].iter().any(|other| other.number == share.number) {
            return Err(ShareError::Twice { number: share.number });
        }
        if !share.is_whole() {
            return Err(ShareError::Changed { number: share.number, split: hex(&share.split()) });
        }
    }
    if shares.len() < first.need.into() {
        return Err(ShareError::Few {
            split: hex(&first.split()),
            key_id: first.key_name(),
            need: first.need,
            given: shares.len(),
        });
    }
    let points = shares.iter().take(first.need.into());
    let points: Zeroizing<Vec<Vec<u8>>> =
        Zeroizing::new(points.map(|one| [&[one.number], one.value.as_slice()].concat()).collect());
    let secret = Gf256::combine_array(points.as_slice()).map(Zeroizing::new);
    let Ok(secret) = secret else { return Err(other_key(first)) };
    let mut master = Zeroizing::new([0; MASTER]);
    if secret.len() != MASTER {
        return Err(other_key(first));
    }
    master.copy_from_slice(&secret);
    Ok((master, first.key_id))
}

/// Shares that fit together and give another key than they name.
pub(crate) fn other_key(share: &Share) -> ShareError {
    ShareError::OtherKey { split: hex(&share.split()), key_id: share.key_name() }
}

impl Share {
    /// How many of the split give the key.
    pub fn need(&self) -> u8 {
        self.need
    }

    /// How many there are.
    pub fn of(&self) -> u8 {
        self.hashes.len() as u8
    }

    /// Which one this is, from 1.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The public name of the key, in hexadecimal.
    pub fn key_name(&self) -> String {
        hex(&self.key_id[..8])
    }

    /// What names the split that this share is of.
    pub fn split(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 split of a key");
        hasher.update(&[self.need, self.of()]).update(&self.key_id);
        self.hashes.iter().for_each(|one| {
            hasher.update(one);
        });
        let mut split = [0; 16];
        split.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        split
    }

    /// Whether the value is the one that its split's hashes name.
    fn is_whole(&self) -> bool {
        let at = usize::from(self.number).checked_sub(1);
        let named = at.and_then(|at| self.hashes.get(at));
        named.is_some_and(|named| blake3::Hash::from(*named) == hash(self.number, &self.value))
    }

    fn other_split_than(&self, first: &Share) -> ShareError {
        ShareError::OtherSplit {
            number: self.number,
            found: hex(&self.split()),
            found_key: self.key_name(),
            first: first.number,
            split: hex(&first.split()),
            key_id: first.key_name(),
            need: first.need,
        }
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(112 + 32 * self.hashes.len()));
        keyfile::begin(&mut out, SHARE, [self.need, self.of(), self.number], &self.key_id);
        out.extend_from_slice(&self.split());
        self.hashes.iter().for_each(|one| out.extend_from_slice(one));
        out.extend_from_slice(self.value.as_slice());
        keyfile::end(&mut out);
        out
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`KeyfileError::Damaged`], [`KeyfileError::Checksum`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyfileError> {
        let Head { kind, numbers: [need, of, number], key_id, mut reader } = keyfile::head(bytes)?;
        let refused = |field, offset, expected: &str, actual: String| -> DecodeError {
            reader.field(field, offset, expected, actual)
        };
        if kind != SHARE {
            return Err(refused("kind", 12, "8, a share of a key", kind.to_string()).into());
        }
        if !(2..=of).contains(&need) || !(1..=of).contains(&number) {
            let actual = format!("need {need} of {of}, number {number}");
            return Err(refused("numbers", 13, "2 <= need <= of, 1 <= number <= of", actual).into());
        }
        let split: [u8; 16] = reader.array()?;
        let hashes = (0..of).map(|_| reader.array()).collect::<Result<Vec<[u8; 32]>, _>>()?;
        let value = Zeroizing::new(reader.array()?);
        let share = Share { need, number, key_id, hashes, value };
        if share.split() != split {
            let actual = hex(&split);
            let expected = hex(&share.split());
            return Err(reader.field("split", 32, expected, actual).into());
        }
        keyfile::expect_end(reader, bytes)?;
        Ok(share)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`KeyfileError::NotFound`], [`KeyfileError::Io`], and the cases of [`Self::from_bytes`].
    pub fn load(path: &Path) -> Result<Self, KeyfileError> {
        Self::from_bytes(&keyfile::read(path)?)
    }

    /// Writes the file as a key's is: mode 0600, fsynced, all at once, never over another.
    ///
    /// # Errors
    /// [`KeyfileError::Exists`], [`KeyfileError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), KeyfileError> {
        keyfile::place(path, false, || Ok(self.to_bytes()))
    }
}

fn hash(number: u8, value: &[u8; MASTER]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 share of a key");
    *hasher.update(&[number]).update(value).finalize().as_bytes()
}
