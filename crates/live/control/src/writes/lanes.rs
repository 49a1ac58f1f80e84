//! Order: what is asked of one pod, claim or tenant is done one after the other.
//!
//! What is out of date before its turn is dropped: of two explanations the later one counts, and a
//! pod that is to be bound needs none.

use deepshare_kube_index::Action;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// Whom an action is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A pod, by UID.
    Pod(String),
    /// A volume claim, by UID.
    Claim(String),
    /// A TenantQuota, by name.
    Tenant(String),
}

/// An action whose turn it is.
#[derive(Debug)]
pub struct Turn {
    /// The action.
    pub action: Action,
    /// Notified when an action arrives that must not wait for this one to succeed.
    pub hurry: Arc<Notify>,
}

/// Actions that wait for others on the same subject. A subject is in the table while one of its
/// actions is being carried out.
#[derive(Default)]
pub struct Lanes {
    lanes: HashMap<Subject, Lane>,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Action>,
    /// Of the action that is being carried out.
    hurry: Arc<Notify>,
}

impl Subject {
    /// Whom the action is about.
    pub fn of(action: &Action) -> Subject {
        match action {
            Action::Bind { pod, .. }
            | Action::Evict { pod, .. }
            | Action::Delete { pod, .. }
            | Action::Resize { pod, .. }
            | Action::Annotate { pod, .. }
            | Action::Explain { pod, .. }
            | Action::Nominate { pod, .. }
            | Action::Announce { pod, .. } => Subject::Pod(pod.uid.clone()),
            Action::SelectNode { claim, .. } => Subject::Claim(claim.uid.clone()),
            Action::TenantStatus { name, .. } => Subject::Tenant(name.clone()),
        }
    }
}

/// True if the newer action makes the older one, which has not begun, pointless.
fn supersedes(newer: &Action, older: &Action) -> bool {
    matches!(
        (newer, older),
        (Action::SelectNode { .. }, Action::SelectNode { .. })
            | (Action::Explain { .. }, Action::Explain { .. })
            | (Action::Nominate { .. }, Action::Nominate { .. })
            | (Action::TenantStatus { .. }, Action::TenantStatus { .. })
            | (
                Action::Bind { .. } | Action::Delete { .. },
                Action::Explain { .. } | Action::Nominate { .. },
            )
    )
}

impl Lanes {
    /// Takes an action in. Returns it if it can begin now; [`Lanes::done`] must follow.
    pub fn push(&mut self, action: Action) -> Option<Turn> {
        let subject = Subject::of(&action);
        let Some(lane) = self.lanes.get_mut(&subject) else {
            let hurry = self.lanes.entry(subject).or_default().hurry.clone();
            return Some(Turn { action, hurry });
        };
        if let Action::Delete { .. } = action {
            lane.hurry.notify_one();
        }
        lane.waiting.retain(|older| !supersedes(&action, older));
        lane.waiting.push_back(action);
        None
    }

    /// The subject's action has ended. Returns the next one, which begins now.
    pub fn done(&mut self, subject: &Subject) -> Option<Turn> {
        let next = self.lanes.get_mut(subject).and_then(|lane| {
            let action = lane.waiting.pop_front()?;
            lane.hurry = Arc::default();
            Some(Turn { action, hurry: lane.hurry.clone() })
        });
        if next.is_none() {
            self.lanes.remove(subject);
        }
        next
    }

    /// How many subjects have an action in flight.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// True if nothing is being carried out.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_kube_index::PodRef;
    use std::collections::BTreeMap;

    fn pod(uid: &str) -> PodRef {
        PodRef { namespace: "ns".to_owned(), name: "p".to_owned(), uid: uid.to_owned() }
    }

    fn explain(message: &str) -> Action {
        Action::Explain { pod: pod("1"), reason: "Quota".to_owned(), message: message.to_owned() }
    }

    fn bind(uid: &str) -> Action {
        Action::Bind { pod: pod(uid), node: "n".to_owned(), annotations: BTreeMap::new() }
    }

    fn action(turn: Option<Turn>) -> Option<Action> {
        turn.map(|turn| turn.action)
    }

    #[test]
    fn what_is_asked_of_one_pod_is_done_in_order_and_others_do_not_wait() {
        let mut lanes = Lanes::default();
        assert_eq!(action(lanes.push(bind("1"))), Some(bind("1")));
        let delete =
            Action::Delete { pod: pod("1"), orphaned: false, grace_s: 0, message: String::new() };
        assert_eq!(action(lanes.push(delete.clone())), None);
        assert_eq!(action(lanes.push(bind("2"))), Some(bind("2")));
        assert_eq!(action(lanes.done(&Subject::Pod("1".to_owned()))), Some(delete));
        assert_eq!(action(lanes.done(&Subject::Pod("1".to_owned()))), None);
        assert!(!lanes.is_empty());
        assert_eq!(action(lanes.done(&Subject::Pod("2".to_owned()))), None);
        assert!(lanes.is_empty(), "nothing is kept of pods with nothing to do");
    }

    #[test]
    fn of_explanations_that_wait_the_last_is_written_and_none_before_a_binding() {
        let mut lanes = Lanes::default();
        let subject = Subject::Pod("1".to_owned());
        lanes.push(explain("first"));
        lanes.push(explain("second"));
        lanes.push(explain("third"));
        assert_eq!(action(lanes.done(&subject)), Some(explain("third")));
        lanes.push(explain("fourth"));
        lanes.push(bind("1"));
        assert_eq!(action(lanes.done(&subject)), Some(bind("1")));
        assert_eq!(action(lanes.done(&subject)), None);
    }
}
