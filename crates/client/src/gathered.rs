//! Ordered maps and sets of many entries. `collect` would sort them first, which takes some six kilobytes of a page's module for each type
//! of entry.

/// All of the entries; of those with one key the last.
pub fn gathered<C: Default + Extend<T>, T>(entries: impl IntoIterator<Item = T>) -> C {
    let mut all = C::default();
    all.extend(entries);
    all
}
