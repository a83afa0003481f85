//! Room: whether what a token adds stays within what its scope may have stored. For handlers that store something of
//! others.

use super::app::App;
use super::problem::Problem;
use crate::auth::{Principal, Turned};
use crate::storage::{Amount, DatabaseError, Room, stored};

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
        limits
            .room([adds.bytes, adds.rows], [after.bytes, after.rows])
            .map_err(|full| self.turned(Turned::Full(full)))?;
        Ok(Some(self.rooms.take(&mut adding, name, adds)))
    }
}
