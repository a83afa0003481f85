//! Members of one collection, for JavaScript: the core does the work, and keeps to what is signed.

use std::rc::Rc;
use std::sync::Arc;

use ciphervec_client::{Collection, MemberChange, MemberInfo};
use ciphervec_owner::members::Role;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::arrays::{self, object};
use crate::collection::JsCollection;
use crate::errors::Result;
use crate::host::JsHost;
use crate::sharing::JsIdentity;

fn member(one: MemberInfo) -> JsValue {
    let role = one.role.as_str();
    let fields = [("name", one.name), ("fingerprint", one.fingerprint), ("role", role.to_owned())];
    object(&fields.map(|(name, value)| (name, value.into())))
}

/// The list of one collection.
#[wasm_bindgen(js_name = Members)]
pub struct JsMembers(Rc<Collection>);

#[wasm_bindgen(js_class = Members)]
impl JsMembers {
    /// Of this collection.
    pub fn of(collection: &JsCollection) -> JsMembers {
        JsMembers(Rc::clone(&collection.0))
    }

    /// Who is on it.
    pub async fn list(&self, host: JsHost) -> Result<Array> {
        let collection = Rc::clone(&self.0);
        Ok(collection.members(&host).await?.into_iter().map(member).collect())
    }

    /// Every change of it, the oldest first.
    pub async fn changes(&self, host: JsHost) -> Result<Array> {
        let collection = Rc::clone(&self.0);
        let told = |MemberChange { what, who, role, by, time }| {
            let role = role.map(Role::as_str);
            object(&[
                ("what", what.into()),
                ("who", who.map_or(JsValue::NULL, Into::into)),
                ("role", role.map_or(JsValue::NULL, Into::into)),
                ("by", by.into()),
                ("time", (time as f64).into()),
            ])
        };
        Ok(collection.member_changes(&host).await?.into_iter().map(told).collect())
    }

    /// Begins it. Throws InvalidInput.
    pub async fn found(&self, host: JsHost, by: &JsIdentity) -> Result<()> {
        let (collection, by) = (Rc::clone(&self.0), Arc::clone(&by.0));
        Ok(collection.found_members(&host, &by).await?)
    }

    /// Of a card's bytes. Throws InvalidInput, CorruptData.
    pub async fn add(&self, host: JsHost, card: Uint8Array, role: String) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        let card = arrays::bytes("a member's card", &card)?;
        Ok(member(collection.add_member(&host, &card, Role::parse(&role)?).await?))
    }

    /// By name or fingerprint. Throws InvalidInput.
    pub async fn appoint(&self, host: JsHost, who: String, role: String) -> Result<JsValue> {
        let collection = Rc::clone(&self.0);
        Ok(member(collection.appoint_member(&host, &who, Role::parse(&role)?).await?))
    }

    /// By name or fingerprint. Throws InvalidInput.
    pub async fn remove(&self, host: JsHost, who: String) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.remove_member(&host, &who).await?)
    }

    /// Seals what is under the keys before a removal again.
    pub async fn reseal(&self, host: JsHost) -> Result<()> {
        let collection = Rc::clone(&self.0);
        Ok(collection.reseal(&host).await?)
    }
}
