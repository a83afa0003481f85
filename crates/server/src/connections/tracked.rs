//! A service that notes the requests of one connection, and when their answers are being read.

use super::activity::{Activity, Answering, Handling};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use http_body::{Frame, SizeHint};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// A service that notes what its connection does.
#[derive(Clone)]
pub struct Tracked<S> {
    service: S,
    activity: Arc<Activity>,
}

impl<S> Tracked<S> {
    pub(super) fn new(service: S, activity: Arc<Activity>) -> Self {
        Tracked { service, activity }
    }
}

impl<S, B> Service<Request<B>> for Tracked<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let handling = Handling::new(self.activity.clone());
        let answered = self.service.call(request);
        Box::pin(async move {
            let answer = answered.await?;
            let answering = handling.answer();
            Ok(answer.map(|body| Body::new(Watched { body, answering })))
        })
    }
}

/// A body that notes when its peer takes some of it.
struct Watched {
    body: Body,
    answering: Answering,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.answering.moves();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
