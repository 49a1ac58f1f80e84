//! Writes that are refused, throttled, or fenced off.

use crate::server::{self, Answer, Asked};
use deepshare_control::api::Api;
use deepshare_control::leadership::{Ended, Leadership};
use deepshare_control::writes::{WriterContext, Writers};
use deepshare_engine::BindFailure;
use deepshare_kube_index::{Action, ClaimRef, Outcome, PodRef};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

fn pod(uid: &str) -> PodRef {
    PodRef { namespace: "ns".into(), name: format!("pod-{uid}"), uid: uid.into() }
}

fn bind(uid: &str) -> Action {
    Action::Bind { pod: pod(uid), node: "n".into(), annotations: BTreeMap::new() }
}

fn claim(uid: &str) -> ClaimRef {
    ClaimRef { namespace: "ns".into(), name: format!("claim-{uid}"), uid: uid.into() }
}

fn select(uid: &str, node: Option<&str>) -> Action {
    Action::SelectNode { claim: claim(uid), node: node.map(str::to_owned) }
}

fn evict(force_after_s: Option<u32>) -> Action {
    Action::Evict { pod: pod("1"), grace_s: 3, message: "for another".into(), force_after_s }
}

fn writers(client: kube::Client) -> (Writers, mpsc::UnboundedReceiver<Outcome>, Leadership) {
    let leadership = Leadership::new();
    leadership.extend(leadership.now() + Duration::from_secs(600), 1);
    let context = WriterContext {
        api: Api::new(client),
        leadership: leadership.clone(),
        metrics: Default::default(),
        scheduler: "deepshare".into(),
        identity: "me".into(),
    };
    let (outcomes, ended) = mpsc::unbounded_channel();
    (Writers::start(context, |_| 4, outcomes), ended, leadership)
}

async fn next(outcomes: &mut mpsc::UnboundedReceiver<Outcome>) -> Outcome {
    let next = tokio::time::timeout(Duration::from_secs(20), outcomes.recv()).await;
    next.expect("nothing came of it").expect("the writers ended")
}

fn budget() -> Answer {
    let details = json!({ "causes": [{ "reason": "DisruptionBudget" }] });
    Answer::of(429, json!({ "message": "needs 1 healthy pod", "details": details }))
}

fn asked_for<'a>(asked: &'a [Asked], end: &str) -> Vec<&'a Asked> {
    asked.iter().filter(|one| one.path.ends_with(end)).collect()
}

#[tokio::test]
async fn a_binding_is_tried_once_and_each_refusal_is_told_for_what_it_is() {
    let (client, asked) = server::start(|asked| {
        let status = asked.path.split("pod-").nth(1).unwrap()[..3].parse().unwrap();
        Answer::of(status, json!({ "message": "because" }))
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    for (status, expected) in [
        (201, None),
        (404, Some(BindFailure::Conflict)),
        (409, Some(BindFailure::Conflict)),
        (403, Some(BindFailure::Permanent)),
        (422, Some(BindFailure::Permanent)),
        (429, Some(BindFailure::Transient)),
        (500, Some(BindFailure::Transient)),
    ] {
        writers.submit(bind(&status.to_string()));
        let told = match next(&mut outcomes).await {
            Outcome::Bound { .. } => None,
            Outcome::BindFailed { failure, .. } => Some(failure),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected, "{status}");
    }
    assert_eq!(asked.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn a_node_that_cannot_be_written_on_a_claim_is_told_for_what_it_is() {
    let (client, asked) = server::start(|asked| {
        let status = asked.path.split("claim-").nth(1).unwrap().parse().unwrap();
        Answer::of(status, json!({ "message": "because" }))
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    for (status, expected) in [
        ("404", BindFailure::Conflict),
        ("409", BindFailure::Conflict),
        ("403", BindFailure::Permanent),
        ("500", BindFailure::Transient),
    ] {
        writers.submit(select(status, Some("n")));
        let message = "because".to_owned();
        let told = Outcome::SelectionFailed { claim: claim(status), failure: expected, message };
        assert_eq!(next(&mut outcomes).await, told);
    }
    let asked = asked.lock().unwrap();
    let outlasted = asked_for(&asked, "claim-500").len();
    assert_eq!((asked.len(), outlasted), (8, 5), "trouble is outlasted, refusals are not");
    assert_eq!(asked[0].method, "PATCH");
    assert_eq!(asked[0].path, "/api/v1/namespaces/ns/persistentvolumeclaims/claim-404");
    let annotations = json!({ "volume.kubernetes.io/selected-node": "n" });
    let expected = json!({ "metadata": { "uid": "404", "annotations": annotations } });
    assert_eq!(asked[0].body, expected);
}

#[tokio::test]
async fn what_is_asked_of_a_claim_is_done_in_order_and_what_is_out_of_date_is_not() {
    let (client, asked) = server::start(|_| Answer::of(200, json!({}))).await;
    let (writers, mut outcomes, _) = writers(client);
    for node in [Some("a"), None, Some("b")] {
        writers.submit(select("1", node));
    }
    // Nothing is told of a claim that could be written.
    let written = loop {
        let nodes: Vec<_> = asked.lock().unwrap().iter().map(|one| one.body.clone()).collect();
        let note = "/metadata/annotations/volume.kubernetes.io~1selected-node";
        let nodes: Vec<_> = nodes.iter().map(|body| body.pointer(note).cloned()).collect();
        if nodes.last() == Some(&Some("b".into())) {
            break nodes;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(written, [Some("a".into()), Some("b".into())]);
    assert!(outcomes.try_recv().is_err());
}

#[tokio::test]
async fn the_condition_comes_before_the_eviction_and_trouble_is_outlasted() {
    let calls = AtomicUsize::new(0);
    let (client, asked) = server::start(move |asked| {
        let trouble = asked.path.ends_with("/eviction") && calls.fetch_add(1, Ordering::SeqCst) < 2;
        Answer::of(if trouble { 500 } else { 200 }, json!({}))
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    writers.submit(evict(None));
    assert_eq!(next(&mut outcomes).await, Outcome::Evicting { pod: pod("1") });
    let asked = asked.lock().unwrap();
    let ends: Vec<&str> = asked.iter().map(|one| one.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(ends, ["status", "eviction", "eviction", "eviction"]);
    let condition = &asked[0].body["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["reason"], "PreemptionByScheduler");
    assert_eq!(asked[1].body["deleteOptions"]["gracePeriodSeconds"], 3);
}

#[tokio::test]
async fn a_budget_that_may_not_be_overridden_refuses_after_a_second_try() {
    let (client, asked) = server::start(|asked| match asked.path.ends_with("/eviction") {
        true => budget(),
        false => Answer::of(200, json!({})),
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    writers.submit(evict(None));
    let message = "needs 1 healthy pod".to_owned();
    assert_eq!(next(&mut outcomes).await, Outcome::EvictionRefused { pod: pod("1"), message });
    let asked = asked.lock().unwrap();
    assert_eq!(asked_for(&asked, "/eviction").len(), 2);
    assert!(asked.iter().all(|one| one.method != "DELETE"));
}

#[tokio::test]
async fn a_budget_that_may_be_overridden_is_asked_until_then() {
    let (client, asked) = server::start(|asked| match asked.path.ends_with("/eviction") {
        true => budget(),
        false => Answer::of(200, json!({})),
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    writers.submit(evict(Some(2)));
    assert_eq!(next(&mut outcomes).await, Outcome::Evicting { pod: pod("1") });
    let asked = asked.lock().unwrap();
    assert!(asked_for(&asked, "/eviction").len() >= 2);
    let last = asked.last().unwrap();
    assert_eq!(last.method, "DELETE");
    assert_eq!(last.body["preconditions"]["uid"], "1");
    assert_eq!(last.body["gracePeriodSeconds"], 3);
}

#[tokio::test]
async fn a_deletion_does_not_wait_for_a_budget_that_is_still_being_asked() {
    let (client, _) = server::start(|asked| match asked.path.ends_with("/eviction") {
        true => budget(),
        false => Answer::of(200, json!({})),
    })
    .await;
    let (writers, mut outcomes, _) = writers(client);
    writers.submit(evict(Some(3_600)));
    tokio::time::sleep(Duration::from_millis(300)).await;
    writers.submit(Action::Delete {
        pod: pod("1"),
        orphaned: false,
        grace_s: 0,
        message: "node lost".into(),
    });
    assert_eq!(next(&mut outcomes).await, Outcome::Evicting { pod: pod("1") });
}

#[tokio::test]
async fn a_pod_that_is_gone_or_another_counts_as_evicted() {
    for status in [404, 409] {
        let (client, _) = server::start(move |_| Answer::of(status, json!({}))).await;
        let (writers, mut outcomes, _) = writers(client);
        writers.submit(evict(None));
        assert_eq!(next(&mut outcomes).await, Outcome::Evicting { pod: pod("1") });
    }
}

#[tokio::test]
async fn nothing_is_written_once_the_leadership_is_over() {
    let (client, asked) = server::start(|_| Answer::of(201, json!({}))).await;
    let (writers, mut outcomes, leadership) = writers(client);
    writers.submit(bind("1"));
    assert_eq!(next(&mut outcomes).await, Outcome::Bound { pod: pod("1") });
    leadership.extend(leadership.now(), 1);
    for uid in ["2", "3"] {
        writers.submit(bind(uid));
    }
    writers.submit(evict(None));
    writers.submit(select("4", Some("n")));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert!(outcomes.try_recv().is_err(), "and nothing is told");
}

#[tokio::test]
async fn credentials_that_are_not_accepted_end_the_leadership() {
    let (client, _) = server::start(|_| Answer::of(401, json!({ "message": "expired" }))).await;
    let (writers, _outcomes, leadership) = writers(client);
    writers.submit(bind("1"));
    assert_eq!(leadership.ended().await, Ended::Unauthorized("expired".to_owned()));
}

#[tokio::test]
async fn a_throttled_status_waits_as_long_as_the_server_asks() {
    let calls = AtomicUsize::new(0);
    let (client, asked) = server::start(move |_| {
        let mut answer = Answer::of(200, json!({}));
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            answer = Answer::of(429, "Too many requests");
            answer.retry_after = Some(1);
        }
        answer
    })
    .await;
    let (writers, _outcomes, _) = writers(client);
    writers.submit(Action::Explain { pod: pod("1"), reason: "Quota".into(), message: "m".into() });
    let at = loop {
        let at: Vec<_> = asked.lock().unwrap().iter().map(|one| one.at).collect();
        if at.len() >= 2 {
            break at;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(at[1] - at[0] >= Duration::from_secs(1), "it did not wait");
}
