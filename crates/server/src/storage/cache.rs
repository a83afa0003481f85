//! Segments in memory, checked, within a budget.
//!
//! All collections share one budget. What was used longest ago goes first, but never what the
//! present pass has used: a pass over more than fits would otherwise throw out each segment shortly
//! before it is needed again. The segments that do not fit are read, checked, scanned and let go,
//! so that a collection larger than the budget is still answered, slower.
//!
//! What a query takes beside segments, in the ring form a tree for each of those expanded at once, is
//! set aside from the same budget while it is worked on.
//!
//! One that fits is answered in the same way until it has been loaded, behind the first answer:
//! memory that a process has not used before is slow to get, on virtual machines several times
//! slower than what the segments are read and checked at.

use ciphervec::search::{Segment, SegmentParser, SegmentSource};
use ciphervec::store::StoredBlob;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Entry {
    segment: Arc<Segment>,
    bytes: u64,
    /// The pass that used it last.
    pass: u64,
}

#[derive(Default)]
struct Resident {
    entries: HashMap<u64, Entry>,
    bytes: u64,
}

impl Resident {
    /// Lets go of these, in their order, until no more than `most` bytes are left.
    fn let_go(&mut self, older: &[(u64, u64)], most: u64) {
        for (_, key) in older {
            if self.bytes <= most {
                break;
            }
            if let Some(entry) = self.entries.remove(key) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

/// Segments in memory.
pub(crate) struct Cache {
    budget: u64,
    resident: Mutex<Resident>,
    pass: AtomicU64,
    /// Whether the present pass keeps what it reads.
    keeping: AtomicBool,
    next: AtomicU64,
    /// Segments that were read for a pass and found no room.
    streamed: AtomicU64,
    /// Bytes that the present pass needs for other things.
    aside: AtomicU64,
    /// Bytes that others hold of the same memory.
    taken: AtomicU64,
}

/// Bytes set aside from the budget, until this is dropped.
pub(crate) struct Aside<'a>(&'a Cache);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.aside.store(0, Ordering::Relaxed);
    }
}

impl Cache {
    /// An empty cache of at most `budget` bytes.
    pub fn new(budget: u64) -> Arc<Self> {
        Arc::new(Self {
            budget,
            resident: Mutex::default(),
            pass: AtomicU64::new(1),
            keeping: AtomicBool::new(true),
            next: AtomicU64::new(0),
            streamed: AtomicU64::new(0),
            aside: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Resident> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a pass: what is used from now on stays until the next one begins. With `keeping`,
    /// what it reads is kept where there is room.
    pub fn begin(&self, keeping: bool) {
        self.keeping.store(keeping, Ordering::Relaxed);
        self.pass.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes room for bytes that the present pass needs for other things than segments. There is one
    /// pass at a time.
    pub fn set_aside(&self, bytes: u64) -> Aside<'_> {
        self.aside.store(bytes, Ordering::Relaxed);
        let mut resident = self.lock();
        let mut older: Vec<(u64, u64)> = Vec::new();
        if resident.bytes > self.left() {
            older.extend(resident.entries.iter().map(|(key, entry)| (entry.pass, *key)));
            older.sort_unstable();
        }
        resident.let_go(&older, self.left());
        Aside(self)
    }

    /// What is left of the budget for segments.
    fn left(&self) -> u64 {
        self.budget().saturating_sub(self.aside.load(Ordering::Relaxed))
    }

    /// Says what others hold of the same memory from now on. Segments make room for it in the next pass.
    pub fn take(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that may be in memory.
    pub fn budget(&self) -> u64 {
        self.budget.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Segments that were read for a pass and found no room, since the start.
    pub fn streamed(&self) -> u64 {
        self.streamed.load(Ordering::Relaxed)
    }

    fn get(&self, key: u64) -> Option<Arc<Segment>> {
        let pass = self.pass.load(Ordering::Relaxed);
        let mut resident = self.lock();
        let entry = resident.entries.get_mut(&key)?;
        entry.pass = pass;
        Some(Arc::clone(&entry.segment))
    }

    /// Keeps a segment if there is room, or can be made by letting go of what this pass has not
    /// used.
    fn keep(&self, key: u64, segment: &Arc<Segment>, pass: u64) -> bool {
        let bytes = segment.byte_len() as u64;
        let mut resident = self.lock();
        if resident.entries.contains_key(&key) {
            return true;
        }
        let (mut older, most): (Vec<(u64, u64)>, u64) = (Vec::new(), self.left());
        if resident.bytes + bytes > most {
            let others = resident.entries.iter().filter(|(_, entry)| entry.pass < pass);
            older.extend(others.map(|(key, entry)| (entry.pass, *key)));
            let free: u64 = older
                .iter()
                .filter_map(|(_, key)| resident.entries.get(key))
                .map(|entry| entry.bytes)
                .sum();
            if resident.bytes - free + bytes > most {
                return false;
            }
            older.sort_unstable();
        }
        resident.let_go(&older, most.saturating_sub(bytes));
        resident.bytes += bytes;
        resident.entries.insert(key, Entry { segment: Arc::clone(segment), bytes, pass });
        true
    }

    fn forget(&self, key: u64) {
        let mut resident = self.lock();
        if let Some(entry) = resident.entries.remove(&key) {
            resident.bytes -= entry.bytes;
        }
    }
}

/// One stored segment; when the last state that names it goes, so does its place in memory.
pub(crate) struct CachedSegment {
    cache: Arc<Cache>,
    key: u64,
    blob: StoredBlob,
}

impl CachedSegment {
    /// A segment that is read when it is needed.
    pub fn new(cache: &Arc<Cache>, blob: StoredBlob) -> Self {
        let key = cache.next.fetch_add(1, Ordering::Relaxed);
        Self { cache: Arc::clone(cache), key, blob }
    }

    /// Keeps what is in memory already, if there is room.
    pub fn with(self, segment: &Arc<Segment>) -> Self {
        self.keep(segment);
        self
    }

    fn read(&self, index: &dyn SegmentParser) -> ciphervec::Result<Arc<Segment>> {
        Ok(Arc::new(index.parse_checked(self.blob.read()?)?))
    }

    fn keep(&self, segment: &Arc<Segment>) -> bool {
        let pass = self.cache.pass.load(Ordering::Relaxed);
        self.cache.keep(self.key, segment, pass)
    }
}

impl SegmentSource for CachedSegment {
    fn segment(&self, index: &dyn SegmentParser) -> ciphervec::Result<Arc<Segment>> {
        if let Some(segment) = self.cache.get(self.key) {
            return Ok(segment);
        }
        let segment = self.read(index)?;
        if self.cache.keeping.load(Ordering::Relaxed) && !self.keep(&segment) {
            self.cache.streamed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(segment)
    }

    fn load(&self, index: &dyn SegmentParser) {
        if let Ok(segment) = self.read(index) {
            self.keep(&segment);
        }
    }

    fn is_resident(&self) -> bool {
        self.cache.lock().entries.contains_key(&self.key)
    }
}

impl Drop for CachedSegment {
    fn drop(&mut self) {
        self.cache.forget(self.key);
    }
}
