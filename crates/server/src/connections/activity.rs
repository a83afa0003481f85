//! What one connection does, and until when it may stay open by that.

use futures_util::task::AtomicWaker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;
use std::time::Duration;
use tokio::time::Instant;

/// How long a peer may take no part of an answer that is ready.
pub(super) const UNREAD: Duration = Duration::from_secs(60);

/// Why a connection is closed from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// It brought no whole request in time.
    Silent,
    /// It rested for too long.
    Idle,
    /// Its peer does not read an answer.
    Unread,
    /// Its room was needed.
    Crowded,
}

impl Closing {
    /// The reason as metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Closing::Silent => "silent",
            Closing::Idle => "idle",
            Closing::Unread => "unread",
            Closing::Crowded => "crowded",
        }
    }
}

struct Pulse {
    /// Requests whose answers have not begun.
    handled: usize,
    /// Answers that are on their way.
    answered: usize,
    /// Whether any request has come.
    used: bool,
    /// Whether somebody else needs the room.
    crowded: bool,
    /// When it was accepted, or last did anything.
    at: Instant,
}

/// What one connection does.
pub(super) struct Activity {
    pulse: Mutex<Pulse>,
    /// Whoever waits for the connection's next bytes.
    reader: AtomicWaker,
    first: Duration,
    idle: Duration,
}

impl Activity {
    /// Of a connection that was accepted now, and has so long for its first request and between an
    /// answer and the next one.
    pub fn new(first: Duration, idle: Duration) -> Self {
        let pulse =
            Pulse { handled: 0, answered: 0, used: false, crowded: false, at: Instant::now() };
        Activity { pulse: Mutex::new(pulse), reader: AtomicWaker::new(), first, idle }
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task of `context` when the deadline changes.
    pub fn watch(&self, context: &Context<'_>) {
        self.reader.register(context.waker());
    }

    /// When it is to be closed, and why; not while a request is worked on.
    pub fn deadline(&self) -> Option<(Instant, Closing)> {
        let pulse = self.pulse();
        match *pulse {
            Pulse { crowded: true, at, .. } => Some((at, Closing::Crowded)),
            Pulse { handled: 1.., .. } => None,
            Pulse { answered: 1.., at, .. } => Some((at + UNREAD, Closing::Unread)),
            Pulse { used: true, at, .. } => Some((at + self.idle, Closing::Idle)),
            Pulse { at, .. } => Some((at + self.first, Closing::Silent)),
        }
    }

    /// Since when it has had nothing to do; `None` where it has.
    pub fn resting(&self) -> Option<Instant> {
        let pulse = self.pulse();
        (pulse.handled == 0 && pulse.answered == 0 && !pulse.crowded).then_some(pulse.at)
    }

    /// Has it closed, so that another has room.
    pub fn crowd_out(&self) {
        self.pulse().crowded = true;
        self.reader.wake();
    }

    fn change(&self, change: impl FnOnce(&mut Pulse)) {
        let mut pulse = self.pulse();
        change(&mut pulse);
        pulse.at = Instant::now();
        drop(pulse);
        self.reader.wake();
    }
}

/// A request that is worked on.
pub(super) struct Handling(Arc<Activity>);

impl Handling {
    /// One has come.
    pub fn new(activity: Arc<Activity>) -> Self {
        activity.change(|pulse| {
            pulse.handled += 1;
            pulse.used = true;
        });
        Handling(activity)
    }

    /// Its answer is ready to be sent.
    pub fn answer(self) -> Answering {
        self.0.change(|pulse| pulse.answered += 1);
        Answering(Arc::clone(&self.0))
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.change(|pulse| pulse.handled -= 1);
    }
}

/// An answer that is on its way.
pub(super) struct Answering(Arc<Activity>);

impl Answering {
    /// Its peer has taken some of it.
    pub fn moves(&self) {
        self.0.pulse().at = Instant::now();
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.change(|pulse| pulse.answered -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_that_of_what_it_does() {
        let (first, idle) = (Duration::from_secs(10), Duration::from_secs(30));
        let accepted = Instant::now();
        let activity = Arc::new(Activity::new(first, idle));
        let due = || activity.deadline();
        let waits = |expected: Duration, why| {
            let (at, found) = due().expect("a deadline");
            let left = at - accepted;
            found == why && left >= expected && left < expected + Duration::from_secs(5)
        };
        assert!(waits(first, Closing::Silent));
        assert_eq!(due(), due(), "bytes that are no whole request change nothing");
        let one = Handling::new(activity.clone());
        let two = Handling::new(activity.clone());
        assert_eq!((due(), activity.resting()), (None, None));
        let answer = one.answer();
        assert_eq!(due(), None, "the other is still worked on");
        drop(two);
        assert!(waits(UNREAD, Closing::Unread));
        let before = due();
        answer.moves();
        assert!(due().map(|due| due.0) > before.map(|due| due.0));
        drop(answer);
        assert!(waits(idle, Closing::Idle) && activity.resting().is_some());
        activity.crowd_out();
        assert!(waits(Duration::ZERO, Closing::Crowded));
        assert_eq!(activity.resting(), None, "it is on its way out already");
    }
}
