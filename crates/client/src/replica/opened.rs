//! Records and tags of one collection's segments, each read once.

use std::collections::HashMap;
use std::sync::Arc;

use ciphervec_owner::SegmentId;
use ciphervec_owner::protect::filter::FilterTags;

use crate::records::terms::Terms;
use crate::replica::tables::Tables;

/// Bytes of opened records that are held, about.
const MOST_OPENED: usize = 64 << 20;

#[derive(Default)]
pub struct Payloads {
    pub records: HashMap<SegmentId, Arc<[u8]>>,
    pub tags: HashMap<SegmentId, Arc<FilterTags>>,
    pub tables: Tables,
    /// All of them, once a question was asked that ranks by words; those made of records with the rows, ascending, that they are of.
    pub terms: HashMap<SegmentId, (Arc<Terms>, Option<Vec<u32>>)>,
    /// By row; all of them are forgotten where they grow too many.
    pub opened: HashMap<SegmentId, HashMap<u32, Arc<[u8]>>>,
    opened_bytes: usize,
}

impl Payloads {
    /// The segment is gone.
    pub fn forget(&mut self, id: SegmentId) {
        self.records.remove(&id);
        self.tags.remove(&id);
        self.opened.remove(&id);
        self.terms.remove(&id);
        self.tables.forget(id);
    }

    /// A record was opened.
    pub fn keep(&mut self, id: SegmentId, row: u32, record: &Arc<[u8]>) {
        self.opened_bytes += record.len();
        if self.opened_bytes > MOST_OPENED {
            self.opened.clear();
            self.opened_bytes = record.len();
        }
        self.opened.entry(id).or_default().insert(row, Arc::clone(record));
    }
}
