//! Noting: an operation of a client that is noted when it ends, however it does. For every call that reads or writes rows.

use crate::host::Host;
use crate::note::Note;

/// An operation under way, which is noted when it ends, however it does.
pub(crate) struct Noting<'a> {
    host: &'a dyn Host,
    note: Note<'a>,
}

impl<'a> Noting<'a> {
    pub fn of(host: &'a dyn Host, action: &'static str, collection: &'a str) -> Self {
        Noting { host, note: Note { action, collection, outcome: "failed", count: 0 } }
    }

    /// It was done, to so many.
    pub fn done(mut self, count: usize) {
        self.note.count = count as u64;
        self.note.outcome = "done";
    }
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        self.host.note(&self.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::Fake;

    #[test]
    fn what_ends_early_has_failed_and_lines_have_these_fields_alone() {
        let host = Fake::default();
        Noting::of(&host, "add", "books").done(3);
        let failing = || -> crate::error::Result<()> {
            let noting = Noting::of(&host, "query", "books");
            host.check()?;
            crate::error::Error::input("an error that names planted-id")?;
            noting.done(1);
            Ok(())
        };
        assert!(failing().is_err());
        let line = |action: &str, outcome: &str, count: u64| {
            format!(
                "{{\"time\":0.5,\"action\":\"{action}\",\"collection\":\"books\",\"outcome\":\"{outcome}\",\
                 \"count\":{count},\"sent\":7,\"received\":9}}"
            )
        };
        assert_eq!(*host.noted.borrow(), [line("add", "done", 3), line("query", "failed", 0)]);
    }
}
