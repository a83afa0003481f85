//! File descriptors: how many this process may have, and how many of them stores may take. Server side.
//!
//! Every open store of a folder holds one, for its lock. What is left has to do for connections, and
//! for the files that requests read.

use std::io;

/// Beside connections: listener, log, runtime, and files that are read or written at the moment.
const BESIDE: usize = 128;
/// The least that stores may take.
const LEAST: usize = 8;

/// Lets this process open as many files as its hard limit says; how many that are. None where the
/// system has no such limit.
#[cfg(unix)]
pub(crate) fn raise() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Some systems have a lower limit than the hard one says: then the soft one stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
    let files = getrlimit(Resource::Nofile).current?;
    Some(usize::try_from(files).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
pub(crate) fn raise() -> Option<usize> {
    None
}

/// How many stores may be open at once, of so many files, beside so many connections.
pub(crate) fn stores(files: usize, connections: usize) -> usize {
    let others = connections.saturating_add(BESIDE).min(files / 2);
    files.saturating_sub(others).max(LEAST)
}

/// Whether that is what an operation failed for: this process has all files open that it may, or
/// the system has.
pub(crate) fn used_up(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_theirs_and_stores_have_some() {
        assert_eq!(stores(65_536, 1024), 65_536 - 1024 - BESIDE);
        assert_eq!(stores(256, 1024), 128);
        assert_eq!(stores(4, 1024), LEAST);
    }

    #[test]
    #[cfg(unix)]
    fn the_system_says_when_there_are_none_left() {
        assert!(used_up(&io::Error::from_raw_os_error(24)));
        assert!(!used_up(&io::Error::from_raw_os_error(2)));
    }
}
