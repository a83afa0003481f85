//! Usage file: how many queries of which day each token may have asked, on disk before they are answered. For daily
//! quotas, which a restart or a crash must not begin anew.

use redb::{Database, Error, ReadableDatabase, TableDefinition, TableError};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

const COUNTS: TableDefinition<&str, (i64, u64)> = TableDefinition::new("queries of a day");
/// Days after which a count is let go of.
const KEPT: i64 = 400;

/// A day since 1970, and its queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// The day.
    pub day: i64,
    /// Queries of it.
    pub queries: u64,
}

/// A file that is made when there is something to count.
pub struct Usage {
    path: PathBuf,
    open: Mutex<Option<Database>>,
    /// Which process opened it: a fork has the file open too, its lock, and counts that go on apart.
    process: OnceLock<u32>,
}

impl Usage {
    /// The counts in a file, which need not be there.
    pub fn at(path: &Path) -> Self {
        Usage { path: path.to_owned(), open: Mutex::default(), process: OnceLock::new() }
    }

    /// What is noted of a token.
    ///
    /// # Errors
    /// Why the file can't be read.
    pub fn read(&self, id: &str) -> Result<Counted, String> {
        self.using(|database| {
            let reading = database.begin_read()?;
            let counts = match reading.open_table(COUNTS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(Counted::default()),
                opened => opened?,
            };
            let found = counts.get(id)?.map(|found| found.value());
            Ok(found.map_or(Counted::default(), |(day, queries)| Counted { day, queries }))
        })
    }

    /// Notes the counts of tokens, durably.
    ///
    /// # Errors
    /// Why the file can't be written.
    pub fn write(&self, counts: &[(&str, Counted)]) -> Result<(), String> {
        self.using(|database| {
            let writing = database.begin_write()?;
            {
                let mut table = writing.open_table(COUNTS)?;
                for (id, count) in counts {
                    table.insert(id, (count.day, count.queries))?;
                }
            }
            Ok(writing.commit()?)
        })
    }

    /// Forgets the counts of long before `today`.
    ///
    /// # Errors
    /// Why the file can't be written.
    pub fn forget(&self, today: i64) -> Result<(), String> {
        if !self.path.exists() {
            return Ok(());
        }
        self.using(|database| {
            let writing = database.begin_write()?;
            writing.open_table(COUNTS)?.retain(|_, (day, _)| day > today - KEPT)?;
            Ok(writing.commit()?)
        })
    }

    /// Whether this process may count in it.
    ///
    /// # Errors
    /// If it was forked off the one that does.
    pub fn check(&self) -> Result<(), String> {
        if self.process.get().is_none_or(|opened| *opened == std::process::id()) {
            return Ok(());
        }
        Err(self.failed(&io::Error::other(
            "this process was forked off the one that counts in it; start each with a file of its own",
        )))
    }

    /// Gives the file back, for whoever counts in it next.
    pub fn close(&self) {
        let is_own = self.check().is_ok();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = open.take();
        if !is_own {
            // Closing it would write to the file, and give up the lock that both have.
            std::mem::forget(closed);
        }
    }

    fn using<T>(&self, work: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, String> {
        self.check()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let database = match &*open {
            Some(database) => database,
            None => {
                self.process.get_or_init(std::process::id);
                open.insert(self.opened()?)
            }
        };
        work(database).map_err(|error| {
            let says = self.failed(&error);
            // What is on disk is found out by opening it again.
            *open = None;
            says
        })
    }

    fn opened(&self) -> Result<Database, String> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path).map_err(|error| self.failed(&error))?;
        let opened = Database::builder().create_file(file);
        opened.map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => self.failed(&io::Error::other(
                "another server counts in it; give each a file of its own with --usage",
            )),
            error => self.failed(&error),
        })
    }

    fn failed(&self, error: &dyn std::error::Error) -> String {
        format!("cannot count queries in {}: {error}", self.path.display())
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        self.close();
    }
}
