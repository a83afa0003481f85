//! What makes, ends and restores collections on a server, for JavaScript. Not in the module of a page that only searches.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use crate::client::JsClient;
use crate::collection::JsCollection;
use crate::errors::Result;
use crate::host::JsHost;
use crate::values::choices;

#[wasm_bindgen(js_class = Client)]
impl JsClient {
    /// Makes an empty collection. Throws CollectionExists, InvalidInput.
    #[wasm_bindgen(js_name = createCollection)]
    pub async fn create_collection(&self, host: JsHost, given: JsValue) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        Ok(JsCollection(Rc::new(client.create_collection(&host, &choices(&given)?).await?)))
    }

    /// That a collection may be made of these choices. Throws InvalidInput.
    #[wasm_bindgen(js_name = checkNew)]
    pub fn check_new(&self, given: &JsValue) -> Result<()> {
        Ok(self.0.check_new(&choices(given)?)?)
    }

    /// Deletes a collection and everything in it. Throws CollectionNotFound.
    #[wasm_bindgen(js_name = deleteCollection)]
    pub async fn delete_collection(&self, host: JsHost, name: String) -> Result<()> {
        let client = Rc::clone(&self.0);
        Ok(client.delete_collection(&host, &name).await?)
    }

    /// Goes on from an older state of a collection, which whoever keeps it put back from a copy.
    #[wasm_bindgen(js_name = acceptRestore)]
    pub async fn accept_restore(&self, host: JsHost, name: String) -> Result<JsCollection> {
        let client = Rc::clone(&self.0);
        Ok(JsCollection(Rc::new(client.accept_restore(&host, &name).await?)))
    }
}
