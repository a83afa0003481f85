//! Pieces: bytes of an answer are handed over as they come; whoever reads them gets what there is, or waits. Owner only.
//!
//! Where there are no threads, nothing can stop in the middle of reading until more has come. What reads an answer is a future
//! there, which goes on from where it stopped each time that a piece has come.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that came and were not yet read.
#[derive(Default)]
pub struct Pieces(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Of these.
    read: usize,
    ended: bool,
}

impl Pieces {
    /// The next bytes.
    pub fn push(&self, piece: &[u8]) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read = std::mem::take(&mut waiting.read);
        waiting.bytes.drain(..read);
        waiting.bytes.extend_from_slice(piece);
    }

    /// Nothing more comes.
    pub fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
    }

    /// Moves so many bytes, fewer at the end; whether they had come.
    pub(super) fn take(&self, count: usize, into: &mut Vec<u8>) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = waiting.bytes.len() - waiting.read;
        if left < count && !waiting.ended {
            return false;
        }
        let end = waiting.read + count.min(left);
        into.extend_from_slice(&waiting.bytes[waiting.read..end]);
        waiting.read = end;
        true
    }
}

/// What a future gives that has nothing to wait for; `None` if it waits.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_come_is_waited_for_until_the_end() {
        let (pieces, mut out) = (Pieces::default(), Vec::new());
        pieces.push(b"abc");
        assert!(pieces.take(2, &mut out) && !pieces.take(2, &mut out));
        pieces.push(b"de");
        assert!(pieces.take(2, &mut out) && !pieces.take(2, &mut out));
        pieces.end();
        assert!(pieces.take(2, &mut out) && pieces.take(2, &mut out));
        assert_eq!(out, b"abcde");
    }
}
