//! Similarity on a scheme that hides nothing, so that every integer of the pipeline can be compared with i128.

mod exact;
mod galleries;
mod hostile;
mod limits;
mod opening;
mod plain;
mod rows;
mod schemes;
