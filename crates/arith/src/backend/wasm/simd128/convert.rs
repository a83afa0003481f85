//! Representations: the portable conversions, of which the compiler makes vectors here.

pub(crate) use crate::backend::portable::convert::*;
