//! Limits the requests in flight of each token: a guard counts one until it is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests in flight of each token.
#[derive(Default)]
pub struct InFlight(Mutex<HashMap<String, usize>>);

impl InFlight {
    /// One more of that token, unless it has `limit` already.
    pub fn enter(self: &Arc<Self>, id: &str, limit: usize) -> Option<InFlightGuard> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id.to_owned()).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(InFlightGuard { all: self.clone(), id: id.to_owned() })
    }
}

/// A request in flight until this is dropped.
pub struct InFlightGuard {
    all: Arc<InFlight>,
    id: String,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.id);
            }
        }
    }
}
