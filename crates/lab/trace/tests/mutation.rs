//! Damaged files: whatever happens to them, a reader answers with a result or with an error that
//! names the file. Deterministic, so a failure can be repeated from its seed.

use deepshare_model::GpuTypeId;
use deepshare_trace::{
    ClusterOptions, ReadOptions, TimeOptions, read_cluster_from, read_estimates_from, read_trace,
    read_trace_from, write_trace,
};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

const CASES: u64 = 1_500;
/// What damage is made of: what readers treat specially.
const TOKENS: [&[u8]; 24] = [
    b",",
    b"\n",
    b"\r\n",
    b"\"",
    b"\"\"",
    b"-",
    b"1e999",
    b"NaN",
    b"inf",
    b"99999999999999999999",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b"job_id",
    b"2020-09-01 00:02:34",
    b"-9999-01-01 00:00:00",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"[[node]]\n",
    b"[[tenant]]\n",
    b" = ",
    b"{",
    b"9",
    b"9999-12-31 23:59:59",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).expect("the fixture is there")
}

struct Damage(Pcg64Mcg);

impl Damage {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n.max(1) as u64) as usize
    }

    /// A few changes: bytes replaced, parts cut, repeated, or put in from `other`.
    fn of(&mut self, original: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = original.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(40)).min(bytes.len());
            match self.below(7) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part.repeat(1 + self.below(3)));
                }
                4 => {
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(60)).min(other.len());
                    bytes.splice(at..at, other[from..to].iter().copied());
                }
                5 => drop(bytes.splice(at..end, TOKENS[self.below(TOKENS.len())].to_vec())),
                _ => drop(bytes.splice(at..at, TOKENS[self.below(TOKENS.len())].to_vec())),
            }
        }
        bytes
    }
}

/// Damages `names` in turn and shows each result of `read` to the checks.
fn survive<T>(
    names: &[&str],
    encode: impl Fn(Vec<u8>) -> Vec<u8>,
    read: impl Fn(Vec<u8>) -> Result<T, deepshare_trace::TraceError>,
    check: impl Fn(&T),
) {
    let (mut sound, mut refused) = (0, 0);
    for seed in 0..CASES {
        let mut damage = Damage(Pcg64Mcg::new(u128::from(seed) << 1 | 1 << 80));
        let name = names[seed as usize % names.len()];
        let other = names[damage.below(names.len())];
        let bytes = damage.of(&encode(fixture(name)), &fixture(other));
        match read(bytes) {
            Ok(value) => {
                sound += 1;
                check(&value);
            }
            Err(error) => {
                refused += 1;
                let message = error.to_string();
                assert!(message.contains("damaged.file"), "seed {seed} of {name}: {message}");
                assert!(message.len() < 10_000, "seed {seed} of {name}: endless message");
            }
        }
    }
    assert!(sound > 0 && refused > CASES / 5, "damage is too mild: {sound} sound, {refused} not");
}

const TRACES: [&str; 4] = ["helios.csv", "dated.csv", "philly.csv", "deepshare.csv"];

fn check_trace(trace: &deepshare_trace::Trace) {
    assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
    for job in &trace.jobs {
        assert!(job.gpus > 0 && !job.id.is_empty());
        assert!(job.tenant.index() < trace.tenants.len());
        assert!(job.user.index() < trace.users.len());
        assert!(job.gpu_type.is_none_or(|t| t.index() < trace.gpu_types.len()));
    }
    assert!(!trace.report.to_string().is_empty());
    write_trace(trace, &mut Vec::new()).expect("what is read can be written");
}

fn read_damaged(bytes: Vec<u8>) -> Result<deepshare_trace::Trace, deepshare_trace::TraceError> {
    // Both ways to set the clock, by turns.
    let times =
        if bytes.len().is_multiple_of(2) { TimeOptions::lucid() } else { Default::default() };
    let options = ReadOptions { times, ..ReadOptions::default() };
    read_trace_from("damaged.file", Cursor::new(bytes), &options)
}

#[test]
fn damaged_traces_are_read_or_refused() {
    survive(&TRACES, |bytes| bytes, read_damaged, check_trace);
}

#[test]
fn damaged_compressed_traces_are_read_or_refused() {
    let zstd =
        |bytes: Vec<u8>| zstd::encode_all(bytes.as_slice(), 1).expect("memory takes everything");
    survive(&TRACES, zstd, read_damaged, check_trace);
    let gzip = |bytes: Vec<u8>| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    };
    survive(&TRACES, gzip, read_damaged, check_trace);
}

#[test]
fn damaged_cluster_files_are_read_or_refused() {
    let read =
        |bytes| read_cluster_from("damaged.file", Cursor::new(bytes), ClusterOptions::default());
    survive(
        &["cluster.toml", "vc_config.csv", "philly_vc.csv"],
        |bytes| bytes,
        read,
        |cluster| {
            assert!(cluster.gpus() > 0);
            for node in &cluster.nodes {
                assert!(node.tenant.is_none_or(|t| t.index() < cluster.tenants.len()));
                assert!(node.gpu_type.index() < cluster.gpu_types.len());
            }
            for tenant in &cluster.tenants {
                // Would panic if it did not stay in range.
                assert!(tenant.quota.total() >= tenant.quota.of(GpuTypeId(0)));
            }
        },
    );
}

#[test]
fn damaged_estimates_and_orders_are_read_or_refused() {
    let helios = path("helios.csv");
    let trace = read_trace(&helios, &ReadOptions::default()).unwrap();
    survive(
        &["estimates.csv"],
        |bytes| bytes,
        |bytes| read_estimates_from("damaged.file", Cursor::new(bytes), &trace, None),
        |estimates| assert_eq!(estimates.values.len(), trace.jobs.len()),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged.file");
    survive(
        &["estimates.csv"],
        |bytes| String::from_utf8_lossy(&bytes).replace("999,1\n", "").into_bytes(),
        |bytes| {
            std::fs::write(&file, bytes).expect("a temporary file can be written");
            let options = ReadOptions { order: Some(file.clone()), ..ReadOptions::default() };
            read_trace(&helios, &options)
        },
        check_trace,
    );
}
