//! Any bytes as a cluster file: `cargo +nightly fuzz run cluster`. Start from `tests/fixtures`.

#![no_main]

use deepshare_trace::{ClusterOptions, read_cluster_from};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    match read_cluster_from("input", Cursor::new(bytes.to_vec()), ClusterOptions::default()) {
        Ok(cluster) => assert!(cluster.gpus() > 0),
        Err(error) => assert!(error.to_string().contains("input")),
    }
});
