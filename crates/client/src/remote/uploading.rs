//! Blobs to a server before the commit that names them: in pieces, each acknowledged, so that a lost connection costs one.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::remote::problem::{error_of, loses_uploads};
use crate::remote::session::{Call, Session};

/// Bytes of an upload that go in one request.
const PIECE: usize = 4 << 20;
const SMALLEST_PIECE: usize = 64 << 10;

impl Session {
    /// Brings a blob to the server piece by piece, each acknowledged; the upload's id. `step(sent)` is called after each. After a lost
    /// connection it goes on where the server says it is.
    pub async fn upload(
        &self,
        host: &dyn Host,
        path: &str,
        data: &[u8],
        doing: &str,
        step: impl Fn(u64),
    ) -> Result<String> {
        for _ in 0..3 {
            // A server that restarted may have forgotten the upload.
            let upload = self.new_upload(host, path, data.len(), doing).await?;
            if self.pieces(host, &format!("{path}/{upload}"), data, doing, &step).await? {
                return Ok(upload);
            }
        }
        Err(loses_uploads(doing, &self.url))
    }

    async fn new_upload(
        &self,
        host: &dyn Host,
        path: &str,
        length: usize,
        doing: &str,
    ) -> Result<String> {
        #[derive(Deserialize)]
        struct Made {
            upload: String,
        }
        let body = format!("{{\"length\":{length}}}");
        let headers = vec![("Content-Type", "application/json".to_owned())];
        let call = Call {
            body: Some(body.as_bytes()),
            headers,
            also: &[201],
            not_200: true,
            ..Call::default()
        };
        let reply = self.call(host, "POST", path, doing, call).await?;
        let made: Made = self.json(&reply, doing)?;
        if made.upload.len() != 32 || !made.upload.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            let says = "named an upload in another way than by 32 hexadecimal digits";
            return Err(Error::server(format!("{doing}: {} {says}.", self.url)));
        }
        Ok(made.upload)
    }

    /// Whether all of it arrived; not where the server does not know the upload any more.
    async fn pieces(
        &self,
        host: &dyn Host,
        path: &str,
        data: &[u8],
        doing: &str,
        step: &impl Fn(u64),
    ) -> Result<bool> {
        let (mut offset, mut furthest, mut size, mut stuck) = (0, 0, PIECE, 0);
        while offset < data.len() {
            let headers = vec![
                ("Upload-Offset", offset.to_string()),
                ("Content-Type", "application/octet-stream".to_owned()),
            ];
            let body = Some(&data[offset..data.len().min(offset + size)]);
            let call = Call {
                body,
                headers,
                also: &[204, 404, 409, 413],
                not_200: true,
                ..Call::default()
            };
            let reply = self.call(host, "PATCH", path, doing, call).await?;
            match reply.head.status {
                404 => return Ok(false),
                413 if size <= SMALLEST_PIECE => return Err(error_of(&reply, doing, &self.url)),
                413 => {
                    size /= 2;
                    continue;
                }
                _ => {}
            }
            let now = reply.head.count("upload-offset").map(|now| now as usize);
            let Some(now) = now.filter(|now| *now <= data.len()) else {
                let says = "says that an upload is at no byte of it. Try again";
                return Err(Error::server(format!("{doing}: {} {says}.", self.url)));
            };
            stuck = if now <= furthest { stuck + 1 } else { 0 };
            if stuck > self.retries + 1 {
                let says = format!(
                    "{doing}: an upload stays at byte {now} on {}. Ask its operator.",
                    self.url
                );
                return Err(Error::server(says));
            }
            furthest = furthest.max(now);
            offset = now;
            step(offset as u64);
            host.check()?; // whoever was told may end it
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::host::fake::Fake;
    use crate::remote::session::tests::{gone, says, session};
    use futures_lite::future::block_on;

    #[test]
    fn an_upload_goes_on_where_the_server_is_in_smaller_pieces_where_it_wants_them() {
        let upload = "0".repeat(32);
        let made = || says(201, &[], &format!("{{\"upload\":\"{upload}\"}}"));
        let at = |offset: &str| says(204, &[("upload-offset", offset)], "");
        let data = vec![7; 5 << 20];
        let host = Fake::of([
            made(),
            says(413, &[], ""),
            at("2097152"),
            gone(true),
            at("1048576"),
            at("3145728"),
            at("5242880"),
        ]);
        let steps = std::cell::RefCell::new(Vec::new());
        let step = |sent| steps.borrow_mut().push(sent);
        assert_eq!(
            block_on(session(6).upload(&host, "/u", &data, "cannot", step)).unwrap(),
            upload
        );
        assert_eq!(*steps.borrow(), [2 << 20, 1 << 20, 3 << 20, 5 << 20]);
        let sizes: Vec<_> =
            host.asked.borrow().iter().skip(1).map(|(_, _, length, _)| *length).collect();
        assert_eq!(sizes, [4 << 20, 2 << 20, 2 << 20, 2 << 20, 2 << 20, 2 << 20]);
        // Forgotten each time, stuck, or at no byte of it.
        let forgets = || [made(), says(404, &[], "")];
        let host = Fake::of(forgets().into_iter().chain(forgets()).chain(forgets()));
        let error = block_on(session(6).upload(&host, "/u", &data, "cannot", |_| ())).unwrap_err();
        assert!(error.to_string().contains("loses uploads"), "{error}");
        let host = Fake::of([made()].into_iter().chain((0..20).map(|_| at("0"))));
        let error = block_on(session(2).upload(&host, "/u", &data, "cannot", |_| ())).unwrap_err();
        assert!(error.to_string().contains("stays at byte 0"), "{error}");
        for wrong in ["5242881", "-1", "x", ""] {
            let host = Fake::of([made(), at(wrong)]);
            let error =
                block_on(session(2).upload(&host, "/u", &data, "cannot", |_| ())).unwrap_err();
            assert!(error.to_string().contains("at no byte of it"), "{error}");
        }
    }
}
