//! Operands: tables, layouts and constants that every back-end reads, defined below all of them.

pub(crate) mod basis;
pub(crate) mod convert;
pub(crate) mod layout;
pub(crate) mod montgomery;
pub(crate) mod ntt;
pub(crate) mod pcmm;
pub(crate) mod sample;
