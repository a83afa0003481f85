//! Member list: who may do what with a collection, for everybody who opens it. Each change of it is signed by an owner of the list
//! before, so that who has seen one list knows whether another goes on from it.
//!
//! Little-endian: `CVMEMBER` | version u32 | origin 16 | number of changes u32 | the changes | number of members u16 | for each
//! present one, in the order of the changes: public key 1216, encapsulated key 1120, sealed key 48. A change is `kind u8 | seconds
//! since 1970 u64 | what it changes | author 16 | signature 64`. Kind 0, the first one: member, key 16; kind 1, somebody is admitted
//! or gets another role: member; kind 2, somebody is removed: fingerprint 16, key 16; kind 3, other keys: key 16. A key is the name of the
//! collection's master key, a member is `role u8 | name: u16 and UTF-8 | verifying key 32 | BLAKE3 of the card 32`.
//!
//! The signature is over `ciphervec v1 member-change`, a zero byte, the hash of all changes before, and the change up to the
//! author. The hash begins with the origin, so that a change is of one collection and one place in its list.

use super::card::{MemberCard, digest, verify};
use super::{Member, Role, SIGNATURE, tells};
use crate::decode::{DecodeError, Reader, hex};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::protect::aead::{EnvelopeError, associated_data};
use crate::protect::hybrid::{self, ENCAPSULATED, PUBLIC_KEY, SEALED, SealedKey};
use crate::protect::state::{self, StateRecord};
use crate::sharing::{Fingerprint, Identity, Recipient, name_fits, put_name};
use ciphervec_he_secret::wire::KeyId;
use ed25519_dalek::Signer;

/// The most people on a list.
pub const MAX_MEMBERS: usize = 128;
/// The most changes of a list. The last ones are for removals and other keys.
pub const MAX_CHANGES: usize = 4096;

const MAGIC: &[u8; 8] = b"CVMEMBER";
const VERSION: u32 = 1;
const WHAT: &str = "a member list";
const HASHED: &str = "ciphervec v1 member-list";
const SIGNED: &[u8] = b"ciphervec v1 member-change\0";
const SIGNED_STATE: &[u8] = b"ciphervec v1 state-signature\0";
/// Bytes of the shortest change.
const LEAST: usize = 1 + 8 + 16 + 16 + SIGNATURE;

/// Sixteen bytes that name a collection's master key.
type KeyName = [u8; 16];

/// What one change does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The list begins, with its first owner.
    Found(Member, KeyName),
    /// Somebody is admitted, or has another role.
    Admit(Member),
    /// Somebody is removed, and the collection gets other keys.
    Remove(Fingerprint, KeyName),
    /// The collection gets other keys.
    Rekey(KeyName),
}

/// One change, signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it does.
    pub change: Change,
    /// When, by its author's word: seconds since 1970.
    pub time: u64,
    /// Whose it is.
    pub author: Fingerprint,
    signature: [u8; SIGNATURE],
}

/// The present key, for one member.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Sealed {
    public: Vec<u8>,
    encapsulated: Vec<u8>,
    sealed: Vec<u8>,
}

/// Who is on the list, and which keys the collection had.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Roll {
    members: Vec<Member>,
    keys: Vec<KeyName>,
}

/// Why a change does not count: what was expected, and what came.
type Broken = (String, String);

/// A signed list of members. It has been verified, up to who founded it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberList {
    origin: [u8; 16],
    entries: Vec<Entry>,
    /// The hash before each change, and after the last.
    heads: Vec<[u8; 32]>,
    roll: Roll,
    sealed: Vec<Sealed>,
}

impl MemberList {
    /// A list with one owner, of the collection of this origin under these keys.
    ///
    /// # Errors
    /// No randomness.
    pub fn found(by: &Identity, origin: [u8; 16], keys: &Keys, time: u64) -> Result<Self> {
        let card = by.member_card();
        let heads = vec![blake3::derive_key(HASHED, &origin)];
        let empty = MemberList {
            origin,
            entries: Vec::new(),
            heads,
            roll: Roll::default(),
            sealed: Vec::new(),
        };
        let change = Change::Found(card.member(Role::Owner), keys.master.fingerprint());
        let mut list = empty.with(by, change, time)?;
        list.sealed.push(list.seal_to(&card.member(Role::Owner), card.public(), keys)?);
        Ok(list)
    }

    /// The list with somebody more, or with another role for somebody who is on it. `keys` are the present ones.
    ///
    /// # Errors
    /// [`Error::Range`]: not an owner, a full list, a name that is taken, nobody left who is an owner; no randomness.
    pub fn admit(
        &self,
        by: &Identity,
        card: &MemberCard,
        role: Role,
        keys: &Keys,
        time: u64,
    ) -> Result<Self> {
        if self.entries.len() >= MAX_CHANGES - 2 * MAX_MEMBERS {
            let most = format!(
                "at most {} changes before somebody is added",
                MAX_CHANGES - 2 * MAX_MEMBERS
            );
            return Err(refused((most, self.entries.len().to_string())));
        }
        self.expect_present(keys)?;
        let member = card.member(role);
        let known = self.member(&member.fingerprint()).is_some();
        let mut list = self.with(by, Change::Admit(member.clone()), time)?;
        if !known {
            list.sealed.push(list.seal_to(&member, card.public(), keys)?);
        }
        Ok(list)
    }

    /// The list with another role for somebody who is on it.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn appoint(&self, by: &Identity, who: &Fingerprint, role: Role, time: u64) -> Result<Self> {
        let Some(member) = self.member(who) else { return Err(refused(unknown(who))) };
        self.with(by, Change::Admit(Member { role, ..member.clone() }), time)
    }

    /// The list without somebody, whose collection has these keys from now on.
    ///
    /// # Errors
    /// [`Error::Range`]: not an owner, nobody of that fingerprint, nobody left who is an owner, keys that the collection had
    /// before; no randomness.
    pub fn remove(&self, by: &Identity, who: &Fingerprint, keys: &Keys, time: u64) -> Result<Self> {
        self.with(by, Change::Remove(*who, keys.master.fingerprint()), time)?.sealed_under(keys)
    }

    /// The list of a collection that has these keys from now on.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub fn rekey(&self, by: &Identity, keys: &Keys, time: u64) -> Result<Self> {
        self.with(by, Change::Rekey(keys.master.fingerprint()), time)?.sealed_under(keys)
    }

    /// What tells the collection from all others.
    pub fn origin(&self) -> &[u8; 16] {
        &self.origin
    }

    /// The changes, the oldest first.
    pub fn changes(&self) -> &[Entry] {
        &self.entries
    }

    /// Who is on it now.
    pub fn members(&self) -> &[Member] {
        &self.roll.members
    }

    /// One of them.
    pub fn member(&self, who: &Fingerprint) -> Option<&Member> {
        self.roll.member(who)
    }

    /// The public name of the keys that the collection has now.
    pub fn key_id(&self) -> KeyId {
        let mut id = [0; 8];
        id.copy_from_slice(&self.roll.keys.last().unwrap_or(&[0; 16])[..8]);
        KeyId(id)
    }

    /// What stands for the first `changes` of it; nothing where there are fewer.
    pub fn head(&self, changes: usize) -> Option<&[u8; 32]> {
        self.heads.get(changes).filter(|_| changes > 0)
    }

    /// The present keys, for a member.
    ///
    /// # Errors
    /// [`Error::NotShared`] for somebody else; [`EnvelopeError::Unauthentic`] for a key that was changed.
    pub fn open(&self, identity: &Identity) -> Result<Keys> {
        let who = identity.member_fingerprint();
        let Some(at) = self.roll.members.iter().position(|one| one.fingerprint() == who) else {
            let names: Vec<_> = self.members().iter().map(|one| one.name.as_str()).collect();
            let (name, recipients) = (identity.name().to_owned(), names.join(", "));
            return Err(Error::NotShared { name, recipients });
        };
        let unauthentic = || Error::Envelope(EnvelopeError::Unauthentic { what: WHAT });
        let Sealed { encapsulated, sealed, .. } = self.sealed.get(at).ok_or_else(unauthentic)?;
        let opened = identity.pair().open(&self.info(&who), encapsulated, sealed);
        let keys = Keys::from_master(*opened.ok_or_else(unauthentic)?);
        match self.roll.keys.last() == Some(&keys.master.fingerprint()) {
            true => Ok(keys),
            false => Err(unauthentic()),
        }
    }

    /// Who committed a state, if it was somebody who might. `sealed` are the bytes of `record`.
    ///
    /// # Errors
    /// What was found in the place of such a signature, in words.
    pub fn author(
        &self,
        record: &StateRecord,
        sealed: &[u8],
    ) -> core::result::Result<Member, String> {
        let Some(signed) = &record.signed else { return Err("that nobody signed".to_owned()) };
        let (author, before, all) = (signed.author, signed.changes as usize, self.entries.len());
        let name = hex(&author);
        // A commit changes the list once at most, and then its author is the change's.
        let changes = before != all;
        let last = self.entries.last().filter(|last| last.author == author);
        if changes && (before + 1 != all || last.is_none()) {
            return Err(format!(
                "that goes on from {before} changes of the members, beside a list of {all}"
            ));
        }
        // The founder signs the state that the list begins with.
        let mut roll = Roll::default();
        let in_force = &self.entries[..before.max(1).min(all)];
        for entry in in_force {
            roll.apply(entry)
                .map_err(|(expected, actual)| format!("with {actual}, not {expected}"))?;
        }
        let Some(member) = roll.member(&author).cloned() else {
            return Err(format!("of {name}, who was not a member then"));
        };
        if !member.role.commits() || changes && member.role != Role::Owner {
            let what = if changes { "a change of the members" } else { "a commit" };
            return Err(format!(
                "with {what} by {}, who was a {}",
                member.name,
                member.role.as_str()
            ));
        }
        let signed = state::split(sealed)
            .filter(|(body, signature)| verify(&member.verifying, &state_message(body), signature));
        match signed {
            Some(_) => Ok(member),
            None => Err(format!("that {} did not sign, whom it names as its author", member.name)),
        }
    }

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.origin);
        out.extend((self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            out.extend(entry.body());
            out.extend(entry.signature);
        }
        out.extend((self.sealed.len() as u16).to_le_bytes());
        for Sealed { public, encapsulated, sealed } in &self.sealed {
            out.extend(public);
            out.extend(encapsulated);
            out.extend(sealed);
        }
        out
    }

    /// Reads what [`Self::to_bytes`] wrote, and verifies every change.
    ///
    /// # Errors
    /// [`EnvelopeError::Decode`] naming what is wrong, and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(|error| Error::Envelope(EnvelopeError::Decode(error)))
    }

    fn read(bytes: &[u8]) -> core::result::Result<Self, DecodeError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.header(MAGIC, VERSION)?;
        let origin = reader.array()?;
        let offset = reader.offset();
        let count = reader.u32()? as usize;
        if !(1..=MAX_CHANGES).contains(&count) {
            return Err(reader.field(
                "number of changes",
                offset,
                format!("1 to {MAX_CHANGES}"),
                count,
            ));
        }
        reader.need_items(count, LEAST)?;
        let heads = vec![blake3::derive_key(HASHED, &origin)];
        let mut list = MemberList {
            origin,
            entries: Vec::with_capacity(count),
            heads,
            roll: Roll::default(),
            sealed: Vec::new(),
        };
        for _ in 0..count {
            let offset = reader.offset();
            let entry = Entry::read(&mut reader)?;
            list.push(entry)
                .map_err(|(expected, actual)| reader.field("change", offset, expected, actual))?;
        }
        let offset = reader.offset();
        let (count, members) = (usize::from(reader.u16()?), list.roll.members.len());
        if count != members {
            return Err(reader.field("number of sealed keys", offset, members, count));
        }
        for member in &list.roll.members {
            let offset = reader.offset();
            let public = reader.take(PUBLIC_KEY)?.to_vec();
            let recipient = Recipient { public, name: member.name.clone() };
            if digest(&recipient, &member.verifying) != member.card {
                let expected = format!("that on the card of {}", member.name);
                return Err(reader.field("public key", offset, expected, "another one"));
            }
            let encapsulated = reader.take(ENCAPSULATED)?.to_vec();
            let sealed = reader.take(SEALED)?.to_vec();
            list.sealed.push(Sealed { public: recipient.public, encapsulated, sealed });
        }
        reader.finish()?;
        Ok(list)
    }

    /// The list after one change more, signed by this person.
    fn with(&self, by: &Identity, change: Change, time: u64) -> Result<Self> {
        let author = by.member_fingerprint();
        let mut entry = Entry { change, time, author, signature: [0; SIGNATURE] };
        entry.signature = by.signing().sign(&entry.message(self.last())).to_bytes();
        let mut list = self.clone();
        if let Change::Remove(who, _) = &entry.change
            && let Some(at) = self.roll.members.iter().position(|one| one.fingerprint() == *who)
        {
            list.sealed.remove(at);
        }
        list.push(entry).map_err(refused)?;
        Ok(list)
    }

    /// Takes a change in, if an owner of the list as it is signed it.
    fn push(&mut self, entry: Entry) -> core::result::Result<(), Broken> {
        if self.entries.len() >= MAX_CHANGES {
            return Err((format!("at most {MAX_CHANGES} changes"), "one more".to_owned()));
        }
        let head = *self.last();
        // The first change is signed by whom it is about.
        let founds = self.entries.is_empty();
        let mut roll = self.roll.clone();
        if founds {
            roll.apply(&entry)?;
        }
        let signer = roll.member(&entry.author).filter(|one| one.role == Role::Owner);
        let by = || (expected_owner(), format!("signed by {}", hex(&entry.author)));
        let signer = signer.ok_or_else(by)?.clone();
        if !verify(&signer.verifying, &entry.message(&head), &entry.signature) {
            let came = format!("one that {} did not sign for this place of this list", signer.name);
            return Err((expected_owner(), came));
        }
        if !founds {
            roll.apply(&entry)?;
        }
        let body = [&head[..], &entry.body(), &entry.signature].concat();
        self.heads.push(blake3::derive_key(HASHED, &body));
        self.entries.push(entry);
        self.roll = roll;
        Ok(())
    }

    fn last(&self) -> &[u8; 32] {
        self.heads.last().unwrap_or(&[0; 32])
    }

    fn expect_present(&self, keys: &Keys) -> Result<()> {
        if self.roll.keys.last() == Some(&keys.master.fingerprint()) {
            return Ok(());
        }
        let (expected, actual) = (self.key_id().to_string(), keys.key_id().to_string());
        Err(Error::Range { what: "the key of the collection", expected, actual })
    }

    /// The same with these keys sealed to each.
    fn sealed_under(mut self, keys: &Keys) -> Result<Self> {
        let of = self.roll.members.iter().zip(&self.sealed);
        let sealed: Result<_> =
            of.map(|(member, old)| self.seal_to(member, &old.public, keys)).collect();
        self.sealed = sealed?;
        Ok(self)
    }

    fn seal_to(&self, member: &Member, public: &[u8], keys: &Keys) -> Result<Sealed> {
        let info = self.info(&member.fingerprint());
        let Some(SealedKey { encapsulated, sealed }) =
            hybrid::seal(public, &info, keys.master.expose())?
        else {
            let expected = format!("the one of {}", member.name);
            return Err(Error::Range { what: "a public key", expected, actual: "none".to_owned() });
        };
        Ok(Sealed { public: public.to_vec(), encapsulated, sealed })
    }

    /// What a key is sealed for: to whom, of which collection, and which one it is.
    fn info(&self, who: &Fingerprint) -> Vec<u8> {
        let key = self.roll.keys.last().unwrap_or(&[0; 16]);
        associated_data(
            "ciphervec v1 member-key",
            &[&VERSION.to_le_bytes(), &self.origin, key, who],
        )
    }
}

impl Identity {
    /// The signature of this person on a state, which ends the state's bytes.
    pub fn sign_state(&self, body: &[u8]) -> [u8; SIGNATURE] {
        self.signing().sign(&state_message(body)).to_bytes()
    }
}

fn state_message(body: &[u8]) -> Vec<u8> {
    [SIGNED_STATE, body].concat()
}

impl Roll {
    fn member(&self, who: &Fingerprint) -> Option<&Member> {
        self.members.iter().find(|one| one.fingerprint() == *who)
    }

    /// What a change makes of it. Who signed the change is not looked at, but that the first one is its author's own.
    fn apply(&mut self, entry: &Entry) -> core::result::Result<(), Broken> {
        let owners = |members: &[Member]| members.iter().any(|one| one.role == Role::Owner);
        if let Change::Found(one, _) | Change::Admit(one) = &entry.change
            && !tells(&one.name)
        {
            let expected = "a name that can be seen whole, and is no fingerprint".to_owned();
            return Err((expected, format!("{:?}", one.name)));
        }
        match &entry.change {
            Change::Found(member, key) => {
                if !self.keys.is_empty() {
                    return Err(("one founder".to_owned(), "another one".to_owned()));
                }
                if member.fingerprint() != entry.author || member.role != Role::Owner {
                    return Err(("a founder who is its owner".to_owned(), member.name.clone()));
                }
                self.members.push(member.clone());
                self.keys.push(*key);
                return Ok(());
            }
            _ if self.keys.is_empty() => {
                return Err(("its founding first".to_owned(), "another change".to_owned()));
            }
            Change::Admit(member) => {
                let known = self.members.iter().position(|one| one.card == member.card);
                let named = self.members.iter().position(|one| one.name == member.name);
                match known {
                    Some(at)
                        if named == Some(at) && self.members[at].verifying == member.verifying =>
                    {
                        self.members[at].role = member.role;
                    }
                    None if named.is_none() && self.member(&member.fingerprint()).is_none() => {
                        self.members.push(member.clone());
                    }
                    _ => {
                        let expected = "a name that nobody else on the list has".to_owned();
                        return Err((expected, format!("{} once more", member.name)));
                    }
                }
                if self.members.len() > MAX_MEMBERS {
                    return Err((format!("at most {MAX_MEMBERS} members"), "one more".to_owned()));
                }
            }
            Change::Remove(who, key) => {
                let before = self.members.len();
                self.members.retain(|one| one.fingerprint() != *who);
                if self.members.len() == before {
                    return Err(unknown(who));
                }
                self.key(key)?;
            }
            Change::Rekey(key) => self.key(key)?,
        }
        if owners(&self.members) {
            return Ok(());
        }
        Err(("at least one owner left".to_owned(), "a list without any".to_owned()))
    }

    fn key(&mut self, key: &KeyName) -> core::result::Result<(), Broken> {
        if self.keys.contains(key) {
            let came = format!("key {}, which it had before", hex(&key[..8]));
            return Err(("a key that is new to the collection".to_owned(), came));
        }
        self.keys.push(*key);
        Ok(())
    }
}

impl Entry {
    /// All but the signature.
    fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = match &self.change {
            Change::Found(..) => 0,
            Change::Admit(..) => 1,
            Change::Remove(..) => 2,
            Change::Rekey(..) => 3,
        };
        out.push(kind);
        out.extend(self.time.to_le_bytes());
        match &self.change {
            Change::Found(member, key) => {
                member.put(&mut out);
                out.extend(key);
            }
            Change::Admit(member) => member.put(&mut out),
            Change::Remove(who, key) => {
                out.extend(who);
                out.extend(key);
            }
            Change::Rekey(key) => out.extend(key),
        }
        out.extend(self.author);
        out
    }

    fn message(&self, head: &[u8; 32]) -> Vec<u8> {
        [SIGNED, head, &self.body()].concat()
    }

    fn read(reader: &mut Reader<'_>) -> core::result::Result<Self, DecodeError> {
        let offset = reader.offset();
        let (kind, time) = (reader.u8()?, reader.u64()?);
        let change = match kind {
            0 => Change::Found(Member::take(reader)?, reader.array()?),
            1 => Change::Admit(Member::take(reader)?),
            2 => Change::Remove(reader.array()?, reader.array()?),
            3 => Change::Rekey(reader.array()?),
            _ => return Err(reader.field("kind of a change", offset, "0 to 3", kind)),
        };
        Ok(Entry { change, time, author: reader.array()?, signature: reader.array()? })
    }
}

impl Member {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.role as u8);
        put_name(&self.name, out);
        out.extend(self.verifying);
        out.extend(self.card);
    }

    fn take(reader: &mut Reader<'_>) -> core::result::Result<Self, DecodeError> {
        let offset = reader.offset();
        let byte = reader.u8()?;
        let role =
            Role::of_byte(byte).ok_or_else(|| reader.field("role", offset, "0 to 2", byte))?;
        let offset = reader.offset();
        let length = usize::from(reader.u16()?);
        let name = core::str::from_utf8(reader.take(length)?).ok().filter(|name| name_fits(name));
        let expected = "1 to 64 printable bytes of UTF-8";
        let wrong = || reader.field("name", offset, expected, format!("{length} others"));
        let name = name.ok_or_else(wrong)?.to_owned();
        Ok(Member { name, role, verifying: reader.array()?, card: reader.array()? })
    }
}

fn expected_owner() -> String {
    "one that an owner signed for its place".to_owned()
}

fn unknown(who: &Fingerprint) -> Broken {
    ("a member of the list".to_owned(), format!("{}, who is not on it", hex(who)))
}

fn refused((expected, actual): Broken) -> Error {
    Error::Range { what: "a change of the members", expected, actual }
}
