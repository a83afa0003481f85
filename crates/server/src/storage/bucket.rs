//! Files of collections as objects of a bucket.
//!
//! Manifests are made by conditional creation, which is the commit: of two writers that race for a
//! version, one is told so and looks again. Everything else is written under names that nobody else
//! draws.

use ciphervec::store::{Listed, Medium, StoreError, WriterLock};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{
    Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::runtime::Runtime;

/// Bytes to ask for in one request: long enough that its latency does not matter, short enough that
/// several run at once.
const PIECE: u64 = 8 << 20;
/// Requests at once for one long read.
const REQUESTS: usize = 8;
/// Longer objects are sent in parts, so that memory holds one of them beside the bytes themselves.
const WHOLE: usize = 64 << 20;

/// A bucket, or a part of one, that holds collections.
#[derive(Clone)]
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// As messages show it.
    pub(super) url: String,
    threads: Arc<Threads>,
}

/// Threads of our own: callers are threads that may wait, not tasks.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        // Also where waiting is not allowed.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Where one collection's files lie in a bucket: `s3://bucket/prefix/name`. For readers and writers
/// beside a server.
///
/// # Errors
/// What is no such URL; credentials that are missing.
pub fn bucket_medium(url: &str) -> io::Result<Arc<dyn Medium>> {
    Ok(Arc::new(Bucket::at(url)?))
}

impl Bucket {
    /// The bucket at `s3://bucket/prefix`; credentials, region and endpoint come from the usual
    /// AWS_* variables.
    pub fn at(url: &str) -> io::Result<Self> {
        let (name, prefix) = url
            .trim_start_matches("s3://")
            .split_once('/')
            .unwrap_or((url.trim_start_matches("s3://"), ""));
        // Whoever was first has installed the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = AmazonS3Builder::from_env().with_bucket_name(name).build();
        Self::new(Arc::new(store.map_err(other)?), prefix, url)
    }

    /// The part of a store below `prefix`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str, url: &str) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("ciphervec-bucket")
            .enable_all()
            .build()?;
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(other)?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { store, prefix, url, threads: Arc::new(Threads(Some(runtime))) })
    }

    /// The names below the prefix under which there is anything.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let listed = self.wait(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let listed = listed.map_err(other)?;
        let last = |path: &Path| path.filename().map(str::to_owned);
        Ok(listed.common_prefixes.iter().filter_map(last).collect())
    }

    /// Where the files of one store lie.
    pub fn collection(&self, name: &str) -> Arc<dyn Medium> {
        Arc::new(self.within(name))
    }

    /// The part of it below that name.
    pub fn within(&self, name: &str) -> Self {
        let prefix = self.prefix.clone().join(name);
        Self { prefix, url: format!("{}/{name}", self.url), ..self.clone() }
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let runtime = self.threads.0.as_ref();
        let runtime = runtime.ok_or_else(|| io::Error::other("the bucket was closed"))?;
        Ok(runtime.block_on(work))
    }

    fn location(&self, name: &str) -> Path {
        let mut location = self.prefix.clone();
        for part in name.split('/').filter(|part| !part.is_empty()) {
            location = location.join(part);
        }
        location
    }

    /// Runs a request; `None` where there is nothing of that name.
    fn ask<T>(
        &self,
        operation: &'static str,
        name: &str,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, StoreError> {
        let failed = |source| StoreError::Io { operation, path: self.path(name), source };
        match self.wait(work).map_err(failed)? {
            Ok(done) => Ok(Some(done)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(other(error))),
        }
    }

    fn write_in_parts(&self, name: &str, parts: &[&[u8]]) -> Result<(), StoreError> {
        let location = self.location(name);
        let work = async {
            let mut upload = self.store.put_multipart(&location).await?;
            let sent = async {
                let mut piece = Vec::with_capacity(PIECE as usize);
                for part in parts {
                    let mut rest = *part;
                    while !rest.is_empty() {
                        let (now, later) =
                            rest.split_at(rest.len().min(PIECE as usize - piece.len()));
                        piece.extend_from_slice(now);
                        rest = later;
                        if piece.len() == PIECE as usize {
                            let full =
                                std::mem::replace(&mut piece, Vec::with_capacity(PIECE as usize));
                            upload.put_part(full.into()).await?;
                        }
                    }
                }
                if !piece.is_empty() {
                    upload.put_part(piece.into()).await?;
                }
                upload.complete().await
            };
            let sent: object_store::Result<_> = sent.await;
            if sent.is_err() {
                // Parts that nobody completes are the bucket's to clear away.
                let _ = upload.abort().await;
            }
            sent
        };
        self.made(name, self.ask("write", name, work)?.map(drop))
    }

    /// There is no such object where one was just written only if there is no such bucket.
    fn made<T>(&self, name: &str, written: Option<T>) -> Result<T, StoreError> {
        written.ok_or_else(|| {
            let source = io::Error::new(ErrorKind::NotFound, "there is no such bucket");
            StoreError::Io { operation: "write", path: self.path(name), source }
        })
    }

    fn write(&self, name: &str, payload: PutPayload, mode: PutMode) -> Result<bool, StoreError> {
        let location = self.location(name);
        let options = PutOptions::from(mode);
        let work = async {
            match self.store.put_opts(&location, payload, options).await {
                Ok(_) => Ok(true),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        };
        self.made(name, self.ask("write", name, work)?)
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

impl Medium for Bucket {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            PathBuf::from(&self.url)
        } else {
            PathBuf::from(format!("{}/{name}", self.url))
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn lock(&self) -> Result<Option<WriterLock>, StoreError> {
        Ok(None)
    }

    fn put(&self, name: &str, parts: &[&[u8]]) -> Result<(), StoreError> {
        if parts.iter().map(|part| part.len()).sum::<usize>() > WHOLE {
            return self.write_in_parts(name, parts);
        }
        let payload = parts.iter().map(|part| bytes::Bytes::copy_from_slice(part)).collect();
        self.write(name, payload, PutMode::Overwrite).map(drop)
    }

    fn settle(&self) -> Result<(), StoreError> {
        // An object is durable once it is acknowledged.
        Ok(())
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.write(name, PutPayload::from(bytes.to_vec()), PutMode::Create)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let location = self.location(name);
        let work = async { self.store.get(&location).await?.bytes().await };
        Ok(self.ask("read", name, work)?.map(|bytes| bytes.to_vec()))
    }

    fn length(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let location = self.location(name);
        Ok(self.ask("read the length of", name, self.store.head(&location))?.map(|meta| meta.size))
    }

    fn read_at(&self, name: &str, offset: u64, out: &mut [u8]) -> Result<bool, StoreError> {
        if out.is_empty() {
            return Ok(true);
        }
        let location = self.location(name);
        let end = offset.saturating_add(out.len() as u64);
        let work = async {
            let starts = (offset..end).step_by(PIECE as usize);
            let pieces = starts
                .map(|start| self.store.get_range(&location, start..(start + PIECE).min(end)));
            stream::iter(pieces).buffered(REQUESTS).try_collect::<Vec<_>>().await
        };
        let Some(pieces) = self.ask("read", name, work)? else { return Ok(false) };
        let mut rest = &mut *out;
        for piece in pieces {
            // A range past the end comes back shorter.
            let (filled, later) = rest.split_at_mut(piece.len().min(rest.len()));
            filled.copy_from_slice(&piece[..filled.len()]);
            rest = later;
        }
        if !rest.is_empty() {
            let source = io::Error::from(ErrorKind::UnexpectedEof);
            return Err(StoreError::Io { operation: "read", path: self.path(name), source });
        }
        Ok(true)
    }

    fn pack_name(&self, _: [u8; 16]) -> Result<[u8; 16], StoreError> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|error| StoreError::Io {
            operation: "draw a name in",
            path: self.path(""),
            source: io::Error::other(error.to_string()),
        })?;
        Ok(name)
    }

    fn stride(&self) -> usize {
        REQUESTS * PIECE as usize
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let location = self.location(folder);
        let listed = self.ask("list", folder, self.store.list_with_delimiter(Some(&location)))?;
        let now = SystemTime::now();
        let listed = listed.into_iter().flat_map(|listed| listed.objects);
        Ok(listed
            .filter_map(|meta| {
                let written = SystemTime::from(meta.last_modified);
                let name = meta.location.filename()?.to_owned();
                Some(Listed { name, age: now.duration_since(written).unwrap_or_default() })
            })
            .collect())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let location = self.location(name);
        self.ask("remove", name, self.store.delete(&location)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn long_objects_arrive_whole_from_their_parts() {
        let bucket = Bucket::new(Arc::new(InMemory::new()), "a/b", "s3://a/b").expect("a bucket");
        let medium = bucket.collection("long");
        let long: Vec<u8> = (0..WHOLE + 12_345).map(|at| (at * 7 % 251) as u8).collect();
        let (first, second) = long.split_at(PIECE as usize * 3 - 5);
        for parts in [[first, second], [&long[..1000], &[]]] {
            medium.put("blobs/x", &parts).expect("written");
            assert!(medium.get("blobs/x").expect("read").expect("there") == parts.concat());
        }
    }
}
