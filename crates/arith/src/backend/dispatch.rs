//! A back-end and a kernel's arguments enter, that back-end's kernel runs. One match per operation, all of them here.
#![allow(unsafe_code)]

use super::{Backend, portable};
use crate::ntt::NttTable;

#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Runs the kernel of the same name in one of the three modules, after seeing that the processor can.
macro_rules! on {
    ($backend:expr, $module:ident :: $kernel:ident $(::<$flag:ident>)? ($($argument:expr),* $(,)?)) => {{
        let backend: Backend = $backend;
        assert!(backend.is_available(), "this processor cannot run the {} back-end", backend.name());
        match backend {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion saw every feature that the kernel is compiled with.
            Backend::Avx512 => unsafe { avx512::$module::$kernel$(::<$flag>)?($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion saw every feature that the kernel is compiled with.
            Backend::Avx2 => unsafe { avx2::$module::$kernel$(::<$flag>)?($($argument),*) },
            _ => portable::$module::$kernel$(::<$flag>)?($($argument),*),
        }
    }};
}

pub(crate) fn forward<const LAZY: bool>(backend: Backend, table: &NttTable, data: &mut [u64]) {
    on!(backend, ntt::forward::<LAZY>(table, data));
}

pub(crate) fn inverse<const LAZY: bool>(backend: Backend, table: &NttTable, data: &mut [u64]) {
    on!(backend, ntt::inverse::<LAZY>(table, data));
}
