//! Records on their way into a table: collected by key, placed, hashed and written as one file. For publishers.

use super::description::Description;
use super::geometry::Geometry;
use super::hash::{Digest, KeyHash, LookupKey, TAG_BYTES, Tag};
use super::placing::{EMPTY, place};
use super::tree;
use crate::error::{Error, Result};
use crate::store::StoreError;
use ciphervec_arith::parallel::*;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// Attempts at placing all records before the table is made larger.
const ATTEMPTS: u32 = 8;
/// How often it is made larger.
const WIDENINGS: u32 = 8;

/// Fills a slot's body with what an owner seals for this tag.
pub type SealRecord<'a> = &'a (dyn Fn(&Tag, &[u8], &mut [u8]) -> Result<()> + Sync);

/// What becomes of a record's content.
#[derive(Clone, Copy)]
pub enum Sealing<'a> {
    /// It stays as it is: the server reads it.
    Plain,
    /// An owner seals it.
    Sealed {
        /// Each record.
        record: SealRecord<'a>,
        /// What the owner says of the description.
        authenticate: &'a (dyn Fn(&[u8]) -> [u8; 32] + Sync),
    },
}

/// Records by key, in memory.
pub struct Records {
    name: [u8; 16],
    hash: KeyHash,
    digests: Vec<Digest>,
    ends: Vec<usize>,
    contents: Vec<u8>,
    longest: usize,
}

impl Records {
    /// Of a table with this name, new for each that is built, whose keys are hashed so. The publisher draws both at random:
    /// who knows the hash before may choose keys that find no place.
    pub fn new(name: [u8; 16], hash: KeyHash) -> Self {
        let (digests, ends, contents) = (Vec::new(), Vec::new(), Vec::new());
        Records { name, hash, digests, ends, contents, longest: 0 }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::Range`] for one that is longer than any table's.
    pub fn push(&mut self, key: LookupKey<'_>, content: &[u8]) -> Result<()> {
        if content.len() > super::MAX_CONTENT {
            return Err(Error::Range {
                what: "bytes of a record",
                expected: format!("at most {}", super::MAX_CONTENT),
                actual: content.len().to_string(),
            });
        }
        self.digests.push(self.hash.digest(key));
        self.contents.extend_from_slice(content);
        self.ends.push(self.contents.len());
        self.longest = self.longest.max(content.len());
        Ok(())
    }

    /// What the table is called.
    pub fn name(&self) -> &[u8; 16] {
        &self.name
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    fn content(&self, record: u32) -> &[u8] {
        let record = record as usize;
        let start = record.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.contents[start..self.ends[record]]
    }

    /// Two records of one key, if there are any.
    fn twice(&self) -> Option<(usize, usize)> {
        let mut order: Vec<u32> = (0..self.digests.len() as u32).collect();
        order.sort_unstable_by_key(|&record| (self.digests[record as usize].tag, record));
        let same = |pair: &&[u32]| {
            self.digests[pair[0] as usize].tag == self.digests[pair[1] as usize].tag
        };
        let pair = order.windows(2).filter(same).min_by_key(|pair| pair[1])?;
        Some((pair[0] as usize, pair[1] as usize))
    }

    fn placed(&self, content: usize, sealed: bool) -> Result<(Geometry, u32, Vec<u32>)> {
        let mut table = Geometry::of(self.len(), content, sealed)?;
        for _ in 0..WIDENINGS {
            for attempt in 0..ATTEMPTS {
                if let Some(held) = place(&self.digests, &table, attempt) {
                    return Ok((table, attempt, held));
                }
            }
            table.buckets += table.buckets.div_ceil(16);
            table.check()?;
        }
        Err(Error::Range {
            what: "keys of a table",
            expected: "keys that were chosen without its seed".to_owned(),
            actual: format!("{} that find no place; take another seed", self.len()),
        })
    }

    /// Writes the table to the start of `out`, with room for records of `content` bytes at least: tables of one length for
    /// records to come. `path` is for messages.
    ///
    /// # Errors
    /// [`Error::KeyTwice`]; [`Error::Range`] for more than a table holds; those of sealing; [`StoreError::Io`].
    pub fn write(
        &self,
        sealing: Sealing<'_>,
        content: usize,
        path: &Path,
        out: &mut (impl Write + Seek),
    ) -> Result<Description> {
        if self.len() >= EMPTY as usize {
            let expected = format!("below {EMPTY}");
            let actual = self.len().to_string();
            return Err(Error::Range { what: "records of a table", expected, actual });
        }
        if let Some((first, second)) = self.twice() {
            return Err(Error::KeyTwice { first, second });
        }
        let sealed = matches!(sealing, Sealing::Sealed { .. });
        let (geometry, attempt, held) = self.placed(content.max(self.longest), sealed)?;
        let nodes = tree::cap_len(geometry.all_buckets());
        let mut description = Description {
            name: self.name,
            seed: (!sealed).then(|| self.hash.clone()),
            records: self.len(),
            geometry,
            attempt,
            cap: vec![[0; tree::NODE_BYTES]; nodes],
            authenticator: sealed.then_some([0; 32]),
        };
        let io = |source: io::Error| {
            let path = path.to_owned();
            Error::Store(StoreError::Io { operation: "write the table", path, source })
        };
        out.seek(SeekFrom::Start(description.byte_len() as u64)).map_err(io)?;
        let height = geometry.path();
        let buckets: Vec<(usize, &[u32])> =
            held.chunks_exact(geometry.slots()).enumerate().collect();
        for (group, node) in buckets.chunks(1 << height).zip(&mut description.cap) {
            let fill = |(bucket, slots): &(usize, &[u32])| -> Result<(Vec<u8>, tree::Node)> {
                let filled = self.filled(slots, &geometry, sealing)?;
                let leaf = tree::leaf(&self.name, *bucket, &filled);
                Ok((filled, leaf))
            };
            let filled = group.par_iter().map(fill).collect::<Result<Vec<_>>>()?;
            let leaves: Vec<tree::Node> = filled.iter().map(|(_, leaf)| *leaf).collect();
            let (top, paths) = tree::above(&leaves, height);
            *node = top;
            for ((slots, _), path) in filled.iter().zip(paths) {
                out.write_all(slots).and_then(|()| out.write_all(&path.concat())).map_err(io)?;
            }
        }
        if let Sealing::Sealed { authenticate, .. } = sealing {
            description.authenticator = Some(authenticate(&description.authenticated()));
        }
        out.seek(SeekFrom::Start(0)).map_err(io)?;
        out.write_all(&description.to_bytes()).and_then(|()| out.flush()).map_err(io)?;
        Ok(description)
    }

    /// The slots of one bucket.
    fn filled(&self, slots: &[u32], table: &Geometry, sealing: Sealing<'_>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; table.slot_bytes()];
        for (slot, record) in bytes.chunks_exact_mut(table.slot()).zip(slots) {
            if *record == EMPTY {
                continue;
            }
            let (tag, body) = slot.split_at_mut(TAG_BYTES);
            let (digest, content) = (&self.digests[*record as usize], self.content(*record));
            tag.copy_from_slice(&digest.tag);
            match sealing {
                Sealing::Sealed { record, .. } => record(&digest.tag, content, body)?,
                Sealing::Plain => {
                    if let Some((length, rest)) = body.split_first_chunk_mut() {
                        *length = (content.len() as u16).to_le_bytes();
                        rest[..content.len()].copy_from_slice(content);
                    }
                }
            }
        }
        Ok(bytes)
    }
}
