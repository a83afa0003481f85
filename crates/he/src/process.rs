//! Process: which one this is. A fork has all of its parent's memory, and another number: what may
//! be used once, or by one, keeps the number of the process that it belongs to. Both sides.

/// The number of this process; 0 in WebAssembly, where there are neither numbers nor forks.
pub fn id() -> u32 {
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
