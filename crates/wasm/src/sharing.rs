//! Master keys shared with people by their public keys, for JavaScript. Only who seals or opens needs a key; anyone reads who
//! is named.

use std::sync::Arc;

use ciphervec_owner::decode::hex;
use ciphervec_owner::members::MemberCard;
use ciphervec_owner::sharing::{Identity, Recipient, SharedKeys};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::arrays;
use crate::errors::Result;
use crate::keys::JsKeys;
use crate::secret_file;
use crate::wipe;

/// A person's pair. `free()` wipes it.
#[wasm_bindgen(js_name = Identity)]
pub struct JsIdentity(#[wasm_bindgen(skip)] pub Arc<Identity>);

impl Drop for JsIdentity {
    fn drop(&mut self) {
        wipe::stack();
    }
}

#[wasm_bindgen(js_class = Identity)]
impl JsIdentity {
    /// A new pair; its name is read by those who share.
    pub fn generate(name: &str) -> Result<JsIdentity> {
        Ok(JsIdentity(Arc::new(Identity::generate(name)?)))
    }

    /// Reads the bytes of a key file. Throws WrongKey for another passphrase, CorruptData, UnsupportedVersion.
    #[wasm_bindgen(js_name = fromFile)]
    pub fn from_file(data: &Uint8Array, passphrase: Option<String>) -> Result<JsIdentity> {
        secret_file::opened(data, passphrase, |bytes, words| {
            Ok(JsIdentity(Arc::new(Identity::from_file_bytes(bytes, words)?)))
        })
    }

    /// The bytes of a key file under a passphrase; in clear only where `allowPlaintext` asks for that.
    #[wasm_bindgen(js_name = toFile)]
    pub fn to_file(
        &self,
        passphrase: Option<String>,
        allow_plaintext: Option<bool>,
    ) -> Result<Uint8Array> {
        secret_file::sealed(passphrase, allow_plaintext, |words| Ok(self.0.to_file_bytes(words)?))
    }

    /// The public half, for those who share keys with this person.
    #[wasm_bindgen(getter)]
    pub fn recipient(&self) -> JsRecipient {
        JsRecipient(self.0.recipient())
    }

    /// The public half, for owners of collections who make this person a member.
    #[wasm_bindgen(getter, js_name = memberCard)]
    pub fn member_card(&self) -> JsMemberCard {
        JsMemberCard(self.0.member_card())
    }
}

/// A person's public keys and name, for owners of collections.
#[wasm_bindgen(js_name = MemberCard)]
pub struct JsMemberCard(MemberCard);

#[wasm_bindgen(js_class = MemberCard)]
impl JsMemberCard {
    /// The name that the person gave.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// 32 hexadecimal digits that name these keys and their holder: compare them by another way than the file came.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        hex(&self.0.fingerprint())
    }

    /// What `fromBytes` takes; public.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsMemberCard> {
        Ok(JsMemberCard(MemberCard::from_bytes(&arrays::bytes("a member's card", data)?)?))
    }
}

/// A person's public key and name, for those who share keys with them.
#[wasm_bindgen(js_name = Recipient)]
pub struct JsRecipient(Recipient);

#[wasm_bindgen(js_class = Recipient)]
impl JsRecipient {
    /// The name that the person gave.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// 32 hexadecimal digits that name this key and its holder: compare them by another way than the file came.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        hex(&self.0.fingerprint())
    }

    /// What `fromBytes` takes; public.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsRecipient> {
        Ok(JsRecipient(Recipient::from_bytes(&arrays::bytes("a recipient", data)?)?))
    }
}

/// A master key, sealed to several people: each of them opens it, and nobody else.
#[wasm_bindgen(js_name = SharedKeys)]
pub struct JsSharedKeys(SharedKeys);

#[wasm_bindgen(js_class = SharedKeys)]
impl JsSharedKeys {
    /// Seals `keys` to each of the people whose `Recipient.toBytes()` these are.
    pub fn seal(keys: &JsKeys, recipients: Vec<Uint8Array>) -> Result<JsSharedKeys> {
        let people = recipients.iter().map(|one| JsRecipient::from_bytes(one).map(|one| one.0));
        let people = people.collect::<Result<Vec<_>>>()?;
        Ok(JsSharedKeys(SharedKeys::seal(&keys.0, &people)?))
    }

    /// The keys, for one of the recipients. Throws WrongKey for somebody else, CorruptData for a file that was changed.
    pub fn open(&self, identity: &JsIdentity) -> Result<JsKeys> {
        Ok(JsKeys(Arc::new(self.0.open(&identity.0)?)))
    }

    /// The public name of the keys inside.
    #[wasm_bindgen(getter, js_name = keyId)]
    pub fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// Who can open it. Vouched for only once it has been opened.
    #[wasm_bindgen(getter, unchecked_return_type = "RecipientName[]")]
    pub fn recipients(&self) -> Vec<JsValue> {
        let name = |(print, name): ([u8; 16], &str)| {
            let fingerprint = hex(&print).into();
            arrays::object(&[("name", name.into()), ("fingerprint", fingerprint)])
        };
        self.0.recipients().map(name).collect()
    }

    /// What `fromBytes` takes; it may lie anywhere.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Uint8Array {
        arrays::out(&self.0.to_bytes())
    }

    /// Reads what `toBytes` gave. Throws CorruptData or UnsupportedVersion.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(data: &Uint8Array) -> Result<JsSharedKeys> {
        Ok(JsSharedKeys(SharedKeys::from_bytes(&arrays::bytes("shared keys", data)?)?))
    }
}
