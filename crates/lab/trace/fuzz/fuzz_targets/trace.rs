//! Any bytes as a trace: `cargo +nightly fuzz run trace`. Start from `tests/fixtures`.

#![no_main]

use deepshare_trace::{
    ReadOptions, TimeOptions, read_estimates_from, read_trace_from, write_trace,
};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let input = || Cursor::new(bytes.to_vec());
    for times in [TimeOptions::default(), TimeOptions::lucid()] {
        let options = ReadOptions { times, ..ReadOptions::default() };
        match read_trace_from("input", input(), &options) {
            Ok(trace) => {
                assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
                write_trace(&trace, &mut Vec::new()).expect("names read are names written");
                let _ = read_estimates_from("input", input(), &trace, None);
            }
            Err(error) => assert!(error.to_string().contains("input")),
        }
    }
});
