//! Columns about what owners do with their jobs: withdraw, hold, submit in arrays.

use deepshare_model::Time;
use deepshare_trace::{ReadOptions, Trace, read_trace_from, write_trace};
use std::io::Cursor;

const HEADER: &str = "job_id,tenant,gpus,submit_s,duration_s,cancel_s,hold_until_s,tasks\n";

fn read(rows: &str) -> Result<Trace, String> {
    let input = Cursor::new(format!("{HEADER}{rows}").into_bytes());
    read_trace_from("t.csv", input, &ReadOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn withdrawals_and_holds_are_on_the_clock_of_submissions() {
    let trace = read("a,t,1,5,60,70.5,,\nb,t,1,6,60,,9,\n").unwrap();
    let [a, b] = &trace.jobs[..] else { panic!("two jobs") };
    assert_eq!((a.cancel, a.hold_until), (Some(Time(70_500_000)), None));
    assert_eq!((b.cancel, b.hold_until), (None, Some(Time::from_secs(9))));
}

#[test]
fn an_array_is_so_many_jobs_with_the_line_of_its_row() {
    let trace = read("a,t,1,5,60,,,3\nb,t,1,5,60,,,\n").unwrap();
    let told: Vec<_> = trace.jobs.iter().map(|job| (job.id.as_str(), job.row)).collect();
    assert_eq!(told, [("a_0", 2), ("a_1", 2), ("a_2", 2), ("b", 3)]);
    assert_eq!((trace.report.rows, trace.report.kept), (2, 2));
    let said = trace.report.to_string();
    assert!(said.contains("1 rows are job arrays, of 3 jobs in all"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place_and_remedy() {
    let refused = |rows: &str, expected: &str| {
        let said = read(rows).unwrap_err();
        assert!(said.contains(expected), "{expected}\nis not in\n{said}");
    };
    refused(
        "a,t,1,5,60,4,,\n",
        "line 2, column 6 (cancel_s): \"4\" is before the submission; give a time on the same clock",
    );
    refused(
        "a,t,1,5,60,,4.9,\n",
        "line 2, column 7 (hold_until_s): \"4.9\" is before the submission",
    );
    refused("a,t,1,5,60,,,0\n", "line 2, column 8 (tasks): \"0\" is an array without jobs");
    refused("a,t,1,5,60,,,1.5\n", "line 2, column 8 (tasks): ");
    refused("a,t,1,5,60,,,1000001\n", "line 2, column 8 (tasks): ");
    refused(
        "a,t,1,5,60,,,2\na_1,t,1,5,60,,,\n",
        "line 2: a job of this array is called \"a_1\", as another row is",
    );
}

#[test]
fn an_accepted_slowdown_is_one_or_more_and_survives_being_written() {
    let header = "job_id,tenant,gpus,submit_s,duration_s,gpu_sla\n";
    let read = |rows: &str| {
        let input = Cursor::new(format!("{header}{rows}").into_bytes());
        read_trace_from("t.csv", input, &ReadOptions::default()).map_err(|error| error.to_string())
    };
    let trace = read("a,t,1,5,60,1.25\nb,t,1,5,60,\nc,t,1,6,60,1\n").unwrap();
    let limits = |trace: &Trace| -> Vec<u32> {
        trace.jobs.iter().map(|job| job.slowdown_limit_milli).collect()
    };
    assert_eq!(limits(&trace), [1_250, 0, 1_000]);
    let mut text = Vec::new();
    write_trace(&trace, &mut text).unwrap();
    let again = read_trace_from("u.csv", Cursor::new(text), &ReadOptions::default()).unwrap();
    assert_eq!(limits(&again), limits(&trace));
    for (value, why) in [
        ("0.999", "\"0.999\" is below 1, which no job beside others can keep; give the largest"),
        ("-2", "\"-2\" is negative"),
        ("1000.5", "\"1000.5\" is above the limit of 1000"),
        ("strict", "\"strict\" is not a number; give the largest accepted run time"),
    ] {
        let said = read(&format!("a,t,1,5,60,{value}\n")).unwrap_err();
        let place = "line 2, column 6 (gpu_sla): ";
        assert!(said.contains(place) && said.contains(why), "{said}");
    }
}

#[test]
fn arrays_are_counted_against_the_limit_of_a_trace() {
    let input = Cursor::new(format!("{HEADER}a,t,1,5,60,,,9\n").into_bytes());
    let options = ReadOptions { max_lines: 8, ..ReadOptions::default() };
    let said = read_trace_from("t.csv", input, &options).unwrap_err().to_string();
    assert!(said.contains("its job arrays make 9 jobs, more than 8"), "{said}");
}

#[test]
fn a_written_trace_reads_back_as_the_same_jobs() {
    let trace = read("a,t,1,5,60,70.25,,2\nb,t,2,6,60,,9.000001,\n").unwrap();
    let mut text = Vec::new();
    write_trace(&trace, &mut text).unwrap();
    let again = read_trace_from("u.csv", Cursor::new(text), &ReadOptions::default()).unwrap();
    let told = |trace: &Trace| -> Vec<_> {
        trace
            .jobs
            .iter()
            .map(|job| (job.id.clone(), job.submit, job.cancel, job.hold_until))
            .collect()
    };
    assert_eq!(told(&again), told(&trace));
}
