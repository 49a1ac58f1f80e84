//! What is written is read, what is cut is read as far as it goes, and what is damaged is named.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_engine::{Command, Engine, EngineSettings, Event};
use deepshare_event_log::{
    Begins, Ended, Header, Limits, Log, LogError, Name, Named, Opening, Record, Step, WriteError,
    Writer,
};
use deepshare_model::{
    JobId, NodeId, NodeSpec, PoolId, Quota, Resources, TenantId, TenantSpec, Time,
};
use deepshare_policies::PolicyConfig;
use std::fs;
use std::path::{Path, PathBuf};

const FIRST: &str = "00000001.dslog";

fn header() -> Header {
    let policy = PolicyConfig::by_name("fifo").unwrap();
    Header::new("test".to_owned(), policy, EngineSettings::default(), 1_700_000_000_000_000)
}

fn opening() -> Opening {
    let engine = Engine::new(header().settings, header().policy.build());
    let name = Name { of: Named::Job(JobId(7)), name: "team/job".to_owned() };
    Opening { snapshot: engine.snapshot(), names: vec![name] }
}

/// One event of each of so many instants.
fn events(count: u64) -> Vec<(Time, Event)> {
    let tenant = TenantId(0);
    let spec = TenantSpec::new(PoolId(0), Quota::uniform(8, 1));
    let node = NodeSpec {
        pool: PoolId(0),
        gpu_type: deepshare_model::GpuTypeId(0),
        gpus: 8,
        gpu_memory_mib: 81_920,
        capacity: Resources::UNLIMITED,
    };
    let mut events = vec![(Time(0), Event::TenantSet { tenant, spec })];
    events.push((Time(0), Event::NodeAdded { node: NodeId(0), spec: node }));
    events.extend((2..count).map(|at| (Time(at), Event::Held { job: JobId(at as u32) })));
    events
}

/// Steps, names, what each segment begins with, and how the log ends.
type All = (Vec<Step>, Vec<Name>, Vec<Begins>, Ended);

fn all(dir: &Path) -> Result<All, LogError> {
    let (mut steps, mut names, mut begins) = (Vec::new(), Vec::new(), Vec::new());
    let ended = Log::open(dir)?.read(|segment| {
        begins.push(segment.header.begins);
        while let Some(record) = segment.next_record()? {
            match record {
                Record::Step(step) => steps.push(*step),
                Record::Name(name) => names.push(name),
            }
        }
        Ok(())
    })?;
    Ok((steps, names, begins, ended))
}

/// A log of one segment with so many frames, and where each of them ends.
fn framed(frames: usize) -> (tempfile::TempDir, PathBuf, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FIRST);
    let mut writer = Writer::create(dir.path(), header(), Limits::default()).unwrap();
    let mut ends = vec![fs::metadata(&path).unwrap().len()];
    for chunk in events(frames as u64 * 5).chunks(5) {
        for (now, event) in chunk {
            writer.step(*now, event, &[], None).unwrap();
        }
        writer.flush().unwrap();
        ends.push(fs::metadata(&path).unwrap().len());
    }
    (dir, path, ends)
}

#[test]
fn steps_and_names_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), header(), Limits::default()).unwrap();
    let name = Name { of: Named::Tenant(TenantId(0)), name: "vision \"α\"\n".to_owned() };
    writer.name(&name).unwrap();
    let refused = Command::ReleaseReservation { attempt: deepshare_model::AttemptId(3) };
    let illegal = deepshare_engine::Illegal::NotFree(JobId(4));
    for (index, (now, event)) in events(30).iter().enumerate() {
        let commands = vec![refused.clone(); index % 3];
        let illegal = (index == 5).then_some(&illegal);
        writer.step(*now, event, &commands, illegal).unwrap();
    }
    drop(writer);
    let (steps, names, begins, ended) = all(dir.path()).unwrap();
    assert_eq!((names, begins, ended), (vec![name], vec![Begins::Empty], Ended::Whole));
    assert_eq!(steps.len(), 30);
    for (index, (step, (at, event))) in steps.iter().zip(events(30)).enumerate() {
        assert_eq!((step.at, &step.event), (at, &event));
        assert_eq!(step.commands().unwrap(), vec![refused.clone(); index % 3]);
        assert_eq!(step.illegal.is_some(), index == 5);
    }
}

#[test]
fn a_log_stays_within_its_bound_and_keeps_the_newest_steps() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 2_000, max_bytes: 6_000, frame_bytes: 500 };
    let mut writer = Writer::create(dir.path(), header(), limits).unwrap();
    let events = events(5_000);
    for (now, event) in &events {
        writer.step(*now, event, &[], None).unwrap();
        writer.rotate_if_due(opening).unwrap();
        let size: u64 =
            fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
        assert!(size <= limits.max_bytes, "{size} bytes");
    }
    drop(writer);
    assert!(!dir.path().join(FIRST).exists(), "the oldest went");
    let (steps, names, begins, _) = all(dir.path()).unwrap();
    assert!(begins.iter().all(|&begins| begins == Begins::Continued));
    assert_eq!(names.len(), begins.len(), "every segment says names again");
    assert_eq!(steps.last().unwrap().at, events.last().unwrap().0);
    let first = steps[0].at.0;
    assert!(steps.iter().zip(first..).all(|(step, at)| step.at.0 == at), "none is missing");
}

#[test]
fn a_restarted_scheduler_goes_on_in_the_next_segment() {
    let (dir, _, _) = framed(2);
    let mut writer = Writer::create(dir.path(), header(), Limits::default()).unwrap();
    writer.step(Time(9), &Event::Wake, &[], None).unwrap();
    drop(writer);
    let (steps, _, begins, _) = all(dir.path()).unwrap();
    assert_eq!((steps.len(), begins), (11, vec![Begins::Empty, Begins::Empty]));
}

#[test]
fn a_log_cut_at_any_byte_of_its_last_frame_reads_up_to_it() {
    let (dir, path, ends) = framed(3);
    let whole = fs::read(&path).unwrap();
    let (from, to) = (ends[2], ends[3]);
    for length in from..=to {
        fs::write(&path, &whole[..length as usize]).unwrap();
        let (steps, _, _, ended) = all(dir.path()).unwrap();
        let cut = Ended::Cut { segment: 1, offset: from };
        let expected = match length {
            _ if length == from => (10, Ended::Whole),
            _ if length == to => (15, Ended::Whole),
            _ => (10, cut),
        };
        assert_eq!((steps.len(), ended), expected, "cut at byte {length}");
    }
}

#[test]
fn a_log_cut_in_its_very_header_reads_as_empty() {
    let (dir, path, ends) = framed(1);
    let whole = fs::read(&path).unwrap();
    for length in 0..ends[0] {
        fs::write(&path, &whole[..length as usize]).unwrap();
        let (steps, _, _, ended) = all(dir.path()).unwrap();
        assert_eq!((steps.len(), ended), (0, Ended::Cut { segment: 1, offset: 0 }));
    }
}

#[test]
fn any_changed_byte_in_the_middle_is_an_error_that_names_the_frame() {
    let (dir, path, ends) = framed(3);
    let whole = fs::read(&path).unwrap();
    for at in ends[1]..ends[2] {
        let mut bytes = whole.clone();
        bytes[at as usize] ^= 0x40;
        fs::write(&path, &bytes).unwrap();
        match all(dir.path()) {
            Err(LogError::Damaged { offset, .. }) => assert_eq!(offset, ends[1], "byte {at}"),
            // A changed size may reach beyond the end of the file: as if it were cut there.
            Ok((steps, _, _, Ended::Cut { offset, .. })) => {
                assert_eq!((steps.len(), offset), (5, ends[1]), "byte {at}");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn a_cut_segment_that_the_next_one_continues_lacks_steps() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 1_000, max_bytes: 1 << 20, frame_bytes: 200 };
    let mut writer = Writer::create(dir.path(), header(), limits).unwrap();
    for (now, event) in events(500) {
        writer.step(now, &event, &[], None).unwrap();
        writer.rotate_if_due(opening).unwrap();
    }
    drop(writer);
    let path = dir.path().join(FIRST);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(all(dir.path()), Err(LogError::CutShort { .. })));
    fs::remove_file(dir.path().join("00000002.dslog")).unwrap();
    assert!(matches!(all(dir.path()), Err(LogError::Missing { number: 2, .. })));
}

#[test]
fn other_files_and_other_versions_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(all(dir.path()), Err(LogError::NoLog { .. })));
    let path = dir.path().join(FIRST);
    let said = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        all(dir.path()).map(|_| ()).unwrap_err().to_string()
    };
    let pack = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    assert!(said(b"hello, world").contains("no frame begins here"));
    assert!(said(&pack("hello")).contains("does not begin with a header"));
    let newer = r#"{"header":{"format":"deepshare-event-log","version":2,"more":[]}}"#;
    let words = said(&pack(newer));
    assert!(words.contains("version 2") && words.contains("reads version 1"), "{words}");
    let odd = r#"{"header":{"format":"deepshare-event-log","version":1}}"#;
    assert!(said(&pack(odd)).contains("record 1: missing field"));
}

#[test]
fn a_disk_that_fails_is_told_once_and_leaves_a_gap_that_the_log_admits() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("log");
    let limits = Limits { segment_bytes: 400, max_bytes: 1 << 20, frame_bytes: 100 };
    let mut writer = Writer::create(&folder, header(), limits).unwrap();
    let wake = |writer: &mut Writer, s| writer.step(Time::from_secs(s), &Event::Wake, &[], None);
    while !writer.is_due() {
        wake(&mut writer, 1).unwrap();
    }
    // The folder is in the way of the next segment.
    fs::create_dir(folder.join("00000002.dslog")).unwrap();
    assert!(matches!(writer.rotate_if_due(opening), Err(WriteError::Write { .. })));
    for second in 2..8 {
        wake(&mut writer, second).unwrap();
        writer.rotate_if_due(opening).unwrap();
    }
    fs::remove_dir(folder.join("00000002.dslog")).unwrap();
    wake(&mut writer, 60).unwrap();
    writer.rotate_if_due(opening).unwrap();
    wake(&mut writer, 61).unwrap();
    drop(writer);
    let (steps, _, begins, ended) = all(&folder).unwrap();
    assert_eq!(begins, [Begins::Empty, Begins::AfterGap { lost: 7 }]);
    assert_eq!((steps.last().unwrap().at, ended), (Time::from_secs(61), Ended::Whole));
}

#[test]
fn a_segment_that_cannot_be_removed_is_told_now_and_then_and_leaves_no_hole() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 2_000, max_bytes: 6_000, frame_bytes: 500 };
    let mut writer = Writer::create(dir.path(), header(), limits).unwrap();
    let mut failed = 0;
    let mut write = |events: std::ops::Range<u64>, second: u64| {
        for job in events {
            let event = Event::Held { job: JobId(job as u32) };
            let stepped = writer.step(Time::from_secs(second), &event, &[], None);
            for outcome in [stepped, writer.rotate_if_due(opening)] {
                match outcome {
                    Ok(()) => {}
                    Err(WriteError::Remove { .. }) => failed += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        failed
    };
    write(0..20, 1);
    // A folder cannot be removed as a file can.
    let (first, aside) = (dir.path().join(FIRST), dir.path().join("aside"));
    fs::rename(&first, &aside).unwrap();
    fs::create_dir(&first).unwrap();
    assert_eq!(write(20..3_000, 1), 1, "told once, not at each frame");
    assert_eq!(write(3_000..3_100, 60), 2, "and again when it was tried again");
    fs::remove_dir(&first).unwrap();
    fs::rename(&aside, &first).unwrap();
    let (steps, ..) = all(dir.path()).unwrap();
    let at = |step: &Step| match step.event {
        Event::Held { job } => job.0,
        ref other => panic!("{other:?}"),
    };
    assert!(steps.iter().zip(0..).all(|(step, job)| at(step) == job), "none is missing");
    assert!(steps.len() > 3_000, "segments were begun all the same");
    assert_eq!(write(3_100..3_200, 120), 2);
    let left: u64 =
        fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert!(left <= limits.max_bytes && all(dir.path()).is_ok(), "{left} bytes");
}

#[test]
fn limits_that_allow_less_than_two_segments_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 100, max_bytes: 199, frame_bytes: 10 };
    let refused = Writer::create(dir.path(), header(), limits).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("two segments"), "{refused}");
}
