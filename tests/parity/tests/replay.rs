//! Whatever an engine lived through, its log replays to the same commands; whatever is changed in
//! the log is found.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_event_log::{Difference, Ended, Limits, replay};
use deepshare_parity::log;
use deepshare_sim::auditor_of;
use deepshare_testkit::{Storm, scenario_files, told_in_scenario};
use std::fs;
use std::path::Path;

const STORMS: u64 = 60;
const STEPS: u32 = 400;

/// Small enough that a storm takes several segments of several frames.
const SMALL: Limits = Limits { segment_bytes: 8_000, max_bytes: 64 << 20, frame_bytes: 4_000 };

#[test]
fn storms_replay_to_the_same_commands_over_several_segments() {
    let mut segments = 0;
    for seed in 0..STORMS {
        let storm = Storm::draw(seed);
        let told = storm.told(STEPS);
        let dir = tempfile::tempdir().unwrap();
        log(&told, dir.path(), SMALL, &[]).unwrap();
        let report = replay(dir.path(), Some(&auditor_of)).unwrap();
        assert_eq!(report.mismatch, None, "{}", storm.describe());
        assert_eq!(report.events, u64::from(STEPS), "{}", storm.describe());
        assert_eq!(report.audited, report.events);
        assert_eq!(report.snapshots, report.segments - 1);
        assert_eq!(report.ended, Ended::Whole);
        segments += report.segments;
    }
    assert!(segments > 2 * STORMS, "logs of several segments, not {segments} in all");
}

#[test]
fn a_log_without_its_oldest_segments_replays_from_a_snapshot() {
    let mut removed = 0;
    for seed in 0..STORMS {
        let told = Storm::draw(seed).told(STEPS);
        let dir = tempfile::tempdir().unwrap();
        log(&told, dir.path(), Limits { max_bytes: 16_000, ..SMALL }, &[]).unwrap();
        let report = replay(dir.path(), Some(&auditor_of)).unwrap();
        assert_eq!(report.mismatch, None, "storm {seed}");
        if report.starts == 0 {
            removed += 1;
            assert!(report.events < u64::from(STEPS));
            assert_eq!(report.audited, 0, "an auditor cannot begin in the middle");
        }
    }
    assert!(removed > STORMS / 4, "{removed} logs lost their beginning");
}

#[test]
fn every_scenario_replays_to_the_same_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scripts = scenario_files(&root).unwrap();
    assert!(!scripts.is_empty());
    for script in scripts {
        let told = told_in_scenario(&fs::read_to_string(&script).unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        log(&told, dir.path(), Limits::default(), &[]).unwrap();
        let report = replay(dir.path(), None).unwrap();
        assert_eq!(report.mismatch, None, "{}", script.display());
        assert_eq!(report.events, told.events.len() as u64, "{}", script.display());
    }
}

/// The log of a storm in one frame, its lines changed by `change`.
fn tampered(change: impl Fn(&mut Vec<String>)) -> deepshare_event_log::Replay {
    let told = Storm::draw(3).told(STEPS);
    let dir = tempfile::tempdir().unwrap();
    let whole = Limits { frame_bytes: 1 << 30, ..Limits::default() };
    log(&told, dir.path(), whole, &[]).unwrap();
    let path = dir.path().join("00000001.dslog");
    let lines = zstd::decode_all(&fs::read(&path).unwrap()[..]).unwrap();
    let text = String::from_utf8(lines).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, zstd::encode_all((lines.join("\n") + "\n").as_bytes(), 1).unwrap()).unwrap();
    replay(dir.path(), None).unwrap()
}

/// The first line of commands that start something.
fn commanding(lines: &[String]) -> usize {
    lines.iter().position(|line| line.starts_with("[{\"start\"")).expect("something was started")
}

#[test]
fn a_changed_command_is_found_with_its_place() {
    let report = tampered(|lines| {
        let at = commanding(lines);
        lines[at] = lines[at].replacen("\"epoch\":", "\"epoch\":9", 1);
    });
    let mismatch = report.mismatch.expect("it was changed");
    assert_eq!((mismatch.what, mismatch.segment), (Difference::Commands, 1));
    assert!(mismatch.record > 1);
    assert!(mismatch.expected.contains("\"epoch\":9") && !mismatch.got.contains("\"epoch\":9"));
}

#[test]
fn a_step_left_out_is_found() {
    let report = tampered(|lines| {
        let at = commanding(lines);
        lines.drain(at - 1..=at);
    });
    assert!(report.mismatch.is_some());
}

#[test]
fn what_no_engine_can_be_told_is_a_mismatch_and_no_panic() {
    for event in [
        r#"{"estimated":{"job":999999,"run_time":1}}"#,
        r#"{"submitted":{"job":999999,"spec":SPEC}}"#,
        r#"{"node-lost":{"node":77777}}"#,
        r#"{"assurance-restored":{"tenant":77777,"gpu_type":0,"smoothed":1}}"#,
    ] {
        let report = tampered(|lines| {
            let at = commanding(lines) - 1;
            let spec = lines.iter().find_map(|line| {
                let from = line.find("\"spec\":{\"tenant\"")? + 7;
                Some(line[from..line.len() - 4].to_owned())
            });
            let event = event.replace("SPEC", &spec.expect("a job was submitted"));
            lines[at] = format!(r#"{{"step":{{"at":9000000000000,"event":{event}}}}}"#);
        });
        let mismatch = report.mismatch.expect(event);
        assert_eq!(mismatch.what, Difference::Impossible, "{mismatch}");
        assert!(mismatch.got.contains("is not known"), "{mismatch}");
    }
}
