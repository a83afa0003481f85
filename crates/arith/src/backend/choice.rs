//! Which back-end runs: the best that the processor has, the one `CIPHERVEC_BACKEND` names, or one
//! that a caller forces on its thread for a while.

use std::cell::Cell;
use std::sync::OnceLock;

use super::table::with_back_ends;
use crate::error::ArithError;

/// The environment variable that forces a back-end.
pub const BACKEND_VARIABLE: &str = "CIPHERVEC_BACKEND";

macro_rules! define {
    (() $($(#[$doc:meta])* $variant:ident, $name:ident, $family:ident, $built:meta;)*) => {
        /// A family of kernels. All families return the same bits.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Backend {
            /// Plain Rust, any processor.
            Portable,
            $($(#[$doc])* $variant,)*
        }

        /// All of them, slowest first.
        const ALL: &[Backend] = &[Backend::Portable, $(Backend::$variant,)*];

        impl Backend {
            /// Its name in lower case, as `CIPHERVEC_BACKEND` takes it.
            pub fn name(self) -> &'static str {
                match self {
                    Backend::Portable => "portable",
                    $(Backend::$variant => stringify!($name),)*
                }
            }

            /// Whether this processor can run it.
            pub fn is_available(self) -> bool {
                match self {
                    Backend::Portable => true,
                    $(
                        #[cfg($built)]
                        Backend::$variant => super::$family::$name::is_available(),
                    )*
                    // Rows whose family this target lacks.
                    #[allow(unreachable_patterns)]
                    _ => false,
                }
            }
        }
    };
}
with_back_ends!(define());

thread_local! {
    static FORCED: Cell<Option<Backend>> = const { Cell::new(None) };
}

struct Restore(Option<Backend>);

impl Drop for Restore {
    fn drop(&mut self) {
        FORCED.with(|cell| cell.set(self.0));
    }
}

impl Backend {
    /// The back-end that kernels called from this thread use: the one forced by [`Backend::run`],
    /// or the one `CIPHERVEC_BACKEND` names, or the best available. Read once a process; a bad name
    /// in the variable is ignored here and reported by [`Backend::from_env`].
    pub fn current() -> Backend {
        static CHOSEN: OnceLock<Backend> = OnceLock::new();
        FORCED.with(Cell::get).unwrap_or_else(|| {
            *CHOSEN.get_or_init(|| Backend::from_env().unwrap_or_else(|_| Backend::best()))
        })
    }

    /// The back-end named by `CIPHERVEC_BACKEND`, or the best available when it is unset or empty.
    ///
    /// # Errors
    /// [`ArithError::Backend`] when the name is unknown or this processor lacks the instructions.
    pub fn from_env() -> Result<Backend, ArithError> {
        match std::env::var(BACKEND_VARIABLE) {
            Ok(name) if !name.is_empty() => Backend::from_name(&name),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(Backend::best()),
            Err(std::env::VarError::NotUnicode(name)) => Err(ArithError::Backend {
                name: name.to_string_lossy().into_owned(),
                reason: format!("expected one of {} in {BACKEND_VARIABLE}", names()),
            }),
        }
    }

    /// The back-end with this name, if it is known and this processor can run it.
    ///
    /// # Errors
    /// [`ArithError::Backend`] otherwise.
    pub fn from_name(name: &str) -> Result<Backend, ArithError> {
        let Some(backend) = ALL.iter().copied().find(|b| b.name() == name) else {
            return Err(ArithError::Backend {
                name: name.to_owned(),
                reason: format!("expected one of {}", names()),
            });
        };
        if backend.is_available() {
            return Ok(backend);
        }
        Err(ArithError::Backend {
            name: name.to_owned(),
            reason: format!(
                "this processor lacks its instructions; the best it has is {}",
                Backend::best().name()
            ),
        })
    }

    /// Every back-end this processor can run, slowest first.
    pub fn available() -> Vec<Backend> {
        ALL.iter().copied().filter(|b| b.is_available()).collect()
    }

    /// Runs `work` with every kernel it calls from this thread on this back-end; for tests and
    /// benches.
    ///
    /// # Errors
    /// [`ArithError::Backend`] when this processor cannot run it.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> Result<R, ArithError> {
        let backend = Backend::from_name(self.name())?;
        let _restore = Restore(FORCED.with(|cell| cell.replace(Some(backend))));
        Ok(work())
    }

    fn best() -> Backend {
        ALL.iter().copied().rev().find(|b| b.is_available()).unwrap_or(Backend::Portable)
    }
}

/// The names of all, for an error.
fn names() -> String {
    ALL.iter().map(|backend| backend.name()).collect::<Vec<_>>().join(", ")
}
