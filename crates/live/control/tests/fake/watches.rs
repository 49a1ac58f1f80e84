//! Watches that break off, are too old, or come in odd pieces.

use crate::server::{self, Answer};
use deepshare_control::api::Api;
use deepshare_control::leadership::{Ended, Leadership};
use deepshare_control::watch::{Delta, Source, Watch};
use serde::Deserialize;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

#[derive(Debug, Deserialize)]
struct Slim {
    metadata: Meta,
    #[serde(default)]
    size: u32,
}

#[derive(Debug, Deserialize)]
struct Meta {
    name: String,
}

fn object(name: &str, version: u32, size: u32) -> serde_json::Value {
    let metadata = json!({
        "namespace": "ns", "name": name, "uid": format!("u-{name}"),
        "resourceVersion": version.to_string(),
    });
    json!({ "metadata": metadata, "size": size })
}

fn event(kind: &str, object: &serde_json::Value) -> String {
    json!({ "type": kind, "object": object }).to_string() + "\n"
}

fn end_of_list(version: u32) -> String {
    let metadata = json!({
        "resourceVersion": version.to_string(),
        "annotations": { "k8s.io/initial-events-end": "true" },
    });
    event("BOOKMARK", &json!({ "metadata": metadata }))
}

fn told(delta: Delta<Slim>) -> String {
    match delta {
        Delta::Applied(slim) => format!("{}={}", slim.metadata.name, slim.size),
        Delta::Gone(key) => format!("{} gone", key.name),
        Delta::Synced => "synced".to_owned(),
    }
}

/// Starts a watch of everything; returns what it tells.
fn watch(
    client: kube::Client,
    list_selector: &'static str,
) -> (mpsc::Receiver<String>, Leadership) {
    watch_source(client, Source { path: "/api/v1/things", list_selector, optional: false })
}

fn watch_source(client: kube::Client, source: Source) -> (mpsc::Receiver<String>, Leadership) {
    let (news, told_news) = mpsc::channel(64);
    let leadership = Leadership::new();
    let watch = Watch::new(Api::new(client), source, news, told);
    tokio::spawn(watch.run(leadership.clone(), Default::default()));
    (told_news, leadership)
}

async fn take(news: &mut mpsc::Receiver<String>, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        let next = tokio::time::timeout(std::time::Duration::from_secs(20), news.recv()).await;
        all.push(next.expect("the watch went silent").expect("the watch ended"));
    }
    all
}

#[tokio::test]
async fn a_streaming_list_in_odd_pieces_is_one_story_and_a_broken_watch_resumes_where_it_was() {
    let calls = AtomicUsize::new(0);
    let held = Mutex::new(Vec::new());
    let (client, asked) = server::start(move |_| {
        let (piece, answer) = Answer::stream();
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => {
                let text = event("ADDED", &object("a", 5, 1)) + &end_of_list(7);
                let text = text + &event("MODIFIED", &object("a", 9, 2));
                // Cut anywhere, and broken off in the middle of a line.
                for part in text.as_bytes().chunks(17) {
                    piece.send(String::from_utf8(part.to_vec()).unwrap()).unwrap();
                }
                piece.send("{\"type\":\"MODIF".to_owned()).unwrap();
            }
            _ => {
                piece.send(event("DELETED", &object("a", 12, 3))).unwrap();
                held.lock().unwrap().push(piece);
            }
        }
        answer
    })
    .await;
    let (mut news, _) = watch(client, "");
    assert_eq!(take(&mut news, 4).await, ["a=1", "synced", "a=2", "a gone"]);
    let asked = asked.lock().unwrap();
    assert!(asked[0].path.contains("sendInitialEvents=true"), "{}", asked[0].path);
    assert!(asked[1].path.ends_with("resourceVersion=9"), "{}", asked[1].path);
}

#[tokio::test]
async fn after_a_410_what_vanished_meanwhile_is_told_as_gone() {
    let calls = AtomicUsize::new(0);
    let held = Mutex::new(Vec::new());
    let (client, _) = server::start(move |_| {
        let (piece, answer) = Answer::stream();
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => {
                for name in ["a", "b", "c"] {
                    piece.send(event("ADDED", &object(name, 1, 1))).unwrap();
                }
                piece.send(end_of_list(4)).unwrap();
                let status = json!({ "code": 410, "message": "too old resource version" });
                piece.send(event("ERROR", &status)).unwrap();
            }
            1 => {
                piece.send(event("ADDED", &object("b", 8, 2))).unwrap();
                piece.send(end_of_list(9)).unwrap();
                held.lock().unwrap().push(piece);
            }
            _ => {}
        }
        answer
    })
    .await;
    let (mut news, _) = watch(client, "");
    assert_eq!(take(&mut news, 4).await, ["a=1", "b=1", "c=1", "synced"]);
    let rest = take(&mut news, 4).await;
    assert_eq!(rest, ["b=2", "a gone", "c gone", "synced"]);
}

#[tokio::test]
async fn without_streaming_lists_pages_are_used_and_a_selector_is_for_lists_only() {
    let held = Mutex::new(Vec::new());
    let (client, asked) = server::start(move |asked| {
        if asked.path.contains("sendInitialEvents") {
            return Answer::of(422, json!({ "message": "sendInitialEvents is forbidden" }));
        }
        if asked.path.contains("watch=true") {
            let (piece, answer) = Answer::stream();
            held.lock().unwrap().push(piece);
            return answer;
        }
        let next = if asked.path.contains("continue=t%2F1") { "" } else { "t/1" };
        let name = if next.is_empty() { "b" } else { "a" };
        let metadata = json!({ "resourceVersion": "30", "continue": next });
        Answer::of(200, json!({ "metadata": metadata, "items": [object(name, 3, 1)] }))
    })
    .await;
    for selector in ["", "status.phase!=Failed"] {
        let (mut news, _) = watch(client.clone(), selector);
        assert_eq!(take(&mut news, 3).await, ["a=1", "b=1", "synced"]);
    }
    let asked = loop {
        let asked: Vec<String> = asked.lock().unwrap().iter().map(|one| one.path.clone()).collect();
        // The last watch is asked for after `synced` is told.
        if asked.last().is_some_and(|path| path.contains("watch=true")) {
            break asked;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let lists = asked.iter().filter(|path| path.contains("status.phase%21%3DFailed"));
    assert_eq!(lists.count(), 2, "{asked:#?}");
    let watches = asked.iter().filter(|path| path.ends_with("&resourceVersion=30"));
    assert_eq!(watches.count(), 2, "{asked:#?}");
}

#[tokio::test]
async fn one_object_of_another_shape_does_not_stop_the_others() {
    let held = Mutex::new(Vec::new());
    let (client, _) = server::start(move |_| {
        let (piece, answer) = Answer::stream();
        let mut odd = object("odd", 1, 1);
        odd["size"] = "large".into();
        piece.send(event("ADDED", &odd) + &event("ADDED", &object("a", 2, 1))).unwrap();
        piece.send(end_of_list(4)).unwrap();
        held.lock().unwrap().push(piece);
        answer
    })
    .await;
    let (mut news, _) = watch(client, "");
    assert_eq!(take(&mut news, 2).await, ["a=1", "synced"]);
}

#[tokio::test]
async fn credentials_that_are_not_accepted_end_the_leadership() {
    let (client, _) = server::start(|_| Answer::of(401, json!({ "message": "who are you" }))).await;
    let (_news, leadership) = watch(client, "");
    assert_eq!(leadership.ended().await, Ended::Unauthorized("who are you".to_owned()));
}

#[tokio::test]
async fn of_a_kind_that_the_cluster_does_not_know_there_are_none() {
    let (client, _) = server::start(|_| Answer::of(404, "404 page not found")).await;
    let source = Source { path: "/apis/x/v1/groups", list_selector: "", optional: true };
    let (mut news, _) = watch_source(client, source);
    assert_eq!(take(&mut news, 1).await, ["synced"]);
}
