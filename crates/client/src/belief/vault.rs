//! What a client remembers, encrypted under a key that is derived from the owner's and bound to its name, wherever the host keeps it.
//!
//! An entry is `CVBSTATE | version u8 | length of the key id u8 | key id | a sealed record`. The key id is in clear, so that an entry
//! under other keys is told from one that was damaged.
//!
//! The record is under the keys of the index `browser state` of dimension 1, metric cosine, mode `sealed-index`, without
//! incarnation, which never exists. It is bound to the first half of BLAKE3 of the entry's name as segment, row 0, and the name
//! as id. A file `NAME.lock` is locked for the moment of a change.

use ciphervec_owner::protect::records::{Place, RecordBatch, open_record, seal_records};
use ciphervec_owner::search::Owner;
use ciphervec_owner::sharing::Identity;
use ciphervec_owner::{IndexSpec, Keys, Metric, Mode, Precision};

use crate::error::{Error, Result};
use crate::host::Host;
use crate::threads::heavy;

const MAGIC: &[u8] = b"CVBSTATE";
const VERSION: u8 = 1;
/// The index that the key is derived for. None of that name is ever made: it has a space.
const INDEX: &str = "browser state";

/// What an entry holds, or under which keys it is.
pub enum Entry {
    Data(Vec<u8>),
    OtherKeys(String),
}

/// Encrypts and decrypts what is remembered.
pub struct Vault {
    owner: Owner,
    /// Whether it is a person's, and not of keys that collections are under.
    personal: bool,
}

impl Vault {
    pub fn new(keys: &Keys) -> Result<Self> {
        let spec =
            IndexSpec::new(INDEX, 1, Metric::Cosine, Mode::SealedIndex, Precision::Standard)?;
        Ok(Vault { owner: heavy(|| Owner::new(keys, spec))?, personal: false })
    }

    /// Of what a member's clients remember, whichever keys the collections have.
    pub fn of_member(identity: &Identity) -> Result<Self> {
        Ok(Vault { personal: true, ..Self::new(&identity.own_keys())? })
    }

    /// Whether it is a person's.
    pub fn is_personal(&self) -> bool {
        self.personal
    }

    /// The public name of the keys.
    pub fn key_id(&self) -> String {
        self.owner.key_id().to_string()
    }

    /// Whether these are the keys that everybody has, of clients without any.
    pub fn is_public(&self) -> bool {
        is_public(&self.key_id())
    }

    /// What was put there. An error for an entry that was damaged, or put elsewhere.
    pub async fn get(&self, host: &dyn Host, name: &str) -> Result<Option<Entry>> {
        host.get(name).await?.map(|stored| self.open(name, &stored)).transpose()
    }

    pub async fn put(&self, host: &dyn Host, name: &str, data: &[u8]) -> Result<()> {
        host.put(name, &self.seal(name, data)?).await
    }

    /// Bytes that an entry has beside its data.
    pub fn overhead(&self) -> Result<u64> {
        Ok(self.seal("overhead", &[])?.len() as u64)
    }

    fn seal(&self, name: &str, data: &[u8]) -> Result<Vec<u8>> {
        let id = self.key_id();
        let (binding, segment) = (self.owner.spec().binding(), segment_of(name));
        let place = Place { collection: &binding, segment: &segment };
        let sealed = seal_records(self.owner.aead(), place, &[(name.into(), data.to_vec())])
            .map_err(ciphervec_owner::Error::Envelope)?;
        Ok([MAGIC, &[VERSION, id.len() as u8], id.as_bytes(), &sealed].concat())
    }

    fn open(&self, name: &str, stored: &[u8]) -> Result<Entry> {
        let damaged =
            || Error::Corrupt(format!("what this client remembers under {name} was damaged."));
        let rest = stored.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (&[version, length], rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        if version != VERSION {
            return Err(Error::Version(format!(
                "this client's state has version {version}, and this ciphervec reads {VERSION}. Upgrade it, or use another storage."
            )));
        }
        let (id, sealed) = rest.split_at_checked(length.into()).ok_or_else(damaged)?;
        let id = String::from_utf8_lossy(id);
        if id != self.key_id() {
            return Ok(Entry::OtherKeys(id.into_owned()));
        }
        let batch = RecordBatch::parse(sealed).map_err(|_| damaged())?;
        let record = batch.ciphertext(0).filter(|_| batch.rows() == 1).ok_or_else(damaged)?;
        let (binding, segment) = (self.owner.spec().binding(), segment_of(name));
        let place = Place { collection: &binding, segment: &segment };
        let data = open_record(self.owner.aead(), place, &name.into(), 0, record);
        Ok(Entry::Data(data.map_err(|_| damaged())?.to_vec()))
    }
}

/// Whether keys of this name are those that everybody has.
pub fn is_public(key_id: &str) -> bool {
    Keys::public().key_id().to_string() == key_id
}

/// The segment that an entry's record would be of: half of a hash of its name.
fn segment_of(name: &str) -> [u8; 16] {
    let mut segment = [0; 16];
    segment.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
    segment
}
