//! Connection limit: connections enter, as many as agreed are served. Server side.

use crate::metrics::{Counting, Metrics};
use axum_server::accept::Accept;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// How long a peer may take no bytes of its answer.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);

/// Lets in as many connections as there is room for, and closes others at once.
#[derive(Clone)]
pub struct Admission {
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Admission {
    /// Room for that many.
    pub fn new(connections: usize, metrics: Arc<Metrics>) -> Self {
        let room = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        Admission { room, metrics }
    }
}

impl<S> Accept<TcpStream, S> for Admission {
    type Stream = Admitted;
    type Service = S;
    type Future = Ready<io::Result<(Admitted, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            self.metrics.reject("connections");
            return ready(Err(io::Error::other("too many connections")));
        };
        // Answers are written whole: waiting to fill a packet would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            return ready(Err(error));
        }
        let counting = Counting::new(&self.metrics.connections);
        ready(Ok((
            Admitted { stream, stalled: None, _permit: permit, _counting: counting },
            service,
        )))
    }
}

/// A connection that counts as one for as long as it is open, and that is not open for longer than
/// its peer reads.
pub struct Admitted {
    stream: TcpStream,
    /// When to give up on a peer that takes no bytes.
    stalled: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
    _counting: Counting,
}

impl Admitted {
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
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_PATIENCE)));
        sleep.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Admitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
