//! A table as its file or its bytes hold it, and as a server answers from it. Buckets are read one by one and checked, so that
//! a table takes no memory before it is served.

use super::description::Description;
use super::hash::Digest;
use crate::decode::hex;
use crate::error::{Error, Result};
use crate::fetch::FetchTable;
use crate::store::StoreError;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

enum Source {
    Memory(Vec<u8>),
    File(Mutex<File>),
}

/// A table that was built.
pub struct KeyedTable {
    description: Description,
    source: Source,
    path: PathBuf,
}

fn failed(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Store(StoreError::Io { operation, path: path.to_owned(), source })
}

impl KeyedTable {
    /// Opens a file that was written by [`super::Records::write`].
    ///
    /// # Errors
    /// Bytes that are none, or of another length than they say; [`StoreError::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(failed("open", path))?;
        let length = file.metadata().map_err(failed("open", path))?.len();
        let mut start = Vec::new();
        let most = Description::MAX_BYTES as u64;
        (&mut file).take(most).read_to_end(&mut start).map_err(failed("read", path))?;
        Self::checked(&start, length, Source::File(Mutex::new(file)), path)
    }

    /// The same of bytes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let start = bytes[..bytes.len().min(Description::MAX_BYTES)].to_vec();
        Self::checked(&start, bytes.len() as u64, Source::Memory(bytes), Path::new("(memory)"))
    }

    fn checked(start: &[u8], length: u64, source: Source, path: &Path) -> Result<Self> {
        let description = Description::from_start(start)?;
        let table = KeyedTable { description, source, path: path.to_owned() };
        let expected = table.byte_len();
        if length != expected {
            return Err(table.damaged(
                length.min(expected),
                format!("a table of {expected} bytes"),
                format!("{length} bytes"),
            ));
        }
        Ok(table)
    }

    fn damaged(&self, offset: u64, expected: String, actual: String) -> Error {
        Error::Store(StoreError::Corrupt { path: self.path.clone(), offset, expected, actual })
    }

    /// What is public of it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Bytes of its file.
    pub fn byte_len(&self) -> u64 {
        let table = self.description.geometry();
        self.description.byte_len() as u64 + table.all_buckets() as u64 * table.bucket() as u64
    }

    /// Reads a bucket and checks it.
    fn bucket(&self, part: usize, bucket: usize, out: &mut [u8]) -> Result<()> {
        let table = self.description.geometry();
        let number = (part * table.buckets + bucket) as u64;
        let start = self.description.byte_len() as u64 + number * out.len() as u64;
        match &self.source {
            Source::Memory(bytes) => out.copy_from_slice(&bytes[start as usize..][..out.len()]),
            Source::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(out));
                read.map_err(failed("read", &self.path))?;
            }
        }
        if self.description.is_bucket(part, bucket, out) {
            return Ok(());
        }
        let expected = format!("bucket {number} of table {}", hex(self.description.name()));
        Err(self.damaged(start, expected, "another, by its hash".to_owned()))
    }

    /// The table as answers are computed from it: some 3.6 times its bytes. Every bucket is checked.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a bucket that is not what was written, [`StoreError::Io`].
    pub fn served(&self) -> Result<FetchTable> {
        let table = self.description.geometry();
        let shape = table.shape(*self.description.name())?;
        FetchTable::of_parts(shape, table.parts, |part, bucket, out| self.bucket(part, bucket, out))
    }

    /// Checks every bucket.
    ///
    /// # Errors
    /// As [`Self::served`].
    pub fn verify(&self) -> Result<()> {
        let table = self.description.geometry();
        let mut bytes = vec![0; table.bucket()];
        for part in 0..table.parts {
            for bucket in 0..table.buckets {
                self.bucket(part, bucket, &mut bytes)?;
            }
        }
        Ok(())
    }

    /// The body beside a tag, for who has the table: nothing is hidden from whoever keeps its file.
    ///
    /// # Errors
    /// As [`Self::served`].
    pub fn body(&self, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; self.description.geometry().bucket()];
        for (part, bucket) in self.description.buckets(digest).enumerate() {
            self.bucket(part, bucket, &mut bytes)?;
            if let (body, true) = self.description.body(digest, &bytes) {
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    /// Writes all of it elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn copy_to(&self, path: &Path, out: &mut impl io::Write) -> Result<()> {
        let copied = match &self.source {
            Source::Memory(bytes) => out.write_all(bytes),
            Source::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let sought = file.seek(SeekFrom::Start(0));
                sought.and_then(|_| io::copy(&mut *file, out)).map(drop)
            }
        };
        copied.and_then(|()| out.flush()).map_err(failed("write the table", path))
    }
}
