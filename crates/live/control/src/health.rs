//! `/healthz`, `/readyz` and `/metrics`, for whoever probes and scrapes.
//!
//! Alive means that the engine loop turned lately, or waits for its Lease. Ready means that this process leads
//! and knows the cluster, or stands by.

use crate::leadership::Leadership;
use crate::metrics::Metrics;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// An engine loop that has not turned for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);
/// A client that sends no request for so long is cut off.
const SLOW_CLIENT: Duration = Duration::from_secs(10);
/// Connections served at once.
const CONNECTIONS: usize = 32;

/// What the probes look at.
pub struct Health {
    leadership: Leadership,
    metrics: Arc<Metrics>,
    origin: Instant,
    /// Milliseconds from `origin` of the last turn of the engine loop, plus 1; 0: it has not begun.
    turned: AtomicU64,
    /// As `turned`, of the first turn with the whole cluster known.
    synced: AtomicU64,
}

impl Health {
    /// Health of a process that has just started.
    pub fn new(leadership: Leadership, metrics: Arc<Metrics>) -> Health {
        let (turned, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        Health { leadership, metrics, origin: Instant::now(), turned, synced }
    }

    /// The engine loop turned.
    pub fn turned(&self) {
        self.turned.store(self.millis() + 1, Ordering::Relaxed);
    }

    /// The cluster is known.
    pub fn synced(&self) {
        self.synced.store(self.millis() + 1, Ordering::Relaxed);
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// What is wrong, if the process should be restarted.
    fn sick(&self) -> Option<String> {
        let turned = self.turned.load(Ordering::Relaxed).checked_sub(1)?;
        let silent = Duration::from_millis(self.millis().saturating_sub(turned));
        (silent > HANGS_AFTER)
            .then(|| format!("the engine loop has not turned for {} s\n", silent.as_secs()))
    }

    /// What the process still waits for.
    fn unready(&self) -> Option<&'static str> {
        let waits = self.synced.load(Ordering::Relaxed) == 0;
        (self.leadership.holds() && waits).then_some("waiting for the lists of the cluster\n")
    }

    fn answer(&self, method: &Method, path: &str) -> (StatusCode, &'static str, String) {
        const TEXT: &str = "text/plain; charset=utf-8";
        let probe = |trouble: Option<String>| match trouble {
            None => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, trouble),
        };
        if method != Method::GET {
            return (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is served\n".to_owned());
        }
        match path {
            "/healthz" => probe(self.sick()),
            "/readyz" => probe(self.unready().map(str::to_owned)),
            "/metrics" => {
                let page = self.metrics.page(self.leadership.holds(), self.leadership.epoch());
                (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page)
            }
            _ => {
                let all = "there are /healthz, /readyz and /metrics\n".to_owned();
                (StatusCode::NOT_FOUND, TEXT, all)
            }
        }
    }
}

/// Binds the address.
///
/// # Errors
/// What the system said, and what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("cannot listen on {address}: {error}; set `listen` to another"))
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener, health: Arc<Health>) {
    let permits = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, as it were: that may pass.
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        let health = health.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(move |request: Request<Incoming>| {
                let (status, kind, text) = health.answer(request.method(), request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                let kind = header::HeaderValue::from_static(kind);
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                async move { Ok::<_, Infallible>(response) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(SLOW_CLIENT)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = served.await {
                tracing::debug!(%error, "a probe or scrape broke off");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(health: &Health, path: &str) -> u16 {
        health.answer(&Method::GET, path).0.as_u16()
    }

    #[test]
    fn a_standby_is_ready_and_a_leader_once_it_knows_the_cluster() {
        let leadership = Leadership::new();
        let health = Health::new(leadership.clone(), Arc::default());
        assert_eq!(status(&health, "/readyz"), 200);
        leadership.extend(leadership.now() + Duration::from_secs(60), 1);
        assert_eq!(status(&health, "/readyz"), 503);
        health.synced();
        assert_eq!(status(&health, "/readyz"), 200);
        assert!(health.answer(&Method::GET, "/metrics").2.contains("deepshare_leader 1\n"));
    }

    #[test]
    fn a_loop_that_hangs_is_sick_and_one_that_has_not_begun_is_not() {
        let mut health = Health::new(Leadership::new(), Arc::default());
        assert_eq!(status(&health, "/healthz"), 200);
        health.turned();
        assert_eq!(status(&health, "/healthz"), 200);
        let earlier = health.origin.checked_sub(HANGS_AFTER + Duration::from_secs(5));
        health.origin = earlier.expect("the machine has been up for a minute");
        assert_eq!(status(&health, "/healthz"), 503);
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        let health = Health::new(Leadership::new(), Arc::default());
        assert_eq!(status(&health, "/debug"), 404);
        assert_eq!(health.answer(&Method::POST, "/healthz").0.as_u16(), 405);
    }
}
