//! What annotations make a simulated pod or node do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const PREFIX: &str = "testbed.deepshare.io/";

/// What becomes of a resize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resize {
    /// It happens, as soon as there is room.
    #[default]
    Happens,
    /// It stays `PodResizePending` with reason `Deferred`.
    Deferred,
    /// It stays `PodResizePending` with reason `Infeasible`.
    Infeasible,
}

/// How one pod behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct PodBehaviour {
    /// How long it runs; `None`: until it is deleted.
    pub run: Option<Duration>,
    /// How it ends by itself.
    pub exit_code: i32,
    /// How long it takes to stop when it is deleted.
    pub stop: Duration,
    /// How long after a resize its new resources are in force.
    pub resize_delay: Duration,
    /// What becomes of a resize.
    pub resize: Resize,
    /// What it keeps of its speed beside another pod, parts per million.
    pub keeps_ppm: u32,
}

impl Default for PodBehaviour {
    fn default() -> PodBehaviour {
        PodBehaviour {
            run: None,
            exit_code: 0,
            stop: Duration::ZERO,
            // As measured on a kubelet with containerd: 48 to 57 ms.
            resize_delay: Duration::from_millis(50),
            resize: Resize::Happens,
            keeps_ppm: 900_000,
        }
    }
}

impl PodBehaviour {
    /// Reads a pod's annotations.
    ///
    /// # Errors
    /// If one of ours is unknown or has a value that means nothing.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<PodBehaviour, String> {
        let mut read = PodBehaviour::default();
        for (key, value) in annotations {
            let Some(name) = key.strip_prefix(PREFIX) else { continue };
            let bad = |what: &str| format!("annotation {key}: {value:?} is no {what}");
            match name {
                "run-seconds" => read.run = Some(seconds(value).ok_or(bad("time in seconds"))?),
                "exit-code" => read.exit_code = value.parse().map_err(|_| bad("exit code"))?,
                "stop-seconds" => read.stop = seconds(value).ok_or(bad("time in seconds"))?,
                "resize-seconds" => {
                    read.resize_delay = seconds(value).ok_or(bad("time in seconds"))?;
                }
                "resize" => {
                    read.resize = match value.as_str() {
                        "deferred" => Resize::Deferred,
                        "infeasible" => Resize::Infeasible,
                        _ => return Err(bad("outcome of a resize: use deferred or infeasible")),
                    }
                }
                "keeps" => {
                    let share =
                        value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
                    // Between 0 and a million.
                    read.keeps_ppm = (share.ok_or(bad("share from 0 to 1"))? * 1e6).round() as u32;
                }
                _ => {
                    return Err(format!(
                        "annotation {key} is unknown: pods have run-seconds, exit-code, \
                         stop-seconds, resize-seconds, resize and keeps"
                    ));
                }
            }
        }
        Ok(read)
    }
}

/// Faults of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeBehaviour {
    /// It sends no heartbeats and does nothing.
    pub lost: bool,
    /// Devices that do not work, by position or UUID.
    pub unhealthy: BTreeSet<String>,
    /// It rejects the next so many pods; counted anew when the value changes.
    pub reject_next: u32,
}

impl NodeBehaviour {
    /// Reads a node's annotations.
    ///
    /// # Errors
    /// As [`PodBehaviour::read`].
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<NodeBehaviour, String> {
        let mut read = NodeBehaviour::default();
        for (key, value) in annotations {
            let Some(name) = key.strip_prefix(PREFIX) else { continue };
            let bad = |what: &str| format!("annotation {key}: {value:?} is no {what}");
            match name {
                "lost" => read.lost = value.parse().map_err(|_| bad("truth value: use true"))?,
                "unhealthy" => {
                    let list = value.split(',').map(str::trim).filter(|one| !one.is_empty());
                    read.unhealthy = list.map(str::to_owned).collect();
                }
                "reject-next" => {
                    read.reject_next = value.parse().map_err(|_| bad("number of pods"))?;
                }
                _ => {
                    return Err(format!(
                        "annotation {key} is unknown: nodes have lost, unhealthy and reject-next"
                    ));
                }
            }
        }
        Ok(read)
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let value: f64 = text.parse().ok()?;
    // Thirty years: more would not fit every calendar.
    Some(value)
        .filter(|value| *value <= 1e9)
        .and_then(|value| Duration::try_from_secs_f64(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned()), ("other".to_owned(), "x".to_owned())])
    }

    #[test]
    fn a_misspelt_annotation_is_refused_by_name() {
        let pod = PodBehaviour::read(&annotation("testbed.deepshare.io/run-second", "1"));
        assert!(pod.unwrap_err().contains("run-seconds"));
        let pod = PodBehaviour::read(&annotation("testbed.deepshare.io/run-seconds", "-1"));
        assert!(pod.unwrap_err().contains("\"-1\" is no time in seconds"));
        let node = NodeBehaviour::read(&annotation("testbed.deepshare.io/lost", "yes"));
        assert!(node.unwrap_err().contains("use true"));
    }

    #[test]
    fn what_a_pod_keeps_is_a_share() {
        let pod = PodBehaviour::read(&annotation("testbed.deepshare.io/keeps", "0.55")).unwrap();
        assert_eq!(pod.keeps_ppm, 550_000);
        assert!(PodBehaviour::read(&annotation("testbed.deepshare.io/keeps", "55")).is_err());
    }
}
