//! Threads: what the work that takes long runs on.

use std::sync::OnceLock;

/// Does work, on whatever threads, and comes back when it is done.
pub type Runner = fn(&mut (dyn FnMut() + Send));

static RUNNER: OnceLock<Runner> = OnceLock::new();

/// Has all work of this crate that takes long done by `runner`, from now on and in the whole process; false where it was set before. Left
/// out, it runs on rayon's global threads, which a forked child of a process has none of.
pub fn run_on(runner: Runner) -> bool {
    RUNNER.set(runner).is_ok()
}

/// Does work that takes long, and waits for nothing but it.
pub(crate) fn heavy<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let (mut work, mut done) = (Some(work), None);
    runner(&mut || done = work.take().map(|work| work()));
    match done {
        Some(done) => done,
        None => unreachable!("a runner came back before the work was done"),
    }
}

/// [`heavy`], for what takes its work as it comes.
pub(crate) fn runner(work: &mut (dyn FnMut() + Send)) {
    match RUNNER.get() {
        Some(runner) => runner(work),
        None => work(),
    }
}
