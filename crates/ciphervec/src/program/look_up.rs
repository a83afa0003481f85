//! Makes roots of unity beside a bootstrapper, for tables of computed integers; a process makes
//! them once.

use crate::error::{Error, Result};
use ciphervec_he::ckks::{Bootstrapper, Exponential, LookupTable};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Most tables of a circuit: each takes milliseconds to look at.
pub(super) const MAX_TABLES: usize = 1 << 8;
/// Largest absolute value in one.
const MAX_VALUE: f64 = (1u64 << 53) as f64;

/// The exponential beside a bootstrapper: its matrices take half a second to make.
///
/// # Errors
/// [`Error::Scheme`] for a set whose reduction has not the levels of an exponential.
pub(super) fn beside(bootstrapper: &Arc<Bootstrapper>) -> Result<Arc<Exponential>> {
    static KEPT: Mutex<Vec<(Weak<Bootstrapper>, Arc<Exponential>)>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|(of, _)| of.strong_count() > 0);
    let same = |of: &Weak<Bootstrapper>| core::ptr::eq(of.as_ptr(), Arc::as_ptr(bootstrapper));
    if let Some((_, found)) = kept.iter().find(|(of, _)| same(of)) {
        return Ok(found.clone());
    }
    let made = Arc::new(Exponential::beside(bootstrapper)?);
    kept.push((Arc::downgrade(bootstrapper), made.clone()));
    Ok(made)
}

/// Refuses tables of which values can't be told.
pub(super) fn check_tables(tables: &[LookupTable]) -> Result<()> {
    super::numbers::within("the number of tables", 0..=MAX_TABLES, tables.len())?;
    match tables.iter().map(LookupTable::largest).find(|largest| *largest > MAX_VALUE) {
        Some(largest) => Err(super::numbers::range("a value of a table", "at most 2^53", largest)),
        None => Ok(()),
    }
}

/// A table that is looked up without what it takes.
pub(super) fn nothing_to_look_up_with(operation: &'static str) -> Error {
    let detail =
        "tables are looked up by bootstrapping, and no bootstrapper is there for it".into();
    Error::Program { operation, detail }
}
