//! A server on loopback that answers as a script says: for faults that no real API server can be made
//! to show on demand.

use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub body: serde_json::Value,
    pub at: Instant,
}

/// What to answer.
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<u64>,
    /// Pieces of the body; the connection stays open until the sender is dropped.
    pub pieces: mpsc::UnboundedReceiver<String>,
}

impl Answer {
    /// A whole body at once.
    pub fn of(status: u16, body: impl ToString) -> Answer {
        let (piece, pieces) = mpsc::unbounded_channel();
        piece.send(body.to_string()).unwrap();
        Answer { status, retry_after: None, pieces }
    }

    /// A body that comes in pieces.
    pub fn stream() -> (mpsc::UnboundedSender<String>, Answer) {
        let (piece, pieces) = mpsc::unbounded_channel();
        (piece, Answer { status: 200, retry_after: None, pieces })
    }
}

struct Pieces(mpsc::UnboundedReceiver<String>);

impl futures_util::Stream for Pieces {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.poll_recv(context);
        next.map(|piece| piece.map(|piece| Ok(Frame::data(Bytes::from(piece)))))
    }
}

/// Starts a server; returns a client of it and what it was asked so far.
pub async fn start(
    script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (kube::Client, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let (script, book) = (Arc::new(script), asked.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (script, book) = (script.clone(), book.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (script, book) = (script.clone(), book.clone());
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let asked = Asked {
                        method: parts.method.to_string(),
                        path: parts.uri.path_and_query().unwrap().to_string(),
                        body: serde_json::from_slice(&body).unwrap_or_default(),
                        at: Instant::now(),
                    };
                    book.lock().unwrap().push(asked.clone());
                    let answer = script(&asked);
                    let mut response = Response::builder().status(answer.status);
                    if let Some(seconds) = answer.retry_after {
                        response = response.header("retry-after", seconds);
                    }
                    Ok::<_, Infallible>(
                        response.body(StreamBody::new(Pieces(answer.pieces))).unwrap(),
                    )
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let mut config = kube::Config::new(url.parse().unwrap());
    config.default_retry = false;
    (kube::Client::try_from(config).unwrap(), asked)
}
