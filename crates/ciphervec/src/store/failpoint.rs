//! A disk that fails at a chosen step. Tests only.
//!
//! A crash stops every later step, as death does. It may also take back what was not fsynced:
//! contents of files, renames and removals, each of them or some, as a file system is free to do
//! when the power goes.

use super::disk::Step;
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What happens at the chosen step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The process dies; bit i of the mask says whether the i-th change that was not fsynced is
    /// lost.
    Crash(u64),
    /// That step fails once, the process lives.
    Once(ErrorKind),
    /// From that step on every file creation and write fails for want of space.
    Full,
}

#[derive(Debug)]
enum Volatile {
    Content(PathBuf),
    Renamed { from: PathBuf, to: PathBuf, old: Option<Vec<u8>> },
    Removed { path: PathBuf, content: Vec<u8> },
}

struct Plan {
    stop_at: usize,
    fault: Fault,
    reached: Vec<Step>,
    stopped: bool,
    volatile: Vec<Volatile>,
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// Runs `body` with a fault at step `stop_at` (from 1), and returns the steps reached as well.
pub(super) fn run<R>(stop_at: usize, fault: Fault, body: impl FnOnce() -> R) -> (R, Vec<Step>) {
    let plan = Plan { stop_at, fault, reached: Vec::new(), stopped: false, volatile: Vec::new() };
    PLAN.with_borrow_mut(|slot| *slot = Some(plan));
    let result = body();
    let plan = PLAN.with_borrow_mut(Option::take).expect("the plan set above");
    if let (true, Fault::Crash(mask)) = (plan.stopped, plan.fault) {
        lose(plan.volatile, mask);
    }
    (result, plan.reached)
}

fn lose(volatile: Vec<Volatile>, mask: u64) {
    for (index, change) in volatile.into_iter().enumerate().rev() {
        if mask >> (index % 64) & 1 == 0 {
            continue;
        }
        match change {
            Volatile::Content(path) => {
                if let Ok(content) = fs::read(&path) {
                    fs::write(&path, &content[..content.len() / 2]).expect("truncate");
                }
            }
            Volatile::Renamed { from, to, old } => {
                fs::rename(&to, &from).expect("undo a rename");
                if let Some(old) = old {
                    fs::write(&to, old).expect("undo a replacement");
                }
            }
            Volatile::Removed { path, content } => {
                fs::write(path, content).expect("undo a removal")
            }
        }
    }
}

pub(super) fn reach(step: Step) -> io::Result<()> {
    PLAN.with_borrow_mut(|slot| {
        let Some(plan) = slot else { return Ok(()) };
        plan.reached.push(step);
        let now = plan.reached.len() == plan.stop_at;
        plan.stopped |= now;
        match plan.fault {
            Fault::Crash(_) if plan.stopped => Err(io::Error::other("crashed")),
            Fault::Once(kind) if now => Err(kind.into()),
            Fault::Full if plan.stopped && matches!(step, Step::Create | Step::Write) => {
                Err(ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    })
}

fn note(change: impl FnOnce(&mut Vec<Volatile>)) {
    PLAN.with_borrow_mut(|slot| {
        if let Some(plan) = slot {
            change(&mut plan.volatile);
        }
    });
}

pub(super) fn created(path: &Path) {
    note(|volatile| volatile.push(Volatile::Content(path.to_owned())));
}

pub(super) fn synced(path: &Path) {
    note(|volatile| {
        volatile.retain(|change| !matches!(change, Volatile::Content(held) if held == path))
    });
}

pub(super) fn renaming(from: &Path, to: &Path) {
    note(|volatile| {
        for change in volatile.iter_mut() {
            if let Volatile::Content(held) = change
                && held == from
            {
                *held = to.to_owned();
            }
        }
        let old = fs::read(to).ok();
        volatile.push(Volatile::Renamed { from: from.to_owned(), to: to.to_owned(), old });
    });
}

pub(super) fn removing(path: &Path) {
    note(|volatile| {
        if let Ok(content) = fs::read(path) {
            volatile.push(Volatile::Removed { path: path.to_owned(), content });
        }
    });
}

pub(super) fn folder_synced(folder: &Path) {
    note(|volatile| {
        volatile.retain(|change| match change {
            Volatile::Content(_) => true,
            Volatile::Renamed { to, .. } => to.parent() != Some(folder),
            Volatile::Removed { path, .. } => path.parent() != Some(folder),
        });
    });
}
