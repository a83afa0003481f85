//! A socket that closes itself when its connection is no longer used or its peer does not read.

use super::activity::{Activity, Closing, UNREAD};
use super::peers::Seat;
use crate::metrics::{Counting, Metrics};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// A connection that counts as one for as long as it is open, and that is not open for longer than
/// it is used and its peer reads.
pub struct Admitted {
    stream: TcpStream,
    activity: Arc<Activity>,
    /// When it is to be closed unless something happens.
    due: Option<Pin<Box<Sleep>>>,
    /// When to give up on a peer that takes no bytes.
    stalled: Option<Pin<Box<Sleep>>>,
    metrics: Arc<Metrics>,
    _seat: Seat,
    _counting: Counting,
}

impl Admitted {
    pub(super) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        seat: Seat,
        metrics: Arc<Metrics>,
    ) -> Self {
        let counting = Counting::new(&metrics.connections);
        let (due, stalled) = (None, None);
        Admitted { stream, activity, due, stalled, metrics, _seat: seat, _counting: counting }
    }

    fn close(&self, why: Closing) -> io::Error {
        self.metrics.close(why.as_str());
        io::ErrorKind::TimedOut.into()
    }

    /// Whether its time is over. Whatever comes of it counts for nothing before a whole request has.
    fn is_over(&mut self, context: &mut Context<'_>) -> Result<(), io::Error> {
        self.activity.watch(context);
        let Some((at, why)) = self.activity.deadline() else {
            self.due = None;
            return Ok(());
        };
        if at <= Instant::now() {
            return Err(self.close(why));
        }
        let due = self.due.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if due.deadline() != at {
            due.as_mut().reset(at);
        }
        match due.as_mut().poll(context) {
            Poll::Ready(()) => Err(self.close(why)),
            Poll::Pending => Ok(()),
        }
    }

    /// Lets writing go on, unless it has been pending for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(sleep(UNREAD)));
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(self.close(Closing::Unread))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Err(over) = self.is_over(context) {
            return Poll::Ready(Err(over));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Admitted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
