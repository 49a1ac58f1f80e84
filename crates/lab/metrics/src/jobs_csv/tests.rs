//! `jobs.csv`: what is written, that it reads back, and what is said of a bad one.

use super::*;
use crate::JobRecord;
use crate::sample::{records, shared_records};
use deepshare_model::Span;
use proptest::prelude::*;

const JOBS: [&str; 4] = ["a", "b, with a comma", "c", "d"];
const TENANTS: [&str; 3] = ["alpha", "beta", "gamma"];

fn written(jobs: &[JobRecord]) -> String {
    let names = Names { jobs: &JOBS[..], tenants: &TENANTS[..], users: &["eve"][..] };
    let mut file = Vec::new();
    write_jobs_csv(&mut file, &names, jobs).unwrap();
    String::from_utf8(file).unwrap()
}

fn problem_of(text: impl AsRef<[u8]>) -> String {
    read_jobs_csv(text.as_ref(), "out/fifo/jobs.csv").unwrap_err().to_string()
}

/// The sample's file with one line's text replaced.
fn with(line: usize, old: &str, new: &str) -> String {
    let text = written(&records());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(lines[line - 1].contains(old), "{}", lines[line - 1]);
    lines[line - 1] = lines[line - 1].replacen(old, new, 1);
    lines.join("\n") + "\n"
}

#[test]
fn the_file_is_as_the_contract_has_it() {
    let expected = "\
job_id,tenant,gpus,submit_s,start_s,end_s,queueing_delay_s,jct_s,preemptions,duration_s,\
first_wait_s,jct_minus_duration_s,slowdown,class,user,outcome,work_lost_s,restart_overhead_s,\
restarts_by_failure,refused,shared_s,slowed_s,profile,slowdown_limit,execution_ratio
a,alpha,8,0,0,100,0,100,0,100,0,0,1.000000,guaranteed,eve,succeeded,0,0,0,false,0,0,,,1.000000
\"b, with a comma\",beta,2,10,30,135.5,25.5,125.5,1,50,20,75.5,2.510000,best-effort,u1,failed,\
10,20,0,false,0,0,,,2.000000
c,gamma,1,20,120,,,,0,100,100,,,guaranteed,eve,succeeded,0,0,0,false,0,0,,,
d,alpha,64,30,,,,,0,100,,,,guaranteed,eve,succeeded,0,0,0,true,0,0,,,
";
    assert_eq!(written(&records()), expected);
}

#[test]
fn a_file_reads_back_to_the_records_it_was_written_from() {
    let table = read_jobs_csv(written(&records()).as_bytes(), "jobs.csv").unwrap();
    let mut expected = records();
    expected[2].waited = Span::ZERO; // it has not ended, so the file does not say
    assert_eq!(table.jobs, expected);
    assert_eq!(table.ids, JOBS);
    assert_eq!(table.tenants, TENANTS);
    assert_eq!(table.users, ["eve", "u1"]);
}

#[test]
fn time_beside_another_job_is_written_and_reads_back() {
    let mut jobs = shared_records();
    jobs[2].waited = Span::ZERO; // it has not ended, so the file does not say
    let text = written(&jobs);
    assert!(text.lines().nth(1).unwrap().ends_with("0,false,40,8,c2,,1.080000"), "{text}");
    assert!(text.lines().nth(2).unwrap().ends_with("0,false,40,20,c0,1.25,2.000000"), "{text}");
    jobs.iter_mut().for_each(|job| job.beside.clear()); // the file does not say
    assert_eq!(read_jobs_csv(text.as_bytes(), "jobs.csv").unwrap().jobs, jobs);
}

#[test]
fn files_from_before_jobs_could_share_are_read_as_without_sharing() {
    let text = written(&shared_records()[..2]);
    let older: Vec<&str> = text.lines().filter_map(|line| line.rsplitn(6, ',').last()).collect();
    assert!(older[0].ends_with(",refused") && older[1].ends_with(",false"), "{older:?}");
    let table = read_jobs_csv(older.join("\n").as_bytes(), "jobs.csv").unwrap();
    let mut expected = without_limits();
    for job in &mut expected {
        (job.shared, job.slowed) = (Span::ZERO, Span::ZERO);
    }
    assert_eq!(table.jobs, expected);
}

/// The first two jobs of the shared sample as files from before jobs had limits tell of them.
fn without_limits() -> Vec<JobRecord> {
    let mut jobs = shared_records();
    jobs.truncate(2);
    for job in &mut jobs {
        (job.profile, job.slowdown_limit_milli) = (None, 0);
        job.beside.clear();
    }
    jobs
}

#[test]
fn files_from_before_jobs_had_limits_are_read_as_without_any() {
    let text = written(&shared_records()[..2]);
    let older: Vec<&str> = text.lines().filter_map(|line| line.rsplitn(4, ',').last()).collect();
    assert!(older[0].ends_with(",slowed_s") && older[1].ends_with(",8"), "{older:?}");
    let table = read_jobs_csv(older.join("\n").as_bytes(), "jobs.csv").unwrap();
    assert_eq!(table.jobs, without_limits());
}

#[test]
fn columns_are_found_by_name_and_strange_ones_ignored() {
    let text = written(&records()[..1]);
    let reversed: Vec<String> = text
        .lines()
        .zip(["node", "n7"])
        .map(|(line, extra)| {
            let mut fields: Vec<&str> = line.split(',').rev().collect();
            fields.push(extra);
            fields.join(",")
        })
        .collect();
    let table = read_jobs_csv(reversed.join("\n").as_bytes(), "jobs.csv").unwrap();
    assert_eq!(table.jobs, records()[..1]);
}

#[test]
fn bad_files_are_refused_with_file_line_column_and_remedy() {
    let cases = [
        (String::new(), "out/fifo/jobs.csv: the file is empty; run `deepshare simulate --out DIR`"),
        ("job_id,tenant\n".to_owned(), "line 1: there is no column `gpus`"),
        (with(1, "tenant", "gpus"), "line 1: there is no column `tenant`"),
        (with(1, "refused", "refused,gpus"), "line 1: the column `gpus` is there twice"),
        (with(3, "0,false", "0"), "line 3: 24 fields where the header has 25; the file may be cut"),
        (with(2, ",8,", ",-8,"), "line 2: column `gpus`: `-8` is not a whole number"),
        (with(2, ",8,0,", ",8,,"), "line 2: column `submit_s`: `` is not a number of seconds"),
        (with(3, "30,135.5", "30,1e9"), "line 3: column `end_s`: `1e9` is not a number of seconds"),
        (with(3, "30,135.5", "30,NaN"), "line 3: column `end_s`: `NaN` is not a number"),
        (with(3, "30,135.5", "30,9300000000000"), "`9300000000000` is beyond 292,000 years"),
        (with(3, "30,135.5", "30,29"), "line 3: column `end_s`: `29` is before the start"),
        (with(3, ",30,135.5", ",9,135.5"), "column `start_s`: `9` is before the submission"),
        (with(3, "125.5,1", "125500,1"), "line 3: column `jct_s`: `125500` is not `end_s - submit"),
        (with(3, "25.5,", ","), "column `queueing_delay_s`: `` must be there if the job ended"),
        (with(4, "c,", "a,"), "line 4: column `job_id`: `a` is also the id of line 2"),
        (with(5, "true", "yes"), "line 5: column `refused`: `yes` is none of false, true"),
        (with(1, ",shared_s", ",s"), "line 1: there is no column `shared_s`"),
        (with(1, ",slowed_s", ",s"), "line 1: there is no column `slowed_s`"),
        (with(2, "false,0,0", "false,1,2"), "column `slowed_s`: `2` is more than `shared_s`"),
        (with(2, "false,0,0", "false,,0"), "column `shared_s`: `` is not a number of seconds"),
        (with(1, ",slowdown_limit", ",l"), "line 1: there is no column `slowdown_limit`"),
        (with(2, "0,0,,,", "0,0,3,,"), "column `profile`: `3` is no class of profiles such as"),
        (with(2, "0,0,,,", "0,0,,1.2345,"), "`1.2345` is not a ratio of at most three decimals"),
        (with(2, "0,0,,,", "0,0,,much,"), "column `slowdown_limit`: `much` is not a number"),
        (with(3, "failed", "lost"), "column `outcome`: `lost` is none of succeeded, failed,"),
    ];
    for (text, expected) in cases {
        let problem = problem_of(text);
        assert!(problem.contains(expected), "{problem}\nlacks\n{expected}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let mut bytes = written(&records()[..1]).into_bytes();
    let at = bytes.windows(5).position(|window| window == b"alpha").unwrap();
    bytes[at] = 0xff;
    assert!(problem_of(bytes).contains("line 2: column 2: the text is not UTF-8"));
}

#[test]
fn the_documentation_has_every_column() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/results.md");
    let document = std::fs::read_to_string(path).expect("docs/formats/results.md is there");
    for column in JOB_COLUMNS {
        let row = format!("| `{}` | {} |", column.name, column.definition);
        assert!(document.contains(&row), "docs/formats/results.md lacks the row\n{row}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        at in any::<prop::sample::Index>(),
        junk in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = written(&records()).into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + junk.len()).min(bytes.len()), junk);
        // Either outcome is right: what matters is that there is one.
        if let Ok(table) = read_jobs_csv(&bytes[..], "jobs.csv") {
            prop_assert_eq!(table.jobs.len(), table.ids.len());
        }
    }
}
