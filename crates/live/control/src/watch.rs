//! One task for each kind of object: what there is, then whatever changes.
//!
//! Objects go straight from the bytes of an answer into a slim type; whole objects are never built.
//! A watch that breaks is resumed where it was. One that is too old to be resumed (410) lists anew,
//! and what has vanished meanwhile is told as gone: whoever listens sees one continuous story.
//!
//! Kinds without a selector use a streaming list where the API server serves it (one request, in small
//! pieces, out of the server's cache), else pages. A *list* selector applies to lists alone: a watch with a
//! selector would report an object that leaves it as deleted, in the state before, and nobody
//! would learn how a pod ended.

mod lines;

use crate::api::{Api, Call, Refusal};
use crate::leadership::{Ended, Leadership};
use crate::metrics::Metrics;
use lines::Lines;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Objects of one page of a list.
const PAGE: usize = 500;
/// The server is asked to end a watch after so many seconds.
const WATCH_SECONDS: u32 = 300;
/// A watch on which nothing came for so long is asked for anew: its connection may be dead. Bookmarks
/// come about once a minute.
const SILENCE: Duration = Duration::from_secs(90);
/// A kind that the cluster does not know is asked for again after so long.
const UNKNOWN_KIND: Duration = Duration::from_secs(60);

/// Which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path of all of them, as in `/api/v1/pods`.
    pub path: &'static str,
    /// A field selector for lists, as in `status.phase!=Succeeded`; empty: all.
    pub list_selector: &'static str,
    /// The cluster may not know the kind: then there are none, until it does.
    pub optional: bool,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its namespace; empty for kinds that have none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// Something to know about objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta<T> {
    /// It is new or has changed, or a list repeats it.
    Applied(T),
    /// It is gone; what it was last decides nothing any more.
    Gone(Key),
    /// Everything there was has been told.
    Synced,
}

/// Where a watch is.
#[derive(Debug)]
enum Position {
    /// A list is needed.
    Nowhere,
    /// All is told up to this `resourceVersion`.
    At(String),
}

/// Why a session with the API server ended.
#[derive(Debug)]
enum Break {
    /// The position is too old to resume from.
    Expired,
    /// The server was refused, or silent.
    Refused(Refusal),
    /// Nobody listens any more.
    Unheard,
}

impl From<Refusal> for Break {
    fn from(refusal: Refusal) -> Break {
        if refusal.status == 410 { Break::Expired } else { Break::Refused(refusal) }
    }
}

/// A watch of one kind.
pub struct Watch<T, N, W> {
    told: std::marker::PhantomData<fn() -> T>,
    api: Api,
    source: Source,
    news: mpsc::Sender<N>,
    wrap: W,
    known: HashMap<String, Key>,
    /// A whole list has been told.
    told_all: bool,
    position: Position,
    /// Objects that an unfinished list has told.
    listed: HashSet<String>,
    /// The server serves streaming lists, as far as we know.
    streams: bool,
}

impl<T, N, W> Watch<T, N, W>
where
    W: Fn(Delta<T>) -> N + Send + Sync,
    T: DeserializeOwned + Send + 'static,
    N: Send + 'static,
{
    /// A watch that sends its news, wrapped, to `news`; it waits while that channel is full.
    pub fn new(api: Api, source: Source, news: mpsc::Sender<N>, wrap: W) -> Watch<T, N, W> {
        let streams = source.list_selector.is_empty();
        let (known, listed) = (HashMap::new(), HashSet::new());
        let (told, position) = (std::marker::PhantomData, Position::Nowhere);
        Watch { told, api, source, news, wrap, known, told_all: false, position, listed, streams }
    }

    /// Watches until nobody listens, or our credentials are not accepted any more, which ends
    /// `leadership`.
    pub async fn run(mut self, leadership: Leadership, metrics: Arc<Metrics>) {
        let mut failures = 0;
        loop {
            let path = self.source.path;
            match self.session().await {
                Ok(()) => failures = 0,
                Err(Break::Unheard) => return,
                Err(Break::Expired) => {
                    tracing::info!(path, "the watch is too old to be resumed: listing anew");
                    self.position = Position::Nowhere;
                    metrics.relists.add(1);
                    failures += 1;
                    // The first time at once; a server that goes on saying so is not pressed.
                    if failures > 1 {
                        let pause = Refusal::silence(String::new()).pause(failures);
                        tokio::time::sleep(pause).await;
                    }
                }
                Err(Break::Refused(refusal)) if refusal.status == 401 => {
                    leadership.end(Ended::Unauthorized(refusal.message));
                    return;
                }
                Err(Break::Refused(refusal)) if refusal.status == 404 && self.source.optional => {
                    self.listed.clear();
                    if self.finish_list(String::new()).await.is_err() {
                        return;
                    }
                    self.position = Position::Nowhere;
                    tokio::time::sleep(UNKNOWN_KIND).await;
                }
                Err(Break::Refused(refusal)) => {
                    failures += 1;
                    let hint = match refusal.status {
                        403 => "; grant `list` and `watch` (deploy/rbac.yaml)",
                        404 => "; is its custom resource definition applied?",
                        _ => "",
                    };
                    tracing::warn!(path, "cannot watch: {refusal}{hint}");
                    tokio::time::sleep(refusal.pause(failures)).await;
                }
            }
        }
    }

    /// One list or watch, until it ends.
    async fn session(&mut self) -> Result<(), Break> {
        let query = match &self.position {
            Position::At(version) => format!("resourceVersion={version}"),
            Position::Nowhere if self.streams => {
                self.listed.clear();
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned()
            }
            Position::Nowhere => return self.list().await,
        };
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&{query}",
            self.source.path
        );
        let answer = tokio::time::timeout(SILENCE, self.api.answer(&Call::get(path))).await;
        let body = match answer.map_err(|_| silent())? {
            Err(refusal)
                if matches!(self.position, Position::Nowhere)
                    && matches!(refusal.status, 400 | 422) =>
            {
                tracing::info!(path = self.source.path, "no streaming lists here: using pages");
                self.streams = false;
                return Ok(());
            }
            answer => answer?,
        };
        let mut lines = Lines::new(body);
        loop {
            let next = tokio::time::timeout(SILENCE, lines.next()).await;
            match next.map_err(|_| silent())?? {
                Some(line) => self.take(lines.text(&line)).await?,
                None => return Ok(()),
            }
        }
    }

    /// One line of a watch.
    async fn take(&mut self, line: &[u8]) -> Result<(), Break> {
        let line: WatchLine = parsed(line)?;
        match line.kind {
            "ADDED" | "MODIFIED" => {
                let version = self.applied(line.object).await?;
                self.advance(version);
            }
            "DELETED" => {
                let (key, version) = parsed::<Head>(line.object.get().as_bytes())?.split();
                self.known.remove(&key.uid);
                self.listed.remove(&key.uid);
                self.tell(Delta::Gone(key)).await?;
                self.advance(version);
            }
            "BOOKMARK" => {
                let mark: Bookmark = parsed(line.object.get().as_bytes())?;
                let ends = mark.metadata.annotations.get("k8s.io/initial-events-end");
                let ends = ends.is_some_and(|value| value == "true");
                if matches!(self.position, Position::Nowhere) && ends {
                    self.finish_list(mark.metadata.resource_version).await?;
                } else {
                    self.advance(mark.metadata.resource_version);
                }
            }
            "ERROR" => {
                let status: ErrorStatus = parsed(line.object.get().as_bytes())?;
                let refusal = Refusal::silence(status.message);
                return Err(Break::from(Refusal { status: status.code, ..refusal }));
            }
            other => tracing::debug!(other, "a line of an unknown type"),
        }
        Ok(())
    }

    /// What is told up to here need not be told again, unless a list is under way.
    fn advance(&mut self, version: String) {
        if let Position::At(at) = &mut self.position {
            *at = version;
        }
    }

    /// Lists in pages.
    async fn list(&mut self) -> Result<(), Break> {
        self.listed.clear();
        let mut token = String::new();
        loop {
            // What has ended since the first list is told with how it ended.
            let selector = if self.told_all { "" } else { self.source.list_selector };
            let selector = escaped(selector);
            let token_text = escaped(&token);
            let path = format!(
                "{}?limit={PAGE}&fieldSelector={selector}&continue={token_text}",
                self.source.path
            );
            let page: Box<RawValue> = self.api.fetch(&Call::get(path)).await?;
            let page: Page = parsed(page.get().as_bytes())?;
            for object in page.items {
                self.applied(object).await?;
            }
            if page.metadata.next.is_empty() {
                return self.finish_list(page.metadata.resource_version).await;
            }
            token = page.metadata.next;
        }
    }

    /// A list is complete: what is known and was not in it has vanished.
    async fn finish_list(&mut self, version: String) -> Result<(), Break> {
        let listed = std::mem::take(&mut self.listed);
        let mut vanished: Vec<Key> = Vec::new();
        self.known.retain(|uid, key| {
            let there = listed.contains(uid);
            if !there {
                vanished.push(key.clone());
            }
            there
        });
        vanished
            .sort_by(|a, b| (&a.namespace, &a.name, &a.uid).cmp(&(&b.namespace, &b.name, &b.uid)));
        for key in vanished {
            self.tell(Delta::Gone(key)).await?;
        }
        self.position = Position::At(version);
        self.told_all = true;
        self.tell(Delta::Synced).await
    }

    /// An object is there; returns its version.
    async fn applied(&mut self, object: &RawValue) -> Result<String, Break> {
        let (key, version) = parsed::<Head>(object.get().as_bytes())?.split();
        let slim = self.slim(object, &key);
        if matches!(self.position, Position::Nowhere) {
            self.listed.insert(key.uid.clone());
        }
        self.known.entry(key.uid.clone()).or_insert(key);
        if let Some(slim) = slim {
            self.tell(Delta::Applied(slim)).await?;
        }
        Ok(version)
    }

    /// The slim type. An object that does not have its shape is left out, and said so: it must not stop
    /// all others.
    fn slim(&self, object: &RawValue, key: &Key) -> Option<T> {
        serde_json::from_str(object.get())
            .inspect_err(|error| {
                let (path, namespace, name) = (self.source.path, &key.namespace, &key.name);
                tracing::error!(path, namespace, name, %error, "left out: not of the known shape");
            })
            .ok()
    }

    async fn tell(&self, delta: Delta<T>) -> Result<(), Break> {
        self.news.send((self.wrap)(delta)).await.map_err(|_| Break::Unheard)
    }
}

fn silent() -> Break {
    Break::Refused(Refusal::silence(format!("nothing came for {} s", SILENCE.as_secs())))
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Break> {
    serde_json::from_slice(text)
        .map_err(|error| Break::Refused(Refusal::silence(format!("unreadable: {error}"))))
}

/// The text as a value of a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[derive(Deserialize)]
struct WatchLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    resource_version: String,
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
}

impl Head {
    /// Which object, and its version.
    fn split(self) -> (Key, String) {
        let HeadMetadata { resource_version, namespace, name, uid } = self.metadata;
        (Key { namespace, name, uid }, resource_version)
    }
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

#[derive(Deserialize)]
struct ErrorStatus {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}
