//! Connections enter; as many as agreed are served. The server's side.

use crate::metrics::{Counting, Metrics};
use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
        ready(Ok((Admitted { stream, _permit: permit, _counting: counting }, service)))
    }
}

/// A connection that counts as one for as long as it is open.
pub struct Admitted {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
    _counting: Counting,
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
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
