//! What the readers make of sound files, and that the writer's files are read back whole.

use deepshare_model::{Class, Outcome, Span, Time};
use deepshare_trace::generate::{GeneratorOptions, venus_like};
use deepshare_trace::{
    DropReason, Format, Origin, ReadOptions, TimeOptions, Trace, read_estimates_from, read_trace,
    read_trace_from, write_trace,
};
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn read(name: &str, options: &ReadOptions) -> Trace {
    read_trace(&fixture(name), options).expect("the fixture is sound")
}

fn ids(trace: &Trace) -> Vec<&str> {
    trace.jobs.iter().map(|job| job.id.as_str()).collect()
}

#[test]
fn a_helios_log_keeps_its_clock_and_drops_jobs_without_gpus() {
    let trace = read("helios.csv", &ReadOptions::default());
    assert_eq!(ids(&trace), ["101", "102", "104"]);
    assert_eq!(trace.tenants, ["vision", "speech"]);
    assert_eq!(trace.users, ["ann", "bob", "eve"]);
    let last = &trace.jobs[2];
    assert_eq!((last.gpus, last.cpu_milli, last.row), (16, 1_000, 5));
    assert_eq!((last.submit, last.duration), (Time::from_secs(40), Span::ZERO));
    assert_eq!(last.outcome, Outcome::NodeFail);
    assert_eq!(trace.report.dropped, [(DropReason::NoGpu, 1)]);
    assert_eq!((trace.report.rows, trace.report.kept, trace.report.zero_durations), (4, 3, 1));
    assert_eq!(trace.report.format, Some(Format::Helios));
}

#[test]
fn the_cluster_decides_which_tenants_there_are_and_how_they_are_numbered() {
    let known = ["other".to_owned(), "vision".to_owned()];
    let options = ReadOptions { known_tenants: Some(known.to_vec()), ..ReadOptions::default() };
    let trace = read("helios.csv", &options);
    assert_eq!(ids(&trace), ["101", "104"]);
    assert_eq!(trace.tenants, known);
    assert_eq!(trace.jobs[0].tenant.0, 1);
    assert_eq!(trace.users, ["ann", "eve"]);
    assert_eq!(trace.report.dropped, [(DropReason::NoGpu, 1), (DropReason::UnknownTenant, 1)]);
}

#[test]
fn our_own_format_carries_every_field() {
    let options =
        ReadOptions { known_gpu_types: vec!["H100".to_owned()], ..ReadOptions::default() };
    let trace = read("deepshare.csv", &options);
    assert_eq!(trace.report.imputed, []);
    assert_eq!(trace.tenants, ["research", "prod, eu"]);
    assert_eq!(trace.users, ["ann", "bob", "research"]);
    assert_eq!(trace.gpu_types, ["H100", "A100"]);
    let [a, b, c] = trace.jobs.as_slice() else { panic!("{:?}", ids(&trace)) };
    assert_eq!((a.gpus, a.cpu_milli, a.memory_mib, a.gpu_memory_mib), (4, 32_000, 65_536, 40_000));
    assert_eq!((a.class, a.priority), (Some(Class::Guaranteed), 5));
    assert_eq!((a.gpu_type.unwrap().0, a.requested_time), (1, Some(Span::from_secs(7_200))));
    assert_eq!((b.submit, b.duration), (Time(250_000), Span(1_000_001)));
    assert_eq!((b.class, b.priority), (Some(Class::BestEffort), -1));
    assert_eq!((b.cpu_milli, b.gpu_type, b.outcome), (500, None, Outcome::OutOfMemory));
    assert_eq!((c.class, c.gpu_type.unwrap().0, c.outcome), (None, 0, Outcome::Cancelled));
}

#[test]
fn columns_may_come_in_any_order_and_absent_ones_are_reported() {
    let text = "duration_s,Extra,gpus,tenant,submit_s,JOB_ID\n5,x,2,t,1,a\n";
    let trace = read_trace_from("t.csv", Cursor::new(text), &ReadOptions::default()).unwrap();
    assert_eq!((trace.jobs[0].gpus, trace.jobs[0].submit), (2, Time::from_secs(1)));
    let absent: Vec<_> = trace.report.imputed.iter().map(|i| i.column).collect();
    assert_eq!(absent, ["user", "state", "cpus"]);
    assert_eq!(trace.users, ["t"]);
}

#[test]
fn the_lucid_preset_counts_from_the_first_job_of_april_and_keeps_september() {
    let options = ReadOptions { times: TimeOptions::lucid(), ..ReadOptions::default() };
    let trace = read("dated.csv", &options);
    assert_eq!(ids(&trace), ["2", "3"]);
    let submits: Vec<u64> = trace.jobs.iter().map(|job| job.submit.0 / 1_000_000).collect();
    assert_eq!(submits, [13_219_203, 15_465_490]);
    assert_eq!(trace.report.origin.as_deref(), Some("2020-04-01 00:02:31"));
    assert_eq!(trace.report.dropped, [(DropReason::OutsideWindow, 2)]);
    // A log without dates is left as it is.
    assert_eq!(ids(&read("helios.csv", &options)).len(), 3);
}

#[test]
fn the_clock_of_a_dated_log_starts_where_it_is_told() {
    let times = |origin| ReadOptions {
        times: TimeOptions { origin, ..TimeOptions::default() },
        ..ReadOptions::default()
    };
    let start = |origin| read("dated.csv", &times(origin)).jobs[0].submit;
    assert_eq!(start(Origin::FirstDay), Time::from_secs(151));
    assert_eq!(start(Origin::FirstJob), Time::ZERO);
    let at = Origin::At(jiff::civil::date(2020, 9, 1).at(0, 0, 0, 0));
    let trace = read("dated.csv", &times(at));
    assert_eq!(ids(&trace), ["2", "3", "4"]);
    assert_eq!(trace.jobs[0].submit, Time::from_secs(154));
    assert_eq!(trace.report.dropped, [(DropReason::TooEarly, 1)]);
}

#[test]
fn a_window_keeps_both_its_ends() {
    let times = TimeOptions { window_s: Some((10, 11)), ..TimeOptions::default() };
    let trace = read("helios.csv", &ReadOptions { times, ..ReadOptions::default() });
    assert_eq!(ids(&trace), ["101", "102"]);
}

fn order(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), text).expect("a temporary file can be written");
    file
}

#[test]
fn an_order_file_swaps_simultaneous_jobs_only() {
    let file = order("x,job_id\n,104\n,103\n,102\n,101\n");
    let options = ReadOptions { order: Some(file.path().to_owned()), ..ReadOptions::default() };
    assert_eq!(ids(&read("helios.csv", &options)), ["102", "101", "104"]);
}

#[test]
fn an_order_file_must_name_every_job_once() {
    let file = order("job_id\n102\n102\nnobody\n104\n");
    let options = ReadOptions { order: Some(file.path().to_owned()), ..ReadOptions::default() };
    let error = read_trace(&fixture("helios.csv"), &options).unwrap_err().to_string();
    assert!(error.starts_with(&file.path().display().to_string()), "{error}");
    for part in [
        "3 problems",
        "line 3, column 1 (job_id): \"102\" is on line 2 too",
        "line 4, column 1 (job_id): \"nobody\" is not a job of the trace",
        "it leaves out 1 of the trace's jobs, the first \"101\" (line 2 of",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn estimates_follow_the_trace_and_negative_ones_are_replaced_only_on_demand() {
    let trace = read("helios.csv", &ReadOptions::default());
    let text = "priority,job_id\n7.5,104\n-3,102\n1e2,101\n5,extra\n";
    let input = || Cursor::new(text);
    let thousand = Some(Span::from_secs(1_000));
    let estimates = read_estimates_from("e.csv", input(), &trace, thousand).unwrap();
    assert_eq!(estimates.values, [Span::from_secs(100), Span::from_secs(1_000), Span(7_500_000)]);
    assert_eq!((estimates.ignored, estimates.replaced), (1, 1));
    let error = read_estimates_from("e.csv", input(), &trace, None).unwrap_err();
    let expected = "e.csv: line 3, column 1 (priority): \"-3\" is a negative estimate; \
                    give an estimate in seconds, 0 or more";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn jobs_without_an_estimate_are_named() {
    let trace = read("helios.csv", &ReadOptions::default());
    let input = Cursor::new("job_id,priority\n101,5\n101,6\n");
    let error = read_estimates_from("e.csv", input, &trace, None).unwrap_err().to_string();
    assert!(error.contains("no estimate for 2 jobs of the trace: \"102\", \"104\""), "{error}");
    assert!(error.contains("line 3, column 1 (job_id): \"101\" is on line 2 too"), "{error}");
}

/// Reads what the writer makes of `trace`.
fn written_and_read(trace: &Trace) -> Trace {
    let mut bytes = Vec::new();
    write_trace(trace, &mut bytes).expect("memory takes everything");
    let options = ReadOptions {
        known_tenants: Some(trace.tenants.clone()),
        known_gpu_types: trace.gpu_types.clone(),
        ..ReadOptions::default()
    };
    read_trace_from("written.csv", Cursor::new(bytes), &options).expect("we write what we read")
}

#[test]
fn what_is_written_is_read_back_equal() {
    let generated = venus_like(1, &GeneratorOptions::days(3)).0;
    for trace in [generated, read("deepshare.csv", &ReadOptions::default())] {
        let again = written_and_read(&trace);
        assert_eq!(again.jobs.len(), trace.jobs.len());
        for (a, b) in again.jobs.iter().zip(&trace.jobs) {
            assert_eq!(again.users[a.user.index()], trace.users[b.user.index()]);
            let mut a = a.clone();
            (a.user, a.row) = (b.user, b.row);
            assert_eq!(&a, b);
        }
    }
}

#[test]
fn a_name_that_the_format_cannot_hold_is_refused_by_the_writer() {
    let mut trace = read("helios.csv", &ReadOptions::default());
    trace.tenants[0] = "two\nlines".to_owned();
    assert!(write_trace(&trace, &mut Vec::new()).is_err());
}
