//! Rows in clusters of one shape, of which a question names a few, the real ones and decoys: what is chosen, and which segment is which
//! cluster.

pub mod choice;
pub mod table;

/// The numbers below `count` in order; those that compare alike, ascending.
pub fn ordered(count: usize, compare: &dyn Fn(usize, usize) -> core::cmp::Ordering) -> Vec<usize> {
    let mut all: Vec<_> = (0..count).collect();
    all.sort_by(|a, b| compare(*a, *b)); // stable; of one kind, as each takes kilobytes of a page's module
    all
}
