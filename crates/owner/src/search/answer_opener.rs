//! Opens an answer piece by piece as it comes, without a thread that waits. Owner only.

use super::answer_reader::Input;
use super::directory::SegmentDirectory;
use super::flood::Flood;
use super::form::Runner;
use super::open::OpenOptions;
use super::owner::Owner;
use super::pieces::Pieces;
use super::query::Query;
use super::rank::Retrieval;
use super::score::Opened;
use super::selection::Selection;
use crate::error::Result;
use ciphervec_he_secret::wire::{Kind, Reader};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Opens one answer: what has come of it is opened, and what cannot be among the hits is forgotten.
pub struct AnswerOpener {
    pieces: Arc<Pieces>,
    opening: Pin<Box<dyn Future<Output = Result<Opened>>>>,
    /// What came of it, once nothing more is read.
    opened: Option<Result<Opened>>,
}

impl AnswerOpener {
    /// Of the segments that `directory`, a [`SegmentDirectory::snapshot`], knows; the rest is as in [`OpenOptions`].
    pub fn new(
        (owner, query): (Arc<Owner>, Arc<Query>),
        directory: SegmentDirectory,
        retrieval: Retrieval,
        selection: Option<Arc<Selection>>,
        flood: Option<Arc<Flood>>,
        run: Runner<'static>,
    ) -> Self {
        let pieces = Arc::new(Pieces::default());
        let input = Arc::clone(&pieces);
        let opening = Box::pin(async move {
            let (selection, flood) = (selection.as_deref(), flood.as_deref());
            let wanted = OpenOptions { retrieval, selection, newer: &[], flood };
            let input = Input::Pieces(&input);
            owner.open_with(&query, input, &directory, &wanted, run).await
        });
        AnswerOpener { pieces, opening, opened: None }
    }

    /// The next bytes: as much is opened as can be. What is wrong is said at the end, when it is known whether the answer is
    /// damaged.
    pub fn write(&mut self, piece: &[u8]) {
        if self.opened.is_none() {
            self.pieces.push(piece);
            self.go_on();
        }
    }

    /// The hits; what was written is the whole answer.
    ///
    /// # Errors
    /// As [`Owner::open_stream`].
    pub fn finish(mut self) -> Result<Opened> {
        self.pieces.end();
        if self.opened.is_none() {
            self.go_on();
        }
        // Nothing is waited for after the end.
        let waits = || Reader::new(Kind::Response.as_str(), &[]).error("it has no end").into();
        self.opened.unwrap_or_else(|| Err(waits()))
    }

    fn go_on(&mut self) {
        let context = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(opened) = self.opening.as_mut().poll(context) {
            self.opened = Some(opened);
        }
    }
}
