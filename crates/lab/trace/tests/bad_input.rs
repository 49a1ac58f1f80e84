//! Files that cannot be replayed, and what their owners are told.

use deepshare_trace::{ReadOptions, TimeUnit, Trace, TraceError, read_trace_from};
use std::io::{Cursor, Read, Write};

const HEADER: &str = "job_id,user,vc,gpu_num,cpu_num,state,submit_time,duration";

fn read(bytes: impl Into<Vec<u8>>) -> Result<Trace, TraceError> {
    read_trace_from("log.csv", Cursor::new(bytes.into()), &ReadOptions::default())
}

/// The message about a log with these rows under the Helios header.
fn message(rows: &str) -> String {
    read(format!("{HEADER}\n{rows}")).expect_err("the log is bad").to_string()
}

fn contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn a_bad_value_is_named_with_file_line_column_reason_and_remedy() {
    assert_eq!(
        message("1,u,v,1,1,COMPLETED,0,5\n2,u,v,one,1,COMPLETED,0,5\n"),
        "log.csv: line 3, column 4 (gpu_num): \"one\" is not a number; \
         give the number of GPUs the job runs on"
    );
}

#[test]
fn every_kind_of_impossible_number_is_refused() {
    for (row, parts) in [
        ("1,u,v,1,1,COMPLETED,-1,5", ["column 7 (submit_time)", "\"-1\" is negative"]),
        ("1,u,v,1,1,COMPLETED,0,-5", ["column 8 (duration)", "\"-5\" is negative"]),
        ("1,u,v,1,1,COMPLETED,0,NaN", ["column 8 (duration)", "is not a finite number"]),
        ("1,u,v,1,1,COMPLETED,inf,5", ["column 7 (submit_time)", "is not a finite number"]),
        ("1,u,v,1,1,COMPLETED,,5", ["column 7 (submit_time)", "is empty"]),
        ("1,u,v,1.5,1,COMPLETED,0,5", ["column 4 (gpu_num)", "is not a whole number"]),
        ("1,u,v,1e7,1,COMPLETED,0,5", ["column 4 (gpu_num)", "above the limit of 1000000"]),
        ("1,u,v,1,1,COMPLETED,0,4e9", ["column 8 (duration)", "above the limit of 3155760000"]),
        ("1,u,v,1,1,COMPLETED,0,1e99", ["column 8 (duration)", "above the limit"]),
        ("1,u,v,1,-2,COMPLETED,0,5", ["column 5 (cpu_num)", "is negative"]),
        ("1,u,v,1,1,DONE,0,5", ["column 6 (state)", "\"DONE\" is not a known state"]),
        (",u,v,1,1,COMPLETED,0,5", ["column 1 (job_id)", "is empty"]),
        ("1\r2,u,v,1,1,COMPLETED,0,5", ["column 1 (job_id)", "holds a control character"]),
        ("1,\0,v,1,1,COMPLETED,0,5", ["column 2 (user)", "holds a control character"]),
        ("1,u,,1,1,COMPLETED,0,5", ["column 3 (vc)", "is empty"]),
        ("1,u,v,1,1,COMPLETED,0,0x10", ["column 8 (duration)", "is not a number"]),
    ] {
        let message = message(row);
        contains(&message, &["log.csv: line 2", parts[0], parts[1]]);
    }
}

#[test]
fn all_problems_are_listed_together_up_to_a_limit() {
    let message = message("1,u,v,x,1,WHAT,-3,\n2,u,v\n3,u,v,1,1,COMPLETED,zero,1\n");
    contains(
        &message,
        &[
            "log.csv: 6 problems",
            "line 2, column 4",
            "line 2, column 6",
            "line 2, column 7",
            "line 2, column 8",
            "line 3: 3 fields where the header has 8",
            "line 4, column 7",
        ],
    );
    let many: String = (0..50).map(|id| format!("{id},u,v,x,1,COMPLETED,0,1\n")).collect();
    let message = self::message(&many);
    contains(&message, &["50 problems", "line 21,", "and 30 more"]);
    assert!(!message.contains("line 22,"), "{message}");
}

#[test]
fn an_id_given_twice_names_both_lines() {
    let rows = "7,u,v,1,1,COMPLETED,0,1\n8,u,v,1,1,COMPLETED,0,1\n7,u,v,1,1,COMPLETED,9,1\n";
    contains(&message(rows), &["line 4, column 1 (job_id)", "job \"7\" is on line 2 too"]);
}

#[test]
fn figures_that_look_like_another_unit_are_refused_until_the_unit_is_named() {
    let late = "1,u,v,1,1,COMPLETED,1598918554000,97000\n";
    contains(
        &message(late),
        &["line 2, column 7 (submit_time)", "milliseconds", "--set trace.time-unit=ms"],
    );
    let long = "1,u,v,1,1,COMPLETED,0,9700000\n2,u,v,1,1,COMPLETED,5,8700000\n";
    contains(&message(long), &["half of the durations", "--set trace.time-unit=ms"]);
    let options = ReadOptions { time_unit: Some(TimeUnit::Millis), ..ReadOptions::default() };
    let text = format!("{HEADER}\n{late}");
    let trace = read_trace_from("log.csv", Cursor::new(text), &options).unwrap();
    assert_eq!(trace.jobs[0].submit.0, 1_598_918_554_000_000);
    assert_eq!(trace.jobs[0].duration.0, 97_000_000);
    let options = ReadOptions { time_unit: Some(TimeUnit::Seconds), ..ReadOptions::default() };
    let text = format!("{HEADER}\n{long}");
    let trace = read_trace_from("log.csv", Cursor::new(text), &options).unwrap();
    assert_eq!(trace.jobs[0].duration.0, 9_700_000_000_000);
}

#[test]
fn missing_columns_are_all_named_at_once() {
    let message = read("job_id,user,vc\n1,u,v\n").unwrap_err().to_string();
    contains(&message, &["log.csv: line 1", "gpu_num, submit_time, duration", "helios"]);
    let message = read("job_id,tenant,gpus\n1,u,1\n").unwrap_err().to_string();
    contains(&message, &["submit_s, duration_s", "deepshare"]);
    let message = read("job_id;vc;gpu_num\n1;v;1\n").unwrap_err().to_string();
    contains(&message, &["separate fields by commas"]);
}

#[test]
fn a_column_given_twice_is_refused_if_it_is_used() {
    let message = read(format!("{HEADER},vc\n1,u,v,1,1,COMPLETED,0,5,w\n")).unwrap_err();
    contains(&message.to_string(), &["line 1, column 9 (vc)", "column 3 has this name too"]);
    read(format!("note,{HEADER},note\nx,1,u,v,1,1,COMPLETED,0,5,w\n")).unwrap();
}

#[test]
fn empty_files_and_bare_headers_are_refused() {
    contains(&read("").unwrap_err().to_string(), &["log.csv", "the file is empty"]);
    contains(&read("\n \n").unwrap_err().to_string(), &["log.csv", "the file is empty"]);
    contains(&message(""), &["log.csv", "no rows below the header"]);
    let dropped = message("1,u,v,0,1,COMPLETED,0,5\n");
    contains(&dropped, &["none of its 1 rows", "1 ask for no GPU"]);
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    let mut bytes = format!("{HEADER}\n1,u,v,1,1,COMPLETED,0,5\n2,u,v").into_bytes();
    bytes.extend(b"\xff,1,1,COMPLETED,0,5\n");
    let message = read(bytes).unwrap_err().to_string();
    contains(&message, &["line 3, column 3 (vc)", "not valid UTF-8"]);
    let message = read(b"job_id,\xe9\n1,2\n".to_vec()).unwrap_err().to_string();
    contains(&message, &["line 1, column 2", "not valid UTF-8"]);
    let message = read(b"\xff\xfej\0o\0b\0".to_vec()).unwrap_err().to_string();
    contains(&message, &["log.csv", "UTF-16"]);
    contains(&read(b"PK\x03\x04xx".to_vec()).unwrap_err().to_string(), &["spreadsheet"]);
}

#[test]
fn a_quote_left_open_is_refused_on_its_line() {
    let message = message("1,\"u,v,1,1,COMPLETED,0,5\n2,u,v,1,1,COMPLETED,0,5\n");
    contains(&message, &["line 2, column 2 (user)", "is opened and not closed"]);
}

#[test]
fn gigantic_lines_and_files_are_refused_without_being_held() {
    let endless = std::io::repeat(b'x');
    let error = read_trace_from("log.csv", endless, &ReadOptions::default()).unwrap_err();
    contains(&error.to_string(), &["log.csv: line 1", "more than 1 MiB without a line break"]);
    let options = ReadOptions { max_lines: 3, ..ReadOptions::default() };
    let row = "1,u,v,0,1,COMPLETED,0,5\n";
    let text = format!("{HEADER}\n{row}{row}{row}");
    let error = read_trace_from("log.csv", Cursor::new(text), &options).unwrap_err();
    contains(&error.to_string(), &["log.csv: line 4", "more than 3 lines"]);
    let message = message(&format!("{}\n", ",".repeat(1 << 19)));
    contains(&message, &["line 2: 524289 fields where the header has 8"]);
    let message = self::message(&format!("1,u,v,{},1,COMPLETED,0,5\n", "z".repeat(100_000)));
    assert!(message.len() < 300, "a long value fills the screen: {}", message.len());
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

#[test]
fn compressed_files_are_recognised_by_content_and_refused_when_cut() {
    let rows: String = (0..500).map(|id| format!("{id},u,v,1,1,COMPLETED,{id},5\n")).collect();
    let text = format!("{HEADER}\r\n{}", rows.replace('\n', "\r\n")).into_bytes();
    let (first, second) = text.split_at(3_000);
    let members = [gzip(first), gzip(second)].concat();
    let zstd = zstd::encode_all(text.as_slice(), 3).unwrap();
    let plain = read(text.clone()).unwrap();
    for whole in [gzip(&text), members, zstd] {
        assert_eq!(read(whole.clone()).unwrap(), plain);
        for left in [whole.len() - 1, whole.len() / 2, 20] {
            let error = read(&whole[..left]).unwrap_err();
            assert!(matches!(error, TraceError::Read { .. }), "{error}");
            contains(&error.to_string(), &["log.csv", "truncated or damaged"]);
        }
    }
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_name() {
    let text = format!("\u{feff}{HEADER}\n1,u,v,1,1,COMPLETED,0,5");
    let trace = read(text).unwrap();
    assert_eq!(trace.jobs[0].id, "1");
    contains(&trace.report.to_string(), &["may be cut short"]);
}

#[test]
fn a_file_that_is_not_there_or_fails_is_named() {
    let absent = deepshare_trace::read_trace("no/such.csv".as_ref(), &ReadOptions::default());
    contains(&absent.unwrap_err().to_string(), &["no/such.csv", "check the path"]);
    let folder = deepshare_trace::read_trace("tests".as_ref(), &ReadOptions::default());
    contains(&folder.unwrap_err().to_string(), &["cannot open tests", "folder"]);
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    let error = read_trace_from("log.csv", Broken, &ReadOptions::default()).unwrap_err();
    contains(&error.to_string(), &["log.csv", "the disk is on fire"]);
}

#[test]
fn numbers_and_dates_may_not_be_mixed() {
    let date = "2,u,v,1,1,COMPLETED,2020-09-01 00:00:00,5\n";
    let number = "1,u,v,1,1,COMPLETED,7,5\n";
    contains(&message(&format!("{number}{date}")), &["line 3", "a date where line 2 has a number"]);
    contains(&message(&format!("{date}{number}")), &["line 3", "a number where earlier rows"]);
    let zoned = message(&format!("{date}1,u,v,1,1,COMPLETED,2020-09-01 00:00:00Z,5\n"));
    contains(&zoned, &["line 3, column 7", "is not a date and time"]);
}
