//! Tables of opened metadata, by segment, within a budget of memory.

use std::collections::HashMap;
use std::sync::Arc;

use ciphervec_owner::SegmentId;

use crate::records::Table;

/// Memory for the tables that filters are tested on; the ones unused for longest leave first.
pub const TABLE_BYTES: usize = 256 << 20;

/// What is held of the metadata of one collection's segments.
#[derive(Default)]
pub struct Tables {
    /// With when each was used last.
    held: HashMap<SegmentId, (u64, Arc<Table>)>,
    /// Rows opened one by one, in vain for the next filter.
    looked: HashMap<SegmentId, usize>,
    uses: u64,
    bytes: usize,
}

impl Tables {
    /// The table of a segment, if it is held.
    pub fn get(&mut self, id: SegmentId) -> Option<Arc<Table>> {
        let (used, table) = self.held.get_mut(&id)?;
        self.uses += 1;
        *used = self.uses;
        Some(Arc::clone(table))
    }

    /// Adds rows of a segment that were opened one by one; how many were so far.
    pub fn look(&mut self, id: SegmentId, rows: usize) -> usize {
        let looked = self.looked.entry(id).or_default();
        *looked += rows;
        *looked
    }

    /// Holds the table of a segment.
    pub fn keep(&mut self, id: SegmentId, table: Arc<Table>) {
        self.forget(id);
        self.uses += 1;
        self.bytes += table.nbytes();
        self.held.insert(id, (self.uses, table));
        while self.bytes > TABLE_BYTES {
            let oldest = self.held.iter().min_by_key(|(_, (used, _))| *used);
            match oldest.map(|(id, _)| *id) {
                Some(id) => self.forget(id),
                None => break,
            }
        }
    }

    /// The segment is gone.
    pub fn forget(&mut self, id: SegmentId) {
        self.looked.remove(&id);
        if let Some((_, table)) = self.held.remove(&id) {
            self.bytes -= table.nbytes();
        }
    }

    /// How many are held, and their bytes, about.
    pub fn held(&self) -> (usize, usize) {
        (self.held.len(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_unused_for_longest_leaves_first() {
        let table = |text: usize| {
            let record = format!("{{\"metadata\":{{\"t\":\"{}\"}}}}", "x".repeat(text));
            Arc::new(Table::new([record.as_bytes()].into_iter()).unwrap())
        };
        let ids = [1, 2, 3].map(|id| SegmentId([id; 16]));
        let mut tables = Tables::default();
        let third = TABLE_BYTES * 2 / 5;
        tables.keep(ids[0], table(third));
        tables.keep(ids[1], table(third));
        assert!(tables.get(ids[0]).is_some());
        tables.keep(ids[2], table(third));
        assert_eq!(ids.map(|id| tables.get(id).is_some()), [true, false, true]);
        assert!(tables.held().1 <= TABLE_BYTES);
        assert_eq!([tables.look(ids[1], 3), tables.look(ids[1], 4)], [3, 7]);
        ids.iter().for_each(|id| tables.forget(*id));
        assert_eq!(tables.held(), (0, 0));
    }
}
