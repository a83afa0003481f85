//! A client's own log, for JavaScript that has files: lines are chained and signed here, and appended there.

use core::time::Duration;
use std::io;

use ciphervec_owner::protect::audit::{
    AUDIT_KEY_BYTES, Chain, Check, MOST, Place, begins, verifying_key,
};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use zeroize::Zeroizing;

use crate::arrays;
use crate::errors::{Failure, Result, Sort};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** Where a log is written: `js/client/src/native.ts` says what it has. */
export type AuditPlace = object;
"#;

#[wasm_bindgen]
extern "C" {
    /// A file that is open.
    #[wasm_bindgen(typescript_type = "AuditPlace")]
    pub type JsPlace;

    #[wasm_bindgen(method, catch)]
    fn append(this: &JsPlace, line: Uint8Array) -> core::result::Result<(), JsValue>;
    #[wasm_bindgen(method)]
    fn now(this: &JsPlace) -> f64;
}

impl Place for JsPlace {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        JsPlace::append(self, Uint8Array::from(line)).map_err(|error| {
            let says = js_sys::Reflect::get(&error, &"message".into()).ok();
            let says = says.and_then(|says| says.as_string());
            io::Error::other(says.unwrap_or_else(|| format!("{error:?}")))
        })
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(JsPlace::now(self).max(0.0) / 1e3)
    }
}

/// What a file holds already, piece by piece, before it is gone on with.
#[wasm_bindgen(js_name = AuditCheck)]
pub struct JsAuditCheck {
    key: Option<Zeroizing<[u8; AUDIT_KEY_BYTES]>>,
    check: Check<'static>,
    /// The beginning of a line.
    torn: Vec<u8>,
    length: u64,
}

#[wasm_bindgen(js_class = AuditCheck)]
impl JsAuditCheck {
    /// Of a log that this key signs, if it has one. Throws InvalidInput.
    #[wasm_bindgen(constructor)]
    pub fn new(key: Option<Uint8Array>) -> Result<JsAuditCheck> {
        let key =
            key.map(|key| arrays::one("an audit key", &key).map(Zeroizing::new)).transpose()?;
        let public = key.as_ref().map(|key| verifying_key(key));
        let check = Check::new(public.as_ref(), &[]).map_err(Failure::input)?;
        Ok(JsAuditCheck { key, check, torn: Vec::new(), length: 0 })
    }

    /// The next bytes of the file. Throws CorruptData for what is no log that holds.
    pub fn take(&mut self, bytes: &Uint8Array) -> Result<()> {
        self.torn.extend(arrays::bytes("a piece of a log", bytes)?);
        let whole = self.torn.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.torn.drain(..whole).collect();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.check.line(line).map_err(|(number, why)| {
                Failure::corrupt(format!(
                    "line {number}: {why}. It is not gone on with: move the file away, and keep it if nobody of yours changed it."
                ))
            })?;
            self.length += line.len() as u64;
        }
        Ok(())
    }

    /// Bytes of whole lines: what comes after them was not written to its end, and goes. Throws CorruptData where it is of no log.
    pub fn length(&self) -> Result<f64> {
        if self.torn.len() as u64 > MOST || self.length == 0 && !begins(&self.torn) {
            return Err(Failure::corrupt("it is no audit log; move the file away."));
        }
        Ok(self.length as f64)
    }

    /// Goes on with the log, at the end of whole lines. Throws StorageError.
    pub fn open(self, place: JsPlace) -> Result<JsAuditLog> {
        let found = self.check.end().map_err(|(_, why)| Failure::corrupt(why))?;
        let key = self.key.map(|key| *key);
        Ok(JsAuditLog(Chain::go_on(place, key, found.end, found.signed).map_err(unwritten)?))
    }
}

/// A log that is written.
#[wasm_bindgen(js_name = AuditLog)]
pub struct JsAuditLog(Chain<JsPlace>);

fn unwritten(error: io::Error) -> Failure {
    Failure::new(Sort::StorageError, format!("{error}."))
}

#[wasm_bindgen(js_class = AuditLog)]
impl JsAuditLog {
    /// Appends a JSON object on one line. Throws StorageError: then nothing of it is in the log.
    pub fn append(&mut self, object: &str) -> Result<()> {
        self.0.append(object).map_err(unwritten)
    }

    /// Signs what came last, if it has a key. Throws StorageError.
    pub fn sign(&mut self) -> Result<()> {
        self.0.sign().map_err(unwritten)
    }
}
