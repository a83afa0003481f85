//! What the module says of itself, and what it does when it must not go on.

use std::panic::PanicHookInfo;

use ciphervec_arith::Backend;
use wasm_bindgen::prelude::*;

/// The release.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The newest version of queries that this release makes.
#[wasm_bindgen(js_name = queryVersion)]
pub fn query_version() -> u16 {
    ciphervec_owner::search::WORDS_VERSION
}

/// The family of kernels in use.
#[wasm_bindgen]
pub fn backend() -> String {
    Backend::current().name().to_owned()
}

/// A panic is a mistake in this library. It reaches JavaScript as an error of its own name instead of a trap; the memory in
/// here is as the mistake left it, so that the module is to be loaded anew.
fn report(panic: &PanicHookInfo<'_>) {
    let error = js_sys::Error::new(&format!(
        "a mistake in ciphervec, please report it: {panic}; load the module anew"
    ));
    error.set_name("InternalError");
    wasm_bindgen::throw_val(error.into());
}

#[wasm_bindgen(start)]
fn start() {
    if cfg!(target_family = "wasm") {
        std::panic::set_hook(Box::new(report));
    }
    #[cfg(all(feature = "search", target_family = "wasm"))]
    ciphervec_client::normalize_by(|text| js_sys::JsString::from(text).normalize("NFKC").into());
}
