//! The processor's features and `CIPHERVEC_BACKEND` enter, the kernel family to run leaves. Both sides.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::error::ArithError;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512f;
#[cfg(target_arch = "x86_64")]
pub(crate) mod blocked;
#[cfg(target_arch = "x86_64")]
pub(crate) mod convert;
pub(crate) mod dispatch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod doubles;
pub(crate) mod pages;
#[cfg(target_arch = "x86_64")]
pub(crate) mod pcmm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod pointwise;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod prefetch;
pub(crate) mod products;
#[cfg(target_arch = "x86_64")]
pub(crate) mod roots;
#[cfg(target_arch = "x86_64")]
pub(crate) mod transform;

/// The environment variable that forces a back-end.
pub const BACKEND_VARIABLE: &str = "CIPHERVEC_BACKEND";

/// A family of kernels. All families return the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Plain Rust, any processor.
    Portable,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F but not all of the rest: multi-limb products in 512 bits, the other kernels as with AVX2.
    Avx512f,
    /// x86-64 with AVX-512 F, DQ, BW, VL, IFMA and VBMI.
    Avx512,
}

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
    /// The back-end that kernels called from this thread use: the one forced by [`Backend::run`], or the one
    /// `CIPHERVEC_BACKEND` names, or the best available. Read once a process; a bad name in the variable is
    /// ignored here and reported by [`Backend::from_env`].
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
                reason: format!("expected one of {NAMES} in {BACKEND_VARIABLE}"),
            }),
        }
    }

    /// The back-end with this name, if it is known and this processor can run it.
    ///
    /// # Errors
    /// [`ArithError::Backend`] otherwise.
    pub fn from_name(name: &str) -> Result<Backend, ArithError> {
        let Some(backend) = ALL.into_iter().find(|b| b.name() == name) else {
            return Err(ArithError::Backend {
                name: name.to_owned(),
                reason: format!("expected one of {NAMES}"),
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
        ALL.into_iter().filter(|b| b.is_available()).collect()
    }

    /// `portable`, `avx2`, `avx512f` or `avx512`.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Portable => "portable",
            Backend::Avx2 => "avx2",
            Backend::Avx512f => "avx512f",
            Backend::Avx512 => "avx512",
        }
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Backend::Portable => true,
            Backend::Avx2 => has_avx2(),
            Backend::Avx512f => has_avx512f(),
            Backend::Avx512 => has_avx512(),
        }
    }

    /// Runs `work` with every kernel it calls from this thread on this back-end; for tests and benches.
    ///
    /// # Errors
    /// [`ArithError::Backend`] when this processor cannot run it.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> Result<R, ArithError> {
        let backend = Backend::from_name(self.name())?;
        let _restore = Restore(FORCED.with(|cell| cell.replace(Some(backend))));
        Ok(work())
    }

    fn best() -> Backend {
        ALL.into_iter().rev().find(|b| b.is_available()).unwrap_or(Backend::Portable)
    }
}

const ALL: [Backend; 4] = [Backend::Portable, Backend::Avx2, Backend::Avx512f, Backend::Avx512];
const NAMES: &str = "portable, avx2, avx512f, avx512";

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512f() -> bool {
    has_avx2() && is_x86_feature_detected!("avx512f")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx512f()
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512f() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}
