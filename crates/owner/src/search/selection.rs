//! Rows that a query may return, for filters that the owner applies itself: chosen by id or by place, whatever the server answered.

use super::directory::SegmentDirectory;
use crate::protect::id::Id;
use ciphervec_he_secret::lattice::SegmentId;
use std::collections::HashMap;

/// Rows that a query may return, for filters that the owner applies itself.
pub struct Selection {
    rows: HashMap<SegmentId, Vec<bool>>,
}
impl Selection {
    /// Whether a row is one of them.
    pub fn allows(&self, segment: SegmentId, row: usize) -> bool {
        self.of(segment).get(row) == Some(&true)
    }

    /// By row of a segment, whether it is one of them; rows beyond are not.
    pub fn of(&self, segment: SegmentId) -> &[bool] {
        self.rows.get(&segment).map_or(&[], Vec::as_slice)
    }

    /// Segments with rows among them, and how many.
    pub fn counts(&self) -> impl Iterator<Item = (SegmentId, usize)> {
        let counts =
            self.rows.iter().map(|(id, rows)| (*id, rows.iter().filter(|row| **row).count()));
        counts.filter(|(_, count)| *count > 0)
    }
}
impl SegmentDirectory {
    /// The rows of these records; unknown names are passed over.
    pub fn select<'a>(&self, names: impl IntoIterator<Item = &'a Id>) -> Selection {
        let places = names.into_iter().filter_map(|name| self.locate(name));
        self.choose(places.map(|(segment, row)| (segment, [row])))
    }

    /// The same of rows that are known by their place.
    pub fn choose<R: IntoIterator<Item = u32>>(
        &self,
        chosen: impl IntoIterator<Item = (SegmentId, R)>,
    ) -> Selection {
        let empty = self.entries().iter().map(|entry| (entry.id, vec![false; entry.deleted.len()]));
        let mut rows: HashMap<SegmentId, Vec<bool>> = empty.collect();
        for (segment, places) in chosen {
            let Some(flags) = rows.get_mut(&segment) else { continue };
            places.into_iter().for_each(|row| flags[row as usize] = true);
        }
        Selection { rows }
    }
}
