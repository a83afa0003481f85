//! Member's card: a person's public keys, for owners of collections. Not secret; that it is that person's is for the owner to
//! find out, by its fingerprint.
//!
//! A frame of kind 29 whose key id is the first half of the fingerprint, with the payload of a [`Recipient`], then `verifying key
//! 32 | signature 64` by that key over `ciphervec v1 member-card`, a zero byte and all of the payload before.
//!
//! The fingerprint is the first 16 bytes of BLAKE3's `derive_key` of the payload without the signature, context `ciphervec v1
//! member-card digest`. The signing key's seed is `derive_key` of the pair's seed, context `ciphervec v1 member-signature`; what
//! that person's clients remember is under the master key `derive_key`, context `ciphervec v1 member-memory`.

use super::{Member, Role, SIGNATURE, first_half};
use crate::error::Result;
use crate::sharing::{Fingerprint, Identity, Recipient, expect_head, head};
use ciphervec_he_secret::wire::{self, KeyId, Kind, Reader};
use ed25519_dalek::{Signature, Signer, VerifyingKey};

const SIGNED: &[u8] = b"ciphervec v1 member-card\0";

/// What a person hands out who is to be a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberCard {
    recipient: Recipient,
    verifying: [u8; 32],
    signature: [u8; SIGNATURE],
}

impl Identity {
    /// The card of this person.
    pub fn member_card(&self) -> MemberCard {
        let (recipient, key) = (self.recipient(), self.signing());
        let verifying = key.verifying_key().to_bytes();
        let signature = key.sign(&signed(&recipient, &verifying)).to_bytes();
        MemberCard { recipient, verifying, signature }
    }

    /// What names this person among members.
    pub fn member_fingerprint(&self) -> Fingerprint {
        self.member_card().fingerprint()
    }
}

impl MemberCard {
    /// The person's name, as they wrote it.
    pub fn name(&self) -> &str {
        self.recipient.name()
    }

    /// What names these keys and their holder: to be compared by another way than the file came.
    pub fn fingerprint(&self) -> Fingerprint {
        first_half(&self.digest())
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        digest(&self.recipient, &self.verifying)
    }

    pub(super) fn public(&self) -> &[u8] {
        &self.recipient.public
    }

    pub(super) fn member(&self, role: Role) -> Member {
        let (name, card) = (self.name().to_owned(), self.digest());
        Member { name, role, card, verifying: self.verifying }
    }

    /// The frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut key = [0; 8];
        key.copy_from_slice(&self.fingerprint()[..8]);
        let payload = [&self.recipient.payload(), &self.verifying[..], &self.signature].concat();
        head(Kind::MemberCard, KeyId(key)).frame(&payload)
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged bytes; another kind of card; a suite of a later release; a signature that is not the person's.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let what = Kind::MemberCard.as_str();
        let (header, payload) = wire::open(Kind::MemberCard, bytes)?;
        expect_head(what, &header)?;
        let mut reader = Reader::new(what, payload);
        let recipient = Recipient::read(&mut reader)?;
        let (verifying, signature) = (reader.array()?, reader.array()?);
        if !verify(&verifying, &signed(&recipient, &verifying), &signature) {
            return Err(reader.error("it is not signed by the key on it").into());
        }
        let card = MemberCard { recipient, verifying, signature };
        if header.key.0 != card.fingerprint()[..8] {
            return Err(reader.error("its key id is not that of its public keys").into());
        }
        reader.finish()?;
        Ok(card)
    }
}

/// What stands for a card in a list.
pub(super) fn digest(recipient: &Recipient, verifying: &[u8; 32]) -> [u8; 32] {
    let body = [&recipient.payload(), &verifying[..]].concat();
    blake3::derive_key("ciphervec v1 member-card digest", &body)
}

fn signed(recipient: &Recipient, verifying: &[u8; 32]) -> Vec<u8> {
    [SIGNED, &recipient.payload(), verifying].concat()
}

/// Whether this key signed the message. Of one message there is one signature that passes.
pub(super) fn verify(verifying: &[u8; 32], message: &[u8], signature: &[u8; SIGNATURE]) -> bool {
    let key = VerifyingKey::from_bytes(verifying);
    key.is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written_and_no_bit_of_it_can_be_changed() {
        let alice = Identity::generate("alice").unwrap();
        let card = alice.member_card();
        assert_eq!(card, alice.member_card());
        let bytes = card.to_bytes();
        assert_eq!(MemberCard::from_bytes(&bytes).unwrap(), card);
        assert_ne!(card.fingerprint(), alice.recipient().fingerprint());
        for at in (0..bytes.len() * 8).step_by(7) {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(MemberCard::from_bytes(&changed).is_err(), "bit {at}");
        }
        let other = MemberCard::from_bytes(&alice.recipient().to_bytes()).unwrap_err();
        assert!(other.to_string().contains("a member's card"), "{other}");
    }

    #[test]
    fn a_card_with_anothers_key_on_it_is_refused() {
        let [alice, eve] = ["alice", "eve"].map(|name| Identity::generate(name).unwrap());
        let verifying = eve.signing().verifying_key().to_bytes();
        let forged = MemberCard { verifying, ..alice.member_card() };
        let refused = MemberCard::from_bytes(&forged.to_bytes()).unwrap_err();
        assert!(refused.to_string().contains("not signed"), "{refused}");
    }
}
