//! The API server's audit log: the one clock for every scheduler.

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// What happened to a pod, as far as it is measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodTimes {
    /// Its creation was answered.
    pub created: Option<Timestamp>,
    /// Its binding was accepted.
    pub bound: Option<Timestamp>,
    /// A node said last how it does: before it is removed, that it has ended.
    pub status: Option<Timestamp>,
    /// It was deleted for good, or asked to go, whichever came last.
    pub deleted: Option<Timestamp>,
}

/// A reader that follows the log.
pub struct AuditLog {
    path: PathBuf,
    read: u64,
    /// Of a line whose end is not written yet.
    rest: Vec<u8>,
    pods: BTreeMap<String, PodTimes>,
    bound: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(default)]
    user: UserInfo,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    stage_timestamp: Timestamp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    name: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl AuditLog {
    /// A reader of what is written from now on.
    pub fn new(path: PathBuf) -> AuditLog {
        AuditLog { path, read: 0, rest: Vec::new(), pods: BTreeMap::new(), bound: 0 }
    }

    /// Forgets what was read, and skips what has been written.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn begin(&mut self) -> std::io::Result<()> {
        self.follow()?;
        self.pods.clear();
        self.bound = 0;
        Ok(())
    }

    /// Reads what has been written since.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn follow(&mut self) -> std::io::Result<()> {
        let mut file = match File::open(&self.path) {
            // Nothing has been written yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = std::mem::take(&mut self.rest);
        self.read += file.read_to_end(&mut bytes)? as u64;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(whole);
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            self.take(serde_json::from_slice(line)?);
        }
        Ok(())
    }

    fn take(&mut self, line: Line) {
        if !(200..300).contains(&line.response_status.code) || line.object_ref.name.is_empty() {
            return;
        }
        let by_node = line.user.username.ends_with(":nodes");
        let pod = self.pods.entry(line.object_ref.name).or_default();
        let at = Some(line.stage_timestamp);
        match (line.verb.as_str(), line.object_ref.subresource.as_str()) {
            ("create", "") => pod.created = at,
            ("create", "binding") => {
                self.bound += usize::from(pod.bound.is_none());
                pod.bound = at;
            }
            ("patch" | "update", "status") if by_node => pod.status = at,
            ("delete", "") | ("create", "eviction") => pod.deleted = at,
            _ => {}
        }
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// How many pods were bound.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Every pod of which something was read, by name.
    pub fn pods(&self) -> &BTreeMap<String, PodTimes> {
        &self.pods
    }

    /// When bindings were accepted, in order.
    pub fn bindings(&self) -> Vec<Timestamp> {
        let mut all: Vec<Timestamp> = self.pods.values().filter_map(|pod| pod.bound).collect();
        all.sort();
        all
    }
}

/// Milliseconds from one instant to another.
pub fn ms(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_microsecond() - from.as_microsecond()) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(verb: &str, subresource: &str, code: u16, second: u32) -> String {
        format!(
            "{{\"verb\":\"{verb}\",\"user\":{{\"username\":\"x:nodes\"}},\"objectRef\":{{\"name\":\
             \"p\",\"subresource\":\"{subresource}\"}},\"responseStatus\":{{\"code\":{code}}},\
             \"stageTimestamp\":\"2026-01-01T00:00:{second:02}.000500Z\"}}\n"
        )
    }

    #[test]
    fn a_log_is_followed_over_lines_that_are_half_written_and_refusals_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut log = AuditLog::new(path.clone());
        log.follow().unwrap();
        let mut file = File::create(&path).unwrap();
        let bound = line("create", "binding", 201, 3);
        let (half, rest) = bound.split_at(30);
        let text = line("create", "", 201, 1) + &line("create", "binding", 409, 2) + half;
        file.write_all(text.as_bytes()).unwrap();
        log.follow().unwrap();
        assert_eq!(log.bound(), 0);
        file.write_all(rest.as_bytes()).unwrap();
        log.follow().unwrap();
        let pod = log.pods()["p"];
        assert_eq!(log.bound(), 1);
        assert_eq!(ms(pod.created.unwrap(), pod.bound.unwrap()), 2_000.0);
        log.begin().unwrap();
        assert!(log.pods().is_empty());
    }
}
