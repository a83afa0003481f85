//! Room: whether what a token adds stays within what its scope may have stored. For handlers that store something of
//! others.

use super::app::App;
use super::problem::{Problem, Reached};
use crate::auth::Principal;
use crate::storage::{Amount, DatabaseError, Room, stored};
use axum::http::StatusCode;

impl App {
    /// Lets a token add to a collection or table, if its scope has room. It reads stores: not for threads that serve
    /// connections.
    ///
    /// # Errors
    /// 507 where there is none; those of the stores that are looked at.
    pub fn room(
        &self,
        principal: &Principal,
        name: &str,
        adds: Amount,
    ) -> Result<Option<Room>, Problem> {
        let limits = principal.limits();
        if !limits.of_storage() || adds == Amount::default() {
            return Ok(None);
        }
        let mut adding = self.rooms.lock();
        let mut there = Amount::default();
        for name in self.database.names()?.iter().filter(|name| principal.covers(name)) {
            match self.database.get(name).and_then(|collection| stored(&collection)) {
                // Dropped meanwhile.
                Err(DatabaseError::NotFound(_)) => {}
                found => there = there.and(found?),
            }
        }
        for name in self.tables.names()?.iter().filter(|name| principal.covers(name)) {
            match self.tables.get(name) {
                Err(DatabaseError::NotFound(_)) => {}
                found => {
                    let bytes = found?.table().byte_len();
                    there = there.and(Amount { bytes, rows: 0 });
                }
            }
        }
        let others = adding.iter().filter(|(name, _)| principal.covers(name));
        let after = others.fold(there.and(adds), |sum, (_, amount)| sum.and(*amount));
        for (limit, option, most, adds, after) in [
            (Reached::MaxBytes, "bytes", limits.max_bytes, adds.bytes, after.bytes),
            (Reached::MaxRows, "rows", limits.max_rows, adds.rows, after.rows),
        ] {
            if let Some(most) = most.filter(|&most| adds > 0 && after > most) {
                self.metrics.reject(limit.as_str());
                let says = format!(
                    "this token's collections may have {most} {option} together; with the {adds} that came they would have {after}"
                );
                return Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, "full", says)
                    .limit(limit)
                    .hint(format!(
                        "nothing was changed; remove rows and optimize, drop snapshots, or have the operator raise the token's --{}",
                        limit.as_str()
                    )));
            }
        }
        Ok(Some(self.rooms.take(&mut adding, name, adds)))
    }
}
