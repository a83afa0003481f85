//! Budgets of memory that fit together into what the system allows, from what the operator asks for.
//!
//! A process that asks the system for more than it may have is ended in the middle of its work. So
//! what the server may need at most is compared with what it may have before it listens.

use crate::config::ServeOptions;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 4 << 30;
const UPLOAD: u64 = 1 << 30;
const PROGRAMS: u64 = 4 << 30;
/// Bodies of other requests beside one commit of uploads.
const BODIES: u64 = 8;
/// The least that is of use for segments.
const LEAST_BUDGET: u64 = 32 * MIB;
/// What the program takes beside its budgets: buffers, thread stacks, answers.
const PROGRAM: u64 = 128 * MIB;
/// The same in addresses, of which stacks and allocators take far more than of memory.
const PROGRAM_ADDRESSES: u64 = 512 * MIB;

/// Budgets that fit together into what the system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// For segments and the work on queries.
    pub budget: u64,
    /// For one upload, and those of one commit.
    pub max_upload: u64,
    /// For the bodies of all requests.
    pub bodies: u64,
    /// For programs: plans, keys, inputs and runs.
    pub programs: u64,
}

/// What a limit leaves, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    name: String,
}

impl MemoryPlan {
    /// The budgets of `options` under the limits that this process has.
    ///
    /// # Errors
    /// What does not fit, and what to change.
    pub fn of(options: &ServeOptions) -> Result<Self, String> {
        Self::within(options, limit(Path::new("/")))
    }

    fn within(options: &ServeOptions, limit: Option<Limit>) -> Result<Self, String> {
        let ServeOptions { memory_budget, max_upload, max_body, program_memory, .. } = *options;
        let most = max_body.saturating_mul(BODIES);
        let Some(Limit { bytes, name }) = limit else {
            let max_upload = max_upload.unwrap_or(UPLOAD);
            let bodies = max_upload.saturating_add(most);
            let programs = program_memory.unwrap_or(PROGRAMS);
            let budget = memory_budget.unwrap_or(BUDGET);
            return Ok(MemoryPlan { budget, max_upload, bodies, programs });
        };
        let others = most.min((bytes / 8).max(max_body));
        let max_upload = max_upload.unwrap_or(UPLOAD.min((bytes / 4).max(MIB)));
        let bodies = max_upload.saturating_add(others);
        let least = memory_budget.unwrap_or(LEAST_BUDGET);
        // What segments do not need at least is shared.
        let spare = bytes.saturating_sub(bodies.saturating_add(least));
        let programs = program_memory.unwrap_or(PROGRAMS.min(match memory_budget {
            Some(_) => spare,
            None => spare / 2,
        }));
        let rest = bytes.saturating_sub(bodies.saturating_add(programs));
        let budget = memory_budget.unwrap_or(BUDGET.min(rest));
        let needed = bodies.saturating_add(least).saturating_add(program_memory.unwrap_or(0));
        if needed <= bytes && budget >= least {
            return Ok(MemoryPlan { budget, max_upload, bodies, programs });
        }
        let mut says = format!(
            "{name} leaves {} MiB for data, and the options need {} MiB: ",
            bytes / MIB,
            needed.div_ceil(MIB)
        );
        // Writing into a string cannot fail.
        let _ = write!(
            says,
            "{} for segments and queries (--memory-budget), {} for uploads (--max-upload), {} for other bodies \
             (--max-body is {}), {} for programs (--program-memory). Give smaller ones, or allow the process more memory",
            least.div_ceil(MIB),
            max_upload.div_ceil(MIB),
            others.div_ceil(MIB),
            max_body.div_ceil(MIB),
            program_memory.unwrap_or(0).div_ceil(MIB)
        );
        Err(says)
    }
}

/// The tightest limit of this process, less what the program itself takes; `root` is that of the file
/// system.
fn limit(root: &Path) -> Option<Limit> {
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let addresses = text("proc/self/limits").as_deref().and_then(address_space);
    let taken = text("proc/self/statm").as_deref().and_then(pages).unwrap_or_default();
    let addresses = addresses.map(|bytes| Limit {
        bytes: bytes.saturating_sub(taken + PROGRAM_ADDRESSES),
        name: format!("the limit of address space (ulimit -v) of {} MiB", bytes / MIB),
    });
    let groups = text("proc/self/cgroup").unwrap_or_default();
    let group = group_limits(root, &groups).into_iter().min().map(|bytes| Limit {
        bytes: bytes.saturating_sub(PROGRAM),
        name: format!("the memory limit of the control group of {} MiB", bytes / MIB),
    });
    addresses.into_iter().chain(group).min_by_key(|limit| limit.bytes)
}

/// Bytes of memory that this process takes; none where the system does not say.
pub(crate) fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The soft limit of `/proc/self/limits`.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes of addresses in `/proc/self/statm`, in pages of the usual size.
fn pages(statm: &str) -> Option<u64> {
    Some(statm.split_whitespace().next()?.parse::<u64>().ok()? * 4096)
}

/// The limits of the groups that the process is in, and of those around them.
fn group_limits(root: &Path, groups: &str) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(kinds), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (base, file) = if kinds.is_empty() {
            ("sys/fs/cgroup", "memory.max")
        } else if kinds.split(',').any(|kind| kind == "memory") {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let base = root.join(base);
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let limit = fs::read_to_string(base.join(group).join(file)).ok();
            // "max", or a number near 2^63, is none.
            let limit = limit.and_then(|text| text.trim().parse().ok());
            limits.extend(limit.filter(|&bytes: &u64| bytes < 1 << 60));
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};

    fn options(extra: &[&str]) -> ServeOptions {
        let words = ["serve", "--data", "db"].into_iter().chain(extra.iter().copied());
        let matches = ServeOptions::augment_args(Command::new("serve")).get_matches_from(words);
        ServeOptions::from_arg_matches(&matches).expect("options")
    }

    fn within(extra: &[&str], mebibytes: u64) -> Result<MemoryPlan, String> {
        let limit = Limit { bytes: mebibytes * MIB, name: "the limit".into() };
        MemoryPlan::within(&options(extra), Some(limit))
    }

    #[test]
    fn budgets_fit_together_or_the_options_to_change_are_named() {
        let free = MemoryPlan::within(&options(&[]), None).expect("a plan");
        let bodies = UPLOAD + 512 * MIB;
        let all = MemoryPlan { budget: BUDGET, max_upload: UPLOAD, bodies, programs: PROGRAMS };
        assert_eq!(free, all);
        assert_eq!(within(&[], 1 << 20), Ok(all), "as without a limit");
        for mebibytes in [160, 200, 500, 1000, 2000, 5000] {
            let plan = within(&[], mebibytes).expect("a plan");
            assert!(plan.budget >= LEAST_BUDGET && plan.max_upload >= MIB, "{plan:?}");
            assert!(plan.budget + plan.bodies + plan.programs <= mebibytes * MIB, "{plan:?}");
            assert!(plan.bodies >= plan.max_upload + 64 * MIB, "{plan:?}");
        }
        let small = ["--max-body", "1MiB", "--max-upload", "4MiB"];
        assert_eq!(within(&small, 64).map(|plan| plan.max_upload), Ok(4 * MIB));
        let some = within(&["--program-memory", "1GiB"], 3000).expect("a plan");
        assert_eq!(some.programs, 1 << 30);
        for (extra, mebibytes) in [
            (&[][..], 100),
            (&["--memory-budget", "1GiB"], 1100),
            (&["--max-upload", "1GiB"], 900),
            (&["--program-memory", "1GiB"], 1100),
        ] {
            let says = within(extra, mebibytes).expect_err("does not fit");
            let named = [
                "the limit leaves",
                "--memory-budget",
                "--max-upload",
                "--max-body",
                "--program-memory",
            ];
            assert!(named.iter().all(|word| says.contains(word)), "{says}");
        }
    }

    #[test]
    fn limits_are_read_where_linux_writes_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        assert_eq!(limit(folder.path()), None);
        put(
            "proc/self/limits",
            "Limit  Soft Limit\nMax address space  unlimited  unlimited  bytes\n",
        );
        put("proc/self/cgroup", "0::/a/b\n");
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(folder.path()), None);
        put("sys/fs/cgroup/a/memory.max", "1073741824\n");
        let found = limit(folder.path()).expect("a limit");
        assert_eq!(found.bytes, (1 << 30) - PROGRAM);
        put("proc/self/limits", "Max address space         1073741824  unlimited  bytes\n");
        put("proc/self/statm", "1024 1 1\n");
        let found = limit(folder.path()).expect("a limit");
        assert_eq!(found.bytes, (1 << 30) - PROGRAM_ADDRESSES - (4 << 20));
        assert!(found.name.contains("ulimit -v"));
        put("proc/self/cgroup", "7:cpu,memory:/x\n");
        put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
        assert_eq!(limit(folder.path()).map(|limit| limit.bytes), Some(128 * MIB));
    }
}
