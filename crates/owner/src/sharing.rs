//! Shares a master key with people by their public keys. The owner seals, each recipient opens; whoever carries the file learns
//! the names in it.
//!
//! A *recipient* is a frame of kind 16 with the payload `suite u16 | public key 1216 | name: u16 and UTF-8, 1 to 64 bytes`;
//! its key id is the first half of its fingerprint. *Shared keys* are a frame of kind 17 under the master key's id, with the
//! payload `suite u16 | master key's name 16 | number u16 | per recipient: fingerprint 16, name: u16 and UTF-8,
//! encapsulated key 1120, sealed key 48 | mark 32`. HPKE's `info` is `ciphervec v1 shared-keys` and, each after its length,
//! the frame's version, the master key's name, the hash of all fingerprints and names, and the recipient's fingerprint.
//!
//! The mark is a hash of everything before it under a key that the master key derives, so that whoever opens the file knows
//! that the list of those who can is the one that somebody with the key wrote.
//!
//! The fingerprint is the first 16 bytes of BLAKE3's `derive_key` of a recipient's payload, context `ciphervec v1 recipient`. A
//! list has 1 to 1,000 recipients; its hash is `derive_key`, context `ciphervec v1 recipients`, of fingerprint, length u64 and
//! name of each. Frames of both kinds, and members' cards, have scheme 0 and the parameter id of `shared keys: hpke x-wing
//! shake256 chacha20-poly1305`.

use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead::{EnvelopeError, associated_data};
use crate::protect::hybrid::{self, ENCAPSULATED, PUBLIC_KEY, Pair, SEALED, SUITE, SealedKey};
use crate::protect::keyfile::{self, KeyfileError, Protection, Sort};
use ciphervec_he_secret::keys::{Purpose, random_bytes};
use ciphervec_he_secret::params::ParamId;
use ciphervec_he_secret::wire::{self, Header, KeyId, Kind, Reader, Scheme};
use ed25519_dalek::SigningKey;
use std::path::Path;
use zeroize::Zeroizing;

/// The longest name of a person, in bytes.
pub const MAX_NAME: usize = 64;
/// The most people that a file is for.
pub const MAX_RECIPIENTS: usize = 1000;

/// What the parameter id of both frames hashes.
const PARAMS: &str = "shared keys: hpke x-wing shake256 chacha20-poly1305";

/// Sixteen bytes that name a public key and its holder.
pub type Fingerprint = [u8; 16];

/// A person's pair, which others share master keys with. `Debug` is redacted; wiped on drop.
pub struct Identity {
    seed: Zeroizing<[u8; 32]>,
    name: String,
}

impl core::fmt::Debug for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Identity({:?}, redacted)", self.name)
    }
}

impl Identity {
    /// A new pair from the operating system's generator.
    ///
    /// # Errors
    /// A name that is not 1 to [`MAX_NAME`] bytes; no randomness.
    pub fn generate(name: &str) -> Result<Self> {
        expect_name(name)?;
        Ok(Identity { seed: Zeroizing::new(random_bytes()?), name: name.to_owned() })
    }

    /// The holder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public half, for those who share.
    pub fn recipient(&self) -> Recipient {
        Recipient { public: self.pair().public_bytes(), name: self.name.clone() }
    }

    /// The bytes of a key file, encrypted under `passphrase`, or in the clear if there is none.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn to_file_bytes(&self, passphrase: Option<&str>) -> Result<Zeroizing<Vec<u8>>> {
        let protection = passphrase.map_or(Protection::Plaintext, Protection::Passphrase);
        Ok(keyfile::encode_secret(&self.secret(), Sort::Person, &self.label(), protection)?)
    }

    /// Reads the bytes of a key file.
    ///
    /// # Errors
    /// [`Error::Keyfile`]: a wrong passphrase, damage, a key of another sort.
    pub fn from_file_bytes(bytes: &[u8], passphrase: Option<&str>) -> Result<Self> {
        Self::checked(keyfile::decode_secret(bytes, Sort::Person, passphrase)?)
    }

    /// Writes a key file, encrypted under `passphrase`, or in the clear if there is none. An existing file is never
    /// overwritten.
    ///
    /// # Errors
    /// [`Error::Keyfile`].
    pub fn save(&self, path: &Path, passphrase: Option<&str>) -> Result<()> {
        let protection = passphrase.map_or(Protection::Plaintext, Protection::Passphrase);
        let (secret, label) = (self.secret(), self.label());
        keyfile::save_secret(path, &secret, Sort::Person, &label, protection, false)?;
        Ok(())
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`Error::Keyfile`]: no such file, a wrong passphrase, damage, a key of another sort.
    pub fn load(path: &Path, passphrase: Option<&str>) -> Result<Self> {
        Self::checked(keyfile::load_secret(path, Sort::Person, passphrase)?)
    }

    /// The key that this person's commits are signed with. It follows from the seed, as the pair does.
    pub(crate) fn signing(&self) -> SigningKey {
        let seed = blake3::derive_key("ciphervec v1 member-signature", self.seed.as_slice());
        SigningKey::from_bytes(&Zeroizing::new(seed))
    }

    pub(crate) fn pair(&self) -> Pair {
        Pair::derive(&self.seed)
    }

    /// The keys of what this person's clients remember of collections, which no collection is under.
    pub fn own_keys(&self) -> Keys {
        Keys::from_master(blake3::derive_key("ciphervec v1 member-memory", self.seed.as_slice()))
    }

    /// What a file keeps.
    fn secret(&self) -> Zeroizing<Vec<u8>> {
        let mut secret = Zeroizing::new(Vec::with_capacity(32 + MAX_NAME));
        secret.extend_from_slice(self.seed.as_slice());
        secret.extend_from_slice(self.name.as_bytes());
        secret
    }

    /// What a file says in clear.
    fn label(&self) -> Fingerprint {
        self.recipient().fingerprint()
    }

    /// A pair as a file has it, if the label beside it is its own.
    fn checked((secret, label): (Zeroizing<Vec<u8>>, Fingerprint)) -> Result<Self> {
        let read = || {
            let (seed, name) = secret.split_first_chunk::<32>()?;
            let name = core::str::from_utf8(name).ok()?;
            expect_name(name).ok()?;
            Some(Identity { seed: Zeroizing::new(*seed), name: name.to_owned() })
        };
        let identity = read().filter(|found| found.label() == label);
        let key_id = crate::decode::hex(&label[..8]);
        identity.ok_or(Error::Keyfile(KeyfileError::OtherKey { key_id, sort: Sort::Person }))
    }
}

/// A person's public key and name. Not secret; that it is that person's is for the sharer to find out, by its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient {
    pub(crate) public: Vec<u8>,
    pub(crate) name: String,
}

impl Recipient {
    /// The person's name, as they wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What names this public key and its holder: to be compared by another way than the file came.
    pub fn fingerprint(&self) -> Fingerprint {
        let digest = blake3::derive_key("ciphervec v1 recipient", &self.payload());
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&digest[..16]);
        fingerprint
    }

    /// The frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut key = [0; 8];
        key.copy_from_slice(&self.fingerprint()[..8]);
        head(Kind::Recipient, KeyId(key)).frame(&self.payload())
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes; a suite of a later release; a public key that is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let what = Kind::Recipient.as_str();
        let (header, payload) = wire::open(Kind::Recipient, bytes)?;
        expect_head(what, &header)?;
        let mut reader = Reader::new(what, payload);
        let recipient = Self::read(&mut reader)?;
        if header.key.0 != recipient.fingerprint()[..8] {
            return Err(reader.error("its key id is not that of its public key").into());
        }
        reader.finish()?;
        Ok(recipient)
    }

    /// Reads what [`Self::payload`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        expect_suite(reader)?;
        let public = reader.take(PUBLIC_KEY)?.to_vec();
        if !hybrid::is_public(&public) {
            return Err(reader.error("a public key of the suite expected").into());
        }
        Ok(Recipient { public, name: take_name(reader)? })
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut payload = SUITE.to_le_bytes().to_vec();
        payload.extend_from_slice(&self.public);
        put_name(&self.name, &mut payload);
        payload
    }
}

/// One who can open shared keys.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Share {
    fingerprint: Fingerprint,
    name: String,
    encapsulated: Vec<u8>,
    sealed: Vec<u8>,
}

/// A master key, sealed to several people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedKeys {
    master: [u8; 16],
    shares: Vec<Share>,
    mark: [u8; 32],
}

impl SharedKeys {
    /// Seals `keys` to each of `recipients`.
    ///
    /// # Errors
    /// No recipient, more than [`MAX_RECIPIENTS`], or the same one twice; no randomness.
    pub fn seal(keys: &Keys, recipients: &[Recipient]) -> Result<Self> {
        let mut names: Vec<_> = recipients.iter().map(Recipient::fingerprint).collect();
        let given = names.len();
        names.sort_unstable();
        names.dedup();
        if names.len() != given || !(1..=MAX_RECIPIENTS).contains(&given) {
            return Err(Error::Range {
                what: "the recipients",
                expected: format!("1 to {MAX_RECIPIENTS}, each once"),
                actual: format!("{given}, of which {} are different", names.len()),
            });
        }
        let master = keys.master.fingerprint();
        let list = list(recipients.iter().map(|one| (one.fingerprint(), one.name())));
        let mut shares = Vec::with_capacity(given);
        for recipient in recipients {
            let fingerprint = recipient.fingerprint();
            let info = info(&master, &list, &fingerprint);
            let sealed = hybrid::seal(&recipient.public, &info, keys.master.expose())?;
            // Public keys are checked when they are read.
            let SealedKey { encapsulated, sealed } = sealed.ok_or_else(unauthentic)?;
            let name = recipient.name.clone();
            shares.push(Share { fingerprint, name, encapsulated, sealed });
        }
        let mut shared = SharedKeys { master, shares, mark: [0; 32] };
        shared.mark = shared.mark_of(keys);
        Ok(shared)
    }

    /// The public name of the keys inside.
    pub fn key_id(&self) -> KeyId {
        let mut key = [0; 8];
        key.copy_from_slice(&self.master[..8]);
        KeyId(key)
    }

    /// Who can open it: fingerprint and name. Vouched for only once it has been opened.
    pub fn recipients(&self) -> impl Iterator<Item = (Fingerprint, &str)> {
        self.shares.iter().map(|share| (share.fingerprint, share.name.as_str()))
    }

    /// The keys, for one of the recipients.
    ///
    /// # Errors
    /// [`Error::NotShared`] for somebody else; [`EnvelopeError::Unauthentic`] for a file that was changed, or that nobody
    /// with the keys wrote.
    pub fn open(&self, identity: &Identity) -> Result<Keys> {
        let fingerprint = identity.recipient().fingerprint();
        let Some(share) = self.shares.iter().find(|share| share.fingerprint == fingerprint) else {
            let names: Vec<_> = self.recipients().map(|(_, name)| name).collect();
            let (name, recipients) = (identity.name.clone(), names.join(", "));
            return Err(Error::NotShared { name, recipients });
        };
        let info = info(&self.master, &list(self.recipients()), &fingerprint);
        let opened = identity.pair().open(&info, &share.encapsulated, &share.sealed);
        let keys = Keys::from_master(*opened.ok_or_else(unauthentic)?);
        // Hashes compare in constant time.
        let marked = blake3::Hash::from(self.mark_of(&keys)) == blake3::Hash::from(self.mark);
        if keys.master.fingerprint() != self.master || !marked {
            return Err(unauthentic());
        }
        Ok(keys)
    }

    /// The frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = self.body();
        payload.extend_from_slice(&self.mark);
        head(Kind::SharedKeys, self.key_id()).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes; a suite of a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let what = Kind::SharedKeys.as_str();
        let (header, payload) = wire::open(Kind::SharedKeys, bytes)?;
        expect_head(what, &header)?;
        let mut reader = Reader::new(what, payload);
        expect_suite(&mut reader)?;
        let master = reader.array()?;
        let number = usize::from(u16::from_le_bytes(reader.array()?));
        if !(1..=MAX_RECIPIENTS).contains(&number) {
            let detail = format!("1 to {MAX_RECIPIENTS} recipients expected, {number} came");
            return Err(reader.error(detail).into());
        }
        let mut shares: Vec<Share> = Vec::new();
        for _ in 0..number {
            let fingerprint = reader.array()?;
            let name = take_name(&mut reader)?;
            let encapsulated = reader.take(ENCAPSULATED)?.to_vec();
            let sealed = reader.take(SEALED)?.to_vec();
            if shares.iter().any(|share| share.fingerprint == fingerprint) {
                return Err(reader.error(format!("{name} is in it twice")).into());
            }
            shares.push(Share { fingerprint, name, encapsulated, sealed });
        }
        let mark = reader.array()?;
        let shared = SharedKeys { master, shares, mark };
        if header.key != shared.key_id() {
            return Err(reader.error("two names of the keys inside").into());
        }
        reader.finish()?;
        Ok(shared)
    }

    /// Everything before the mark.
    fn body(&self) -> Vec<u8> {
        let mut out = SUITE.to_le_bytes().to_vec();
        out.extend_from_slice(&self.master);
        out.extend_from_slice(&(self.shares.len() as u16).to_le_bytes());
        for share in &self.shares {
            out.extend_from_slice(&share.fingerprint);
            put_name(&share.name, &mut out);
            out.extend_from_slice(&share.encapsulated);
            out.extend_from_slice(&share.sealed);
        }
        out
    }

    fn mark_of(&self, keys: &Keys) -> [u8; 32] {
        let key = keys.master.derive(Purpose::SharedKeys, &[]);
        *blake3::keyed_hash(key.expose(), &self.body()).as_bytes()
    }
}

pub(crate) fn head(kind: Kind, key: KeyId) -> Header {
    Header { scheme: Scheme::Plain, kind, params: ParamId::of(PARAMS), key }
}

pub(crate) fn expect_head(what: &'static str, header: &Header) -> Result<()> {
    if (header.scheme, header.params) == (Scheme::Plain, ParamId::of(PARAMS)) {
        return Ok(());
    }
    Err(Reader::new(what, &[]).error("another scheme or parameters than those of suite 1").into())
}

fn expect_suite(reader: &mut Reader<'_>) -> Result<()> {
    let suite = u16::from_le_bytes(reader.array()?);
    if suite == SUITE {
        return Ok(());
    }
    Err(reader.error(format!("suite {SUITE} expected, {suite} came; upgrade ciphervec")).into())
}

/// The hash of all who can open a file.
fn list<'a>(recipients: impl Iterator<Item = (Fingerprint, &'a str)>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 recipients");
    for (fingerprint, name) in recipients {
        hasher.update(&fingerprint).update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn info(master: &[u8; 16], list: &[u8; 32], fingerprint: &Fingerprint) -> Vec<u8> {
    let parts: [&[u8]; 4] = [&wire::VERSION.to_le_bytes(), master, list, fingerprint];
    associated_data("ciphervec v1 shared-keys", &parts)
}

fn unauthentic() -> Error {
    Error::Envelope(EnvelopeError::Unauthentic { what: Kind::SharedKeys.as_str() })
}

pub(crate) fn name_fits(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn expect_name(name: &str) -> Result<()> {
    if name_fits(name) {
        return Ok(());
    }
    Err(Error::Range {
        what: "a person's name",
        expected: format!("1 to {MAX_NAME} bytes of printable UTF-8"),
        actual: format!("{} bytes", name.len()),
    })
}

pub(crate) fn put_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
}

fn take_name(reader: &mut Reader<'_>) -> Result<String> {
    let length = u16::from_le_bytes(reader.array()?);
    let name = core::str::from_utf8(reader.take(length.into())?).ok();
    let name = name.filter(|name| name_fits(name)).map(str::to_owned);
    let wrong = || reader.error(format!("a name of 1 to {MAX_NAME} printable bytes expected"));
    name.ok_or_else(|| wrong().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> [Identity; 3] {
        ["alice", "bob", "näomi"].map(|name| Identity::generate(name).unwrap())
    }

    #[test]
    fn each_recipient_opens_and_nobody_else() {
        let [alice, bob, eve] = people();
        let keys = Keys::generate().unwrap();
        let shared = SharedKeys::seal(&keys, &[alice.recipient(), bob.recipient()]).unwrap();
        let shared = SharedKeys::from_bytes(&shared.to_bytes()).unwrap();
        assert_eq!(shared.key_id(), keys.key_id());
        let names: Vec<_> = shared.recipients().map(|(_, name)| name).collect();
        assert_eq!(names, ["alice", "bob"]);
        for person in [&alice, &bob] {
            let opened = shared.open(person).unwrap();
            assert_eq!(opened.master.expose(), keys.master.expose());
        }
        let refused = shared.open(&eve).unwrap_err().to_string();
        assert!(refused.contains("alice, bob") && refused.contains("näomi"), "{refused}");
        // A pair of the same name is another person.
        assert!(shared.open(&Identity::generate("bob").unwrap()).is_err());
    }

    #[test]
    fn a_list_that_was_changed_does_not_open() {
        let [alice, bob, eve] = people();
        let (keys, other) = (Keys::generate().unwrap(), Keys::generate().unwrap());
        let both = [alice.recipient(), bob.recipient()];
        let shared = SharedKeys::seal(&keys, &both).unwrap();
        let changed = |change: &dyn Fn(&mut SharedKeys)| {
            let mut changed = shared.clone();
            change(&mut changed);
            let read = SharedKeys::from_bytes(&changed.to_bytes()).unwrap();
            assert!(matches!(read.open(&alice), Err(Error::Envelope(_))));
        };
        changed(&|shared| shared.shares.truncate(1));
        changed(&|shared| shared.shares.swap(0, 1));
        changed(&|shared| shared.shares[1].name = "eve".to_owned());
        changed(&|shared| shared.shares[1].fingerprint = eve.recipient().fingerprint());
        changed(&|shared| shared.shares[1].sealed[0] ^= 1);
        changed(&|shared| shared.mark[0] ^= 1);
        changed(&|shared| shared.master = other.master.fingerprint());
        // Shares of two files do not mix.
        let again = SharedKeys::seal(&keys, &both).unwrap();
        changed(&|shared| shared.shares[1] = again.shares[1].clone());
    }

    #[test]
    fn the_recipients_of_a_file_are_some_and_each_once() {
        let [alice, bob, _] = people();
        let keys = Keys::generate().unwrap();
        assert!(SharedKeys::seal(&keys, &[]).is_err());
        let twice = [alice.recipient(), bob.recipient(), alice.recipient()];
        assert!(SharedKeys::seal(&keys, &twice).unwrap_err().to_string().contains("each once"));
        for name in ["", "two\nlines", &"x".repeat(65)] {
            assert!(Identity::generate(name).is_err());
        }
    }

    #[test]
    fn a_recipient_is_read_as_it_was_written() {
        let [alice, bob, _] = people();
        let recipient = alice.recipient();
        let bytes = recipient.to_bytes();
        assert_eq!(Recipient::from_bytes(&bytes).unwrap(), recipient);
        assert_ne!(recipient.fingerprint(), bob.recipient().fingerprint());
        // Another name under the same key is another fingerprint, and not the header's.
        let renamed = Recipient { name: "carol".to_owned(), ..recipient };
        let mut key = [0; 8];
        key.copy_from_slice(&bytes[16..24]);
        let forged = head(Kind::Recipient, KeyId(key)).frame(&renamed.payload());
        assert!(Recipient::from_bytes(&forged).is_err());
    }
}
