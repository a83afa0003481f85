//! Changes, which a client that only reads has no code for: the feature `write` says which one is built.

/// What changes a collection, or how it is refused where the code for it was left out. A call through a table of functions keeps what
/// it leads to in a module, whoever calls it, so this stands there.
macro_rules! writing {
    ($work:expr) => {{
        #[cfg(feature = "write")]
        let done = $work;
        #[cfg(not(feature = "write"))]
        let done = crate::error::Error::input(
            "this client only reads: open the collection with one that writes.",
        );
        done
    }};
}
pub(crate) use writing;
