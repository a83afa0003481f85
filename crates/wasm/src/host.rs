//! The world as the core asks for it, in JavaScript: requests, storage, time, warnings of one call.

use core::any::Any;
use core::time::Duration;

use ciphervec_client::{Error, Head, Host, Later, Lost, Note, Progress, Request, Result, Sink};
use js_sys::{Array, Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::arrays::{field, items, object};

#[wasm_bindgen]
extern "C" {
    /// What a call is done under.
    #[wasm_bindgen(typescript_type = "CallHost")]
    pub type JsHost;

    #[wasm_bindgen(method, catch)]
    fn send(this: &JsHost, request: &JsValue, ms: f64) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn sleep(this: &JsHost, ms: f64) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method)]
    fn now(this: &JsHost) -> f64;
    #[wasm_bindgen(method)]
    fn clock(this: &JsHost) -> f64;
    #[wasm_bindgen(method, catch)]
    fn get(this: &JsHost, name: &str) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn set(this: &JsHost, name: &str, data: Uint8Array) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn delete(this: &JsHost, name: &str) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn list(this: &JsHost, prefix: &str) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn lock(this: &JsHost, name: &str) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn durable(this: &JsHost) -> bool;
    #[wasm_bindgen(method)]
    fn warn(this: &JsHost, text: &str);
    #[wasm_bindgen(method)]
    fn progress(this: &JsHost, phase: &str, done: f64, total: Option<f64>, ms: Option<f64>);
    #[wasm_bindgen(method)]
    fn meanwhile(this: &JsHost, work: Function);
    #[wasm_bindgen(method, getter)]
    fn ended(this: &JsHost) -> bool;
    /// Bytes of bodies until now; and whether there is a log, where `noted` writes.
    #[wasm_bindgen(method, getter)]
    fn sent(this: &JsHost) -> f64;
    #[wasm_bindgen(method, getter)]
    fn received(this: &JsHost) -> f64;
    #[wasm_bindgen(method, getter)]
    fn logs(this: &JsHost) -> bool;
    #[wasm_bindgen(method)]
    fn noted(this: &JsHost, line: &str);

    /// An answer, whose body is read piece by piece.
    type JsAnswer;
    #[wasm_bindgen(method, getter)]
    fn status(this: &JsAnswer) -> u16;
    #[wasm_bindgen(method, getter)]
    fn headers(this: &JsAnswer) -> Array;
    #[wasm_bindgen(method, catch)]
    fn read(this: &JsAnswer) -> core::result::Result<Promise, JsValue>;
    #[wasm_bindgen(method)]
    fn cancel(this: &JsAnswer);
}

type Promised = core::result::Result<Promise, JsValue>;

async fn settled(promise: Promised) -> core::result::Result<JsValue, JsValue> {
    JsFuture::from(promise?).await
}

fn text(error: &JsValue, key: &str) -> Option<String> {
    Reflect::get(error, &key.into()).ok()?.as_string()
}

fn truth(error: &JsValue, key: &str) -> bool {
    Reflect::get(error, &key.into()).is_ok_and(|value| value.is_truthy())
}

/// What the storage, or whoever ended the call, threw.
fn refused(error: &JsValue) -> Error {
    let says = text(error, "message").unwrap_or_else(|| format!("{error:?}"));
    match text(error, "name").as_deref() {
        Some("StorageError") => Error::Storage(says),
        _ => Error::Ended(says),
    }
}

fn lost(error: &JsValue) -> Lost {
    let says = text(error, "message").unwrap_or_else(|| format!("{error:?}"));
    let ended = text(error, "name").as_deref() != Some("Lost");
    Lost { says, sent: ended || truth(error, "sent"), last: ended || truth(error, "final"), ended }
}

impl JsHost {
    async fn attempt(
        &self,
        request: &Request<'_>,
        within: Duration,
        sink: &mut dyn Sink,
    ) -> core::result::Result<(), Lost> {
        let headers: Array = request
            .headers
            .iter()
            .map(|(name, value)| Array::of2(&(*name).into(), &value.as_str().into()))
            .collect();
        let body = request.body.map_or(JsValue::NULL, |body| Uint8Array::from(body).into());
        let asked = object(&[
            ("method", request.method.into()),
            ("url", request.url.as_str().into()),
            ("headers", headers.into()),
            ("body", body),
        ]);
        let answer = settled(self.send(&asked, within.as_secs_f64() * 1e3))
            .await
            .map_err(|error| lost(&error))?;
        let answer: JsAnswer = answer.unchecked_into();
        let pair = |pair: JsValue| {
            let mut parts = items(&pair).map(|part| part.as_string().unwrap_or_default());
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        };
        let head = Head {
            status: answer.status(),
            headers: answer.headers().into_iter().map(pair).collect(),
        };
        let taken = async {
            sink.begin(&head)?;
            loop {
                let piece = settled(answer.read()).await.map_err(|error| lost(&error))?;
                if piece.is_undefined() {
                    return Ok(());
                }
                sink.take(&Uint8Array::unchecked_from_js(piece).to_vec())?;
            }
        };
        let taken = taken.await;
        if taken.is_err() {
            answer.cancel();
        }
        taken
    }
}

/// Lets go of a lock.
struct Lock(Function);

impl Drop for Lock {
    fn drop(&mut self) {
        // What releases a lock throws nothing.
        let _ = self.0.call0(&JsValue::NULL);
    }
}

impl Host for JsHost {
    fn send<'a>(
        &'a self,
        request: &'a Request<'a>,
        within: Duration,
        sink: &'a mut dyn Sink,
    ) -> Later<'a, core::result::Result<(), Lost>> {
        Box::pin(self.attempt(request, within, sink))
    }

    fn sleep(&self, time: Duration) -> Later<'_, Result<()>> {
        let done = JsHost::sleep(self, time.as_secs_f64() * 1e3);
        Box::pin(async { settled(done).await.map(drop).map_err(|error| refused(&error)) })
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(JsHost::now(self).max(0.0) / 1e3)
    }

    fn clock(&self) -> Duration {
        Duration::from_secs_f64(JsHost::clock(self).max(0.0) / 1e3)
    }

    fn get<'a>(&'a self, name: &'a str) -> Later<'a, Result<Option<Vec<u8>>>> {
        let found = JsHost::get(self, name);
        Box::pin(async {
            let found = settled(found).await.map_err(|error| refused(&error))?;
            Ok(found.dyn_into::<Uint8Array>().ok().map(|data| data.to_vec()))
        })
    }

    fn put<'a>(&'a self, name: &'a str, data: &'a [u8]) -> Later<'a, Result<()>> {
        let done = self.set(name, Uint8Array::from(data));
        Box::pin(async { settled(done).await.map(drop).map_err(|error| refused(&error)) })
    }

    fn delete<'a>(&'a self, name: &'a str) -> Later<'a, Result<()>> {
        let done = JsHost::delete(self, name);
        Box::pin(async { settled(done).await.map(drop).map_err(|error| refused(&error)) })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Later<'a, Result<Vec<(String, u64)>>> {
        let found = JsHost::list(self, prefix);
        Box::pin(async {
            let found = settled(found).await.map_err(|error| refused(&error))?;
            let entry = |entry: JsValue| {
                let bytes = field(&entry, "bytes").ok()?.as_f64()?;
                Some((text(&entry, "name")?, bytes as u64))
            };
            Ok(items(&found).filter_map(entry).collect())
        })
    }

    fn lock<'a>(&'a self, name: &'a str) -> Later<'a, Result<Box<dyn Any>>> {
        let held = JsHost::lock(self, name);
        Box::pin(async {
            let release = settled(held).await.map_err(|error| refused(&error))?;
            Ok(match release.dyn_into::<Function>() {
                Ok(release) => Box::new(Lock(release)) as Box<dyn Any>,
                Err(_) => Box::new(()),
            })
        })
    }

    fn durable(&self) -> bool {
        JsHost::durable(self)
    }

    fn warn(&self, text: &str) {
        JsHost::warn(self, text);
    }

    fn note(&self, note: &Note<'_>) {
        if self.logs() {
            let time = JsHost::clock(self).max(0.0).round() / 1e3;
            self.noted(&note.line(time, self.sent() as u64, self.received() as u64));
        }
    }

    fn progress(&self, Progress { phase, done, total, ms }: Progress) {
        JsHost::progress(self, phase, done as f64, total.map(|total| total as f64), ms);
    }

    fn meanwhile(&self, work: Box<dyn FnOnce() + Send>) {
        JsHost::meanwhile(self, Closure::once_into_js(work).unchecked_into());
    }

    fn check(&self) -> Result<()> {
        if self.ended() { Err(Error::Ended("the call was ended.".to_owned())) } else { Ok(()) }
    }
}
