//! The API server: objects with versions, watches that tell of them, and what each write does.

use crate::cluster::{Happening, Key, Kind, World, seconds};
use deepshare_engine::BindFailure;
use deepshare_kube_index::{Action, Outcome, PodRef};
use deepshare_model::{Span, Time};
use serde_json::{Value, json};

impl World {
    /// Sets an object and tells the watches.
    pub fn set(&mut self, kind: Kind, name: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let key = Key { kind, name: name.to_owned() };
        self.objects.insert(key.clone(), object);
        self.tell(&key);
    }

    /// Changes an object that is there, and tells the watches.
    pub fn change(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let key = Key { kind, name: name.to_owned() };
        let Some(mut object) = self.objects.get(&key).cloned() else { return };
        change(&mut object);
        self.set(kind, name, object);
    }

    /// Removes an object and tells the watches.
    pub fn remove(&mut self, kind: Kind, name: &str) -> Option<Value> {
        let key = Key { kind, name: name.to_owned() };
        let object = self.objects.remove(&key)?;
        self.version += 1;
        self.tell(&key);
        if kind == Kind::Pod {
            self.pod_is_gone(name, &object);
        }
        Some(object)
    }

    /// Sends word of an object to every watch: in order within a kind, late, twice at times, and at times
    /// only of what it is in the end.
    fn tell(&mut self, key: &Key) {
        for process in 0..self.processes.len() {
            if !self.processes[process].alive {
                continue;
            }
            let object = self.objects.get(key).cloned();
            let mut delay = self.delay(self.faults.watch_ms);
            let skipped = self.chance.percent(self.faults.lost_watch);
            if skipped {
                // The watch broke off, and the list after it shows the latest state only.
                delay = Span(delay.0 + 500_000);
            }
            let at = (self.now + delay).max(self.processes[process].watched(key.kind));
            self.processes[process].set_watched(key.kind, at);
            let object = if skipped { None } else { Some(object) };
            let watch = Happening::Watch { process, key: key.clone(), object };
            if self.chance.percent(self.faults.doubled_watch) {
                self.push(at, watch.clone());
            }
            self.push(at, watch);
        }
    }

    /// Carries out a write of a scheduler, and answers it.
    pub fn write(&mut self, process: usize, action: &Action, asked: Time) {
        let outcome = match action {
            Action::SelectNode { claim, node } => self.select_node(claim, node.as_deref()),
            Action::Bind { pod, node, annotations } => {
                Some(match self.bind(pod, node, annotations) {
                    Ok(()) => Outcome::Bound { pod: pod.clone() },
                    Err(failure) => {
                        let message = "as the test wants it".to_owned();
                        Outcome::BindFailed { pod: pod.clone(), failure, message }
                    }
                })
            }
            Action::Evict { pod, grace_s, force_after_s, .. } => {
                self.evict(process, action, (pod, *grace_s), *force_after_s, asked)
            }
            Action::Delete { pod, orphaned: true, .. } => {
                self.remove(Kind::Pod, &pod.uid);
                None
            }
            Action::Delete { pod, grace_s, .. } => {
                self.delete(&pod.uid, *grace_s);
                None
            }
            Action::Resize { pod, requests, annotations } => {
                let refused = self.chance.percent(self.faults.resize_refused);
                if refused {
                    let message = "the kubelet cannot".to_owned();
                    Some(Outcome::ResizeRefused { pod: pod.clone(), message })
                } else {
                    self.annotate(&pod.uid, annotations);
                    self.resize(&pod.uid, requests);
                    None
                }
            }
            Action::Annotate { pod, annotations } => {
                self.annotate(&pod.uid, annotations);
                None
            }
            Action::Explain { pod, reason, message } => {
                let condition = json!({
                    "type": "PodScheduled", "status": "False", "reason": reason,
                    "message": message,
                });
                self.change(Kind::Pod, &pod.uid, |pod| {
                    if pod["spec"]["nodeName"].is_null() {
                        pod["status"]["conditions"] = json!([condition]);
                    }
                });
                None
            }
            Action::Nominate { pod, node } => {
                self.change(Kind::Pod, &pod.uid, |pod| {
                    pod["status"]["nominatedNodeName"] = json!(node);
                });
                None
            }
            Action::Announce { .. } => None,
            Action::TenantStatus { name, status } => {
                let status = serde_json::to_value(status).unwrap();
                self.change(Kind::Quota, name, |quota| quota["status"] = status);
                None
            }
        };
        if let Some(outcome) = outcome {
            let at = self.now + self.delay(self.faults.answer_ms);
            self.push(at, Happening::Answer { process, outcome });
        }
    }

    fn bind(
        &mut self,
        pod: &PodRef,
        node: &str,
        annotations: &std::collections::BTreeMap<String, String>,
    ) -> Result<(), BindFailure> {
        if self.chance.percent(self.faults.bind_transient) {
            return Err(BindFailure::Transient);
        }
        let object = self.pod_object(&pod.uid).ok_or(BindFailure::Conflict)?;
        match object["metadata"]["annotations"]["test/bind"].as_str() {
            Some("permanent") => return Err(BindFailure::Permanent),
            Some("transient") => return Err(BindFailure::Transient),
            Some("transient once") => {
                self.annotate(&pod.uid, &[("test/bind".to_owned(), String::new())].into());
                return Err(BindFailure::Transient);
            }
            _ => {}
        }
        let taken = !object["spec"]["nodeName"].is_null();
        let leaves = !object["metadata"]["deletionTimestamp"].is_null();
        if taken || leaves {
            return Err(BindFailure::Conflict);
        }
        self.change(Kind::Pod, &pod.uid, |object| {
            object["spec"]["nodeName"] = json!(node);
            for (name, text) in annotations {
                object["metadata"]["annotations"][name] = json!(text);
            }
            object["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}]);
        });
        self.check_decisions(&pod.uid);
        self.check_volumes(&pod.uid);
        let at = self.now + self.delay(50);
        self.push(at, Happening::Admit { uid: pod.uid.clone() });
        let unknown = self.chance.percent(self.faults.bind_unknown);
        if unknown { Err(BindFailure::Transient) } else { Ok(()) }
    }

    /// Asks the budgets; where they refuse, asks again until it may do without.
    fn evict(
        &mut self,
        process: usize,
        action: &Action,
        (pod, grace_s): (&PodRef, u32),
        force_after_s: Option<u32>,
        asked: Time,
    ) -> Option<Outcome> {
        let Some(object) = self.pod_object(&pod.uid) else {
            return Some(Outcome::Evicting { pod: pod.clone() });
        };
        let (namespace, labels) = (&object["metadata"]["namespace"], &object["metadata"]["labels"]);
        let shields = |budget: &Value| {
            let wanted = budget["spec"]["selector"]["matchLabels"].as_object();
            budget["metadata"]["namespace"] == *namespace
                && wanted.into_iter().flatten().all(|(label, text)| labels[label] == *text)
        };
        let budgets = self.objects.iter().filter(|(key, _)| key.kind == Kind::Budget);
        let budget =
            budgets.filter(|(_, budget)| shields(budget)).map(|(key, _)| key.clone()).next();
        let refused = budget.as_ref().is_some_and(|key| {
            self.objects[key]["status"]["disruptionsAllowed"].as_u64() == Some(0)
        }) || self.chance.percent(self.faults.evict_refused);
        if refused {
            let overdue = force_after_s.map(|s| asked + Span::from_secs(u64::from(s)));
            match overdue {
                Some(at) if at > self.now => {
                    let again = (self.now + Span::SECOND).min(at);
                    let action = action.clone();
                    self.push(again, Happening::Write { process, action, asked });
                    return None;
                }
                Some(_) => {}
                None => {
                    let message = "a disruption budget refuses".to_owned();
                    return Some(Outcome::EvictionRefused { pod: pod.clone(), message });
                }
            }
        } else if let Some(key) = budget {
            self.change(Kind::Budget, &key.name, |budget| {
                let left = budget["status"]["disruptionsAllowed"].as_u64().unwrap_or(0);
                budget["status"]["disruptionsAllowed"] = json!(left.saturating_sub(1));
            });
        }
        self.change(Kind::Pod, &pod.uid, |pod| {
            let target = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            });
            pod["status"]["conditions"] =
                json!([{"type": "PodScheduled", "status": "True"}, target]);
        });
        self.delete(&pod.uid, grace_s);
        Some(Outcome::Evicting { pod: pod.clone() })
    }

    /// Deletes a pod: at once where no kubelet has it, else once it has stopped.
    pub fn delete(&mut self, uid: &str, grace_s: u32) {
        let Some(object) = self.pod_object(uid) else { return };
        let bound = !object["spec"]["nodeName"].is_null();
        let terminal = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !bound || terminal {
            self.remove(Kind::Pod, uid);
            return;
        }
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let until = self.now + Span::from_secs(u64::from(grace_s));
        let text = crate::cluster::rfc3339(until);
        let takes = seconds(object, "test/stops-in").unwrap_or(1).min(u64::from(grace_s));
        self.change(Kind::Pod, uid, |pod| pod["metadata"]["deletionTimestamp"] = json!(text));
        let at = self.now + Span::from_secs(takes) + self.delay(100);
        self.push(at, Happening::Stopped { uid: uid.to_owned() });
    }

    fn annotate(&mut self, uid: &str, annotations: &std::collections::BTreeMap<String, String>) {
        self.change(Kind::Pod, uid, |pod| {
            let all = pod["metadata"]["annotations"].as_object_mut().unwrap();
            for (name, text) in annotations {
                match text.is_empty() {
                    true => _ = all.remove(name),
                    false => _ = all.insert(name.clone(), json!(text)),
                }
            }
        });
    }
}
