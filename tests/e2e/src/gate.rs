//! A gate between a scheduler and the API server: it sees every request, and can stop one of them in
//! the middle, or shut.
//!
//! It speaks plain HTTP to the scheduler and passes everything on with the scheduler's credentials. So a
//! test needs no luck to hit the middle of something: [`Gate::trap`] says which write is stopped, on
//! its way there or on its way back.

use crate::bed::Bed;
use http::{HeaderName, Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// A write on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The Binding.
    Bind,
    /// The eviction, which a disruption budget may refuse.
    Evict,
    /// The deletion.
    Delete,
    /// New requests, in place.
    Resize,
}

impl Write {
    fn is(self, method: &Method, path: &str) -> bool {
        match self {
            Write::Bind => path.ends_with("/binding"),
            Write::Evict => path.ends_with("/eviction"),
            Write::Delete => method == Method::DELETE && path.contains("/pods/"),
            Write::Resize => path.ends_with("/resize"),
        }
    }
}

/// Where a request is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It does not reach the API server.
    Before,
    /// The API server has carried it out, and the answer is not heard.
    After,
}

/// A gate that stands open.
pub struct Gate {
    shared: Arc<Shared>,
    folder: TempDir,
    task: JoinHandle<()>,
}

struct Shared {
    client: Client,
    shut: watch::Sender<bool>,
    trap: Mutex<Option<Trap>>,
    /// A request is in the trap.
    sprung: Notify,
    /// It may go on.
    release: Notify,
    writes: Mutex<Vec<String>>,
}

struct Trap {
    write: Write,
    moment: Moment,
    /// Such writes that pass before.
    pass: usize,
}

impl Gate {
    /// A gate that lets everything through.
    ///
    /// # Panics
    /// If there is no port for it.
    pub async fn open(bed: &Bed) -> Gate {
        let connected = deepshare_control::process::connect(Some(&bed.kubeconfig)).await;
        let shared = Arc::new(Shared {
            client: connected.expect("the scheduler's client"),
            shut: watch::Sender::new(false),
            trap: Mutex::default(),
            sprung: Notify::new(),
            release: Notify::new(),
            writes: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let folder = TempDir::new().expect("a folder for its kubeconfig");
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "gate", "cluster": { "server": format!("http://{address}") } }],
            "users": [{ "name": "gate", "user": {} }],
            "contexts": [{ "name": "gate", "context": { "cluster": "gate", "user": "gate" } }],
            "current-context": "gate",
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).expect("its file");
        let task = tokio::spawn(serve(listener, shared.clone()));
        Gate { shared, folder, task }
    }

    /// How to go through it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Stops the `nth` of such writes from now on, counted from 1.
    pub fn trap(&self, write: Write, nth: usize, moment: Moment) {
        let trap = Trap { write, moment, pass: nth.saturating_sub(1) };
        *lock(&self.shared.trap) = Some(trap);
    }

    /// Waits until the trap has stopped one.
    ///
    /// # Panics
    /// If there is none within a minute.
    pub async fn sprung(&self) {
        let sprung = self.shared.sprung.notified();
        let stopped = tokio::time::timeout(std::time::Duration::from_secs(60), sprung).await;
        stopped.expect("the write that is to be stopped comes");
    }

    /// Lets the stopped request go on, if its sender still waits for it.
    pub fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Cuts every connection, and takes no new one.
    pub fn shut(&self) {
        self.shared.shut.send_replace(true);
    }

    /// What was written through it so far, the Lease apart: method and path.
    pub fn writes(&self) -> Vec<String> {
        lock(&self.shared.writes).clone()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shut();
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        if !*shared.shut.borrow() {
            tokio::spawn(converse(stream, shared.clone()));
        }
    }
}

/// One connection, until either side ends it or the gate shuts.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let mut shut = shared.shut.subscribe();
    let service = service_fn(|request| pass(shared.clone(), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A scheduler that is killed breaks off.
        _ = connection => {}
        _ = shut.wait_for(|shut| *shut) => {}
    }
}

/// Passes one request on.
async fn pass(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, kube::Error> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    if parts.method != Method::GET && !path.contains("/leases") {
        lock(&shared.writes).push(format!("{} {path}", parts.method));
    }
    let stops = shared.stops(&parts.method, &path);
    if stops == Some(Moment::Before) {
        shared.hold().await;
    }
    const HOPS: [HeaderName; 3] = [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING];
    HOPS.iter().for_each(|name| _ = parts.headers.remove(name));
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let answer = shared.client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await?;
    if stops == Some(Moment::After) {
        shared.hold().await;
    }
    let (mut parts, body) = answer.into_parts();
    HOPS.iter().for_each(|name| _ = parts.headers.remove(name));
    Ok(Response::from_parts(parts, body))
}

impl Shared {
    /// Whether this is the request that is to be stopped.
    fn stops(&self, method: &Method, path: &str) -> Option<Moment> {
        let mut trap = lock(&self.trap);
        let set = trap.as_mut().filter(|trap| trap.write.is(method, path))?;
        if set.pass > 0 {
            set.pass -= 1;
            return None;
        }
        trap.take().map(|trap| trap.moment)
    }

    async fn hold(&self) {
        self.sprung.notify_one();
        self.release.notified().await;
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
