//! Memory of programs: plans, keys and kept inputs stay while there is room; runs get theirs from the same budget.
//!
//! One budget for all. What is asked for is known before it is read or computed, and nothing is read
//! or computed without room for it: what nobody uses makes room, then whoever asks waits, first come,
//! first served. Entries are named by the hash of what they were read from, so that none is ever out
//! of date.

use crate::storage::error::DatabaseError;
use ciphervec::program::{Plan, Sealed, Server};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A kept input, with the plan whose parameters it is under.
pub(super) struct KeptInput {
    pub sealed: Sealed,
    /// Keeps the tables that the input refers to from being counted as free.
    #[expect(dead_code, reason = "held as long as the input")]
    pub plan: Arc<Plan>,
}

/// What stays in memory.
#[derive(Clone)]
pub(super) enum Item {
    Plan(Arc<Plan>),
    Keys(Arc<Server>),
    Input(Arc<KeptInput>),
}

impl Item {
    /// Whether nobody but the cache has it. Keys and inputs have a plan, too.
    fn is_idle(&self) -> bool {
        match self {
            Item::Plan(plan) => Arc::strong_count(plan) == 1,
            Item::Keys(keys) => Arc::strong_count(keys) == 1,
            Item::Input(input) => Arc::strong_count(input) == 1,
        }
    }
}

/// The hash of what an entry was read from: of a plan, or of a plan and keys or an input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EntryName(pub [u8; 32]);

/// An entry that is needed, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub name: EntryName,
    pub bytes: u64,
}

struct Entry {
    item: Item,
    bytes: u64,
    used: u64,
}

#[derive(Default)]
struct Held {
    entries: HashMap<EntryName, Entry>,
    /// Bytes of entries and of room that was given away.
    taken: u64,
    clock: u64,
}

/// The budget, and what it is spent on.
pub(super) struct ProgramMemory {
    budget: u64,
    held: Mutex<Held>,
    /// Whose turn it is to wait for room.
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

/// What was asked for: entries that were there, and room for the others and for the work.
pub(super) struct Admission {
    /// In the order in which they were asked for.
    pub found: Vec<Option<Item>>,
    /// Goes last: what it was for is gone by then.
    pub room: Room,
}

/// Bytes of the budget, given back when this is dropped.
pub(super) struct Room {
    memory: Arc<ProgramMemory>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.lock().taken -= self.bytes;
        self.memory.freed.notify_one();
    }
}

impl ProgramMemory {
    pub fn new(budget: u64) -> Arc<Self> {
        Arc::new(ProgramMemory {
            budget,
            held: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            freed: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that there may be.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes that are taken now.
    pub fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Entries and room beside them, when they can be had. Dropping the future gives up.
    ///
    /// # Errors
    /// [`DatabaseError::Limit`] for more than there ever is.
    pub async fn admit(
        self: &Arc<Self>,
        wanted: &[Wanted],
        beside: u64,
    ) -> Result<Admission, DatabaseError> {
        let total = wanted.iter().fold(beside, |sum, one| sum.saturating_add(one.bytes));
        if total > self.budget {
            return Err(DatabaseError::Limit(format!(
                "this takes {total} bytes of memory, at most {} are for programs here (--program-memory)",
                self.budget
            )));
        }
        let _turn = self.turn.lock().await;
        loop {
            // Whatever is given back from here on is not missed.
            let freed = self.freed.notified();
            if let Some(admission) = self.take(wanted, beside) {
                return Ok(admission);
            }
            freed.await;
        }
    }

    /// Entries and room, if they can be had now.
    fn take(self: &Arc<Self>, wanted: &[Wanted], beside: u64) -> Option<Admission> {
        let mut held = self.lock();
        held.clock += 1;
        let now = held.clock;
        let mut missing = beside;
        let found: Vec<Option<Item>> = wanted
            .iter()
            .map(|one| match held.entries.get_mut(&one.name) {
                Some(entry) => {
                    entry.used = now;
                    Some(entry.item.clone())
                }
                None => {
                    missing += one.bytes;
                    None
                }
            })
            .collect();
        let dropped = held.make_room(self.budget.saturating_sub(missing));
        let fits = held.taken + missing <= self.budget;
        if fits {
            held.taken += missing;
        }
        drop(held);
        // Large ones are not freed while others wait for the lock.
        drop(dropped);
        fits.then(|| Admission { found, room: Room { memory: Arc::clone(self), bytes: missing } })
    }
}

impl Held {
    /// Lets go of what nobody uses, what was used longest ago first, until `most` bytes are taken.
    fn make_room(&mut self, most: u64) -> Vec<Item> {
        let mut dropped: Vec<Item> = Vec::new();
        while self.taken > most {
            let idle = self.entries.iter().filter(|(_, entry)| entry.item.is_idle());
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(name, _)| *name);
            let Some(entry) = oldest.and_then(|name| self.entries.remove(&name)) else { break };
            self.taken -= entry.bytes;
            // A plan that only this has is idle next: not kept until the end of the loop.
            match entry.item {
                plan @ Item::Plan(_) => dropped.push(plan),
                other => drop(other),
            }
        }
        dropped
    }
}

impl Room {
    /// Keeps an entry, whose bytes are part of this room.
    pub fn keep(&mut self, wanted: Wanted, item: Item) {
        let mut held = self.memory.lock();
        held.clock += 1;
        let used = held.clock;
        if held.entries.contains_key(&wanted.name) || wanted.bytes > self.bytes {
            return;
        }
        self.bytes -= wanted.bytes;
        held.entries.insert(wanted.name, Entry { item, bytes: wanted.bytes, used });
    }
}
