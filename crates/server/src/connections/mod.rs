//! Connections: the server accepts those that it has room for, and serves them for as long as they are used.
//!
//! A connection costs its peer nothing, so that whoever opens them without end must not keep others
//! out. From the moment it is accepted a connection has some seconds to bring one whole request, TLS
//! handshake included; after every answer it may rest for a while; an answer has to be read. No
//! address has more than its share, and where there is no room at all, whoever holds the most gives
//! up a connection that rests.

mod activity;
mod peers;
mod socket;
mod tracked;

use crate::metrics::Metrics;
use activity::Activity;
use axum_server::accept::Accept;
use peers::Peers;
use socket::Admitted;
use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tracked::Tracked;

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open ones.
    pub total: usize,
    /// Open ones of one address.
    pub per_address: usize,
    /// How long the first request may take, from being accepted to the end of its headers.
    pub first: Duration,
    /// How long one may rest after an answer, the next request's headers included.
    pub idle: Duration,
}

/// Lets in the connections that there is room for, and closes others at once.
#[derive(Clone)]
pub struct Admission {
    peers: Arc<Peers>,
    limits: ConnectionLimits,
    metrics: Arc<Metrics>,
}

impl Admission {
    /// Room for those.
    pub fn new(limits: ConnectionLimits, metrics: Arc<Metrics>) -> Self {
        let peers = Arc::new(Peers::new(limits.total, limits.per_address));
        Admission { peers, limits, metrics }
    }

    fn admit(&self, stream: TcpStream) -> io::Result<(Admitted, Arc<Activity>)> {
        let address = stream.peer_addr()?.ip();
        let activity = Arc::new(Activity::new(self.limits.first, self.limits.idle));
        let seat = Peers::enter(&self.peers, address, &activity).map_err(|reason| {
            self.metrics.reject(reason);
            io::Error::other("too many connections")
        })?;
        // Answers are written whole: waiting to fill a packet would only delay them.
        stream.set_nodelay(true)?;
        let socket = Admitted::new(stream, activity.clone(), seat, self.metrics.clone());
        Ok((socket, activity))
    }
}

impl<S> Accept<TcpStream, S> for Admission {
    type Stream = Admitted;
    type Service = Tracked<S>;
    type Future = Ready<io::Result<(Admitted, Tracked<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let admitted = self.admit(stream);
        ready(admitted.map(|(socket, activity)| (socket, Tracked::new(service, activity))))
    }
}
