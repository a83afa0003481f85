//! Collections on a server, for JavaScript: typed arrays and JSON text cross, and the core does the rest.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use ciphervec_client::{Client, ClientOptions, Face, Holder};
use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::arrays::object;
use crate::collection::JsCollection;
use crate::errors::Result;
use crate::host::JsHost;
use crate::keys::JsKeys;
use crate::sharing::JsIdentity;
use crate::values::{number, text, truth};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** `js/client/src/native.ts` says what these are. */
export type CallHost = object;
export type ClientChoices = object;
export type CollectionFacts = object;
"#;

/// Collections on a server that holds no key.
#[wasm_bindgen(js_name = Client)]
pub struct JsClient(pub(crate) Rc<Client>);

fn made(keys: Option<Holder>, options: &JsValue) -> Result<JsClient> {
    let mut made = ClientOptions {
        keys,
        face: Face::JavaScript,
        ..ClientOptions::new(text(options, "url").unwrap_or_default())
    };
    made.token = text(options, "token");
    made.insecure = truth(options, "insecure");
    if let Some(ms) = number(options, "timeout") {
        made.timeout = Duration::from_secs_f64(ms.max(0.0) / 1e3);
    }
    if let Some(retries) = number(options, "retries") {
        made.retries = retries as u32;
    }
    if let Some(bytes) = number(options, "cacheBytes") {
        made.cache_bytes = bytes as u64;
    }
    Ok(JsClient(Rc::new(Client::new(made)?)))
}

#[wasm_bindgen(js_class = Client)]
impl JsClient {
    /// With the owner's keys. Nothing is sent yet. Throws InvalidInput.
    #[wasm_bindgen(js_name = withKeys)]
    pub fn with_keys(
        keys: &JsKeys,
        #[wasm_bindgen(unchecked_param_type = "ClientChoices")] options: &JsValue,
    ) -> Result<JsClient> {
        made(Some(Arc::clone(&keys.0).into()), options)
    }

    /// For collections that this person is a member of, and those it makes.
    #[wasm_bindgen(js_name = withIdentity)]
    pub fn with_identity(
        identity: &JsIdentity,
        #[wasm_bindgen(unchecked_param_type = "ClientChoices")] options: &JsValue,
    ) -> Result<JsClient> {
        made(Some(Arc::clone(&identity.0).into()), options)
    }

    /// For collections in mode `open`.
    #[wasm_bindgen(js_name = withoutKeys)]
    pub fn without_keys(
        #[wasm_bindgen(unchecked_param_type = "ClientChoices")] options: &JsValue,
    ) -> Result<JsClient> {
        made(None, options)
    }

    /// The server's URL, as it is used.
    #[wasm_bindgen(getter)]
    pub fn url(&self) -> String {
        self.0.place().to_owned()
    }

    /// Shows the server another token from now on. Throws InvalidInput.
    #[wasm_bindgen(js_name = setToken)]
    pub fn set_token(&self, token: &str) -> Result<()> {
        Ok(self.0.set_token(token)?)
    }

    /// Opens a collection that is there.
    #[wasm_bindgen(js_name = getCollection)]
    pub async fn get_collection(
        &self,
        host: JsHost,
        name: String,
        allow_open: bool,
        expect: Option<String>,
    ) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        let opened = client.get_collection(&host, &name, allow_open, expect.as_deref()).await?;
        Ok(JsCollection(Rc::new(opened)))
    }

    /// Name, rows and bytes of every collection that the token may see.
    #[wasm_bindgen(js_name = listCollections)]
    pub async fn list_collections(&self, host: JsHost) -> Result<Array> {
        let client = Rc::clone(&self.0);
        let listed = client.list_collections(&host).await?;
        let row = |row: &ciphervec_client::CollectionRow| {
            object(&[
                ("name", row.name.as_str().into()),
                ("rows", (row.rows as f64).into()),
                ("bytes", (row.bytes as f64).into()),
            ])
        };
        Ok(listed.iter().map(row).collect())
    }

    /// Drops what was pinned and seen of a collection.
    pub async fn forget(&self, host: JsHost, name: String) -> Result<()> {
        let client = Rc::clone(&self.0);
        Ok(client.forget(&host, &name).await?)
    }
}
