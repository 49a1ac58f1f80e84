//! Damaged files: whatever happens to them, the answer is a result or an error that says where.

use crate::{
    LucidInputs, LucidSettings, Tables, read_forecast_from, read_scores_from, run_record, simulate,
};
use deepshare_interference::{PairOptions, read_pairs_from, read_profiles_from};
use deepshare_model::Span;
use deepshare_trace::{ClusterOptions, ReadOptions, Trace, read_cluster_from, read_trace_from};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::io::Cursor;

const VCS: &str = "vc,num\nvcEwI,2\nvcefl,2\nvcYVn,1\n";
const JOBS: &str = "job_id,user,vc,gpu_num,submit_time,duration\n\
    1,u,vcEwI,1,10,300\n2,u,vcEwI,1,20,400\n3,u,vcYVn,8,30,500\n4,u,vcefl,8,40,90\n\
    5,v,vcEwI,1,50,600\n6,v,vcEwI,16,60,10\n";
const PROFILES: &str = "job_id,dataset,model,batchsize,amp,speed,gpu_util,gmem_util,gmem\n\
    1,CIFAR-10,VGG,64,1,9.5,62.0,34.0,3642.0\n2,CIFAR-10,VGG,64,0,9.5,62.0,34.0,3642.5\n\
    3,MovieLens,NeuMF,128,0,9,1,2,2050\n4,CIFAR-10,VGG,64,1,9.5,62,34,3642.0\n\
    5,CIFAR-10,VGG,64,1,9.5,62,34,3642.0\n6,CIFAR-10,VGG,64,1,9.5,62,34,3642.0\n7,,,,,,,,\n";
const PAIRS: &str = ",model1,dataset1,gpu_num1,batchsize1,amp1,speed1,model2,dataset2,gpu_num2,\
    batchsize2,amp2,speed2,gpu_util,gmem_util,gmem\n\
    0,VGG,CIFAR-10,1,64,1,0.8,VGG,CIFAR-10,1,64,0,0.7,1,1,1\n\
    1,VGG,CIFAR-10,1,64,1,0.6,VGG,CIFAR-10,1,64,1,0.5,1,1,1\n";
const SCORES: &str = "model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label\n\
    VGG,CIFAR-10,64,0,1,1,1,1,1\nVGG,CIFAR-10,64,1,1,1,1,1,0\nNeuMF,MovieLens,128,0,1,1,1,1,0\n";
const FORECAST: &str = "time,submit_gpu_job,submit_gpu_num,pred_gpu_job,pred_gpu_num\n\
    2020-09-01 00:00:00,12,118,5.4,28.8\n2020-09-01 00:10:00,13,175,-0.8,31.9\n\
    2020-09-01 00:20:00,8,46,9.9,31.0\n";
const TOKENS: [&str; 16] = [
    ",",
    "\n",
    "\"",
    "-",
    "NaN",
    "1e999",
    "99999999999999999999",
    "\u{feff}",
    "0",
    "é",
    "\0",
    "0.05",
    "2020-09-01 00:20:00",
    "job_id",
    "VGG",
    "inf",
];

fn files() -> [(&'static str, Vec<u8>); 4] {
    [
        ("profiles.csv", PROFILES),
        ("pairs.csv", PAIRS),
        ("scores.csv", SCORES),
        ("forecast.csv", FORECAST),
    ]
    .map(|(name, text)| (name, text.as_bytes().to_vec()))
}

fn options() -> ReadOptions {
    let tenants = ["vcEwI", "vcefl", "vcYVn"].map(str::to_owned).to_vec();
    ReadOptions { known_tenants: Some(tenants), ..ReadOptions::default() }
}

fn trace() -> Trace {
    read_trace_from("jobs.csv", JOBS.as_bytes(), &options()).unwrap()
}

/// Reads the tables and runs the jobs.
fn run(trace: &Trace, files: &[(&'static str, Vec<u8>); 4]) -> Result<usize, String> {
    let file = |at: usize| (files[at].0, Cursor::new(files[at].1.clone()));
    let read = || -> Result<Tables, deepshare_trace::TraceError> {
        Ok(Tables {
            profiles: read_profiles_from(file(0).0, file(0).1)?,
            pairs: read_pairs_from(files[1].0, &files[1].1, &PairOptions::default())?,
            scores: read_scores_from(file(2).0, file(2).1)?,
            forecast: read_forecast_from(file(3).0, file(3).1)?,
        })
    };
    let tables = read().map_err(|error| error.to_string())?;
    let cluster = read_cluster_from("vcs.csv", VCS.as_bytes(), ClusterOptions::default()).unwrap();
    let estimates = vec![Span::from_secs(100); trace.jobs.len()];
    let inputs = LucidInputs::new(trace, &cluster, tables, &estimates);
    let inputs = inputs.map_err(|error| error.to_string())?;
    let outcome =
        simulate(&inputs, &LucidSettings::default()).map_err(|error| error.to_string())?;
    let record = run_record(trace, &outcome, String::new());
    Ok(record.jobs.iter().filter(|job| job.end.is_some()).count())
}

#[test]
fn damaged_tables_give_a_result_or_an_error_that_names_the_file() {
    assert_eq!(run(&trace(), &files()), Ok(6));
    let (mut good, mut bad) = (0, 0);
    for seed in 0..2_500 {
        let mut dice = Pcg64Mcg::new(seed);
        let mut below = |n: usize| (dice.next_u64() % n.max(1) as u64) as usize;
        let mut files = files();
        let which = below(4);
        let bytes = &mut files[which].1;
        for _ in 0..1 + below(3) {
            let at = below(bytes.len() + 1);
            let end = (at + below(30)).min(bytes.len());
            match below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << below(8),
                2 => drop(bytes.splice(at..end, TOKENS[below(16)].bytes())),
                3 => drop(bytes.splice(at..at, TOKENS[below(16)].bytes())),
                _ => {
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        match run(&trace(), &files) {
            Ok(ended) => {
                assert_eq!(ended, 6, "seed {seed}");
                good += 1;
            }
            Err(said) => {
                // A name that is damaged in one table may be missed in another.
                assert!(files.iter().any(|file| said.contains(file.0)), "seed {seed}: {said}");
                bad += 1;
            }
        }
    }
    assert!(good > 100 && bad > 100, "{good} good, {bad} bad: no test of much");
}

#[test]
fn what_tables_lack_of_a_job_is_named_with_the_job_and_the_file() {
    let without = |which: usize, line: &str| {
        let mut files = files();
        let text = String::from_utf8(files[which].1.clone()).unwrap();
        let kept = text.lines().filter(|kept| !kept.starts_with(line));
        files[which].1 = kept.map(|line| line.to_owned() + "\n").collect::<String>().into_bytes();
        run(&trace(), &files).unwrap_err()
    };
    let said = without(0, "3,");
    assert_eq!(
        said,
        "profiles.csv: no profile for 1 jobs of the trace, the first \"3\"; add a row for each"
    );
    let said = without(2, "NeuMF");
    assert!(said.contains("scores.csv: no score for NeuMF on MovieLens, batch 128"), "{said}");
    assert!(said.contains("which job \"3\" computes"), "{said}");
    assert!(said.contains("add a row with its model, dataset, batchsize"), "{said}");
    let said = without(1, "0,");
    assert!(said.contains("pairs.csv: there is no row for VGG on CIFAR-10"), "{said}");
}

#[test]
fn pairs_that_the_artifact_could_not_have_are_refused_with_their_line() {
    let with = |row: &str| {
        let mut files = files();
        files[1].1 = format!("{PAIRS}{row}\n").into_bytes();
        run(&trace(), &files)
    };
    let said = with("2,VGG,CIFAR-10,1,64,0,0.04,VGG,CIFAR-10,1,64,0,0.7,1,1,1").unwrap_err();
    assert!(said.contains("pairs.csv: line 4: VGG on CIFAR-10, batch 64 beside"), "{said}");
    assert!(said.contains("goes at less than 0.05"), "{said}");
    let said = with("2,VGG,CIFAR-10,1,64,1,0.8,VGG,CIFAR-10,1,64,0,0.7,1,1,1").unwrap_err();
    assert!(said.contains("is there a second time; give one row a pair"), "{said}");
    // Nobody in the trace computes this.
    assert_eq!(with("2,GPT,text,1,64,1,0.01,VGG,CIFAR-10,1,64,0,0.7,1,1,1"), Ok(6));
}

#[test]
fn times_that_the_artifact_would_wait_for_without_end_are_refused() {
    let with = |rows: &str| {
        let text = format!("{JOBS}{rows}");
        let trace = read_trace_from("jobs.csv", Cursor::new(text.into_bytes()), &options());
        run(&trace.unwrap(), &files()).unwrap_err()
    };
    let said = with("7,v,vcEwI,1,70,0\n8,v,vcEwI,1,70,1.5\n9,v,vcEwI,1,71.5,9\n");
    for what in [
        "line 8: job \"7\" runs for no time",
        "line 9: job \"8\" runs for a fraction",
        "line 10: job \"9\" is submitted at a fraction",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
}

#[test]
fn a_forecast_is_placed_by_date_and_one_of_another_time_is_refused() {
    let dated =
        "job_id,user,vc,gpu_num,submit_time,duration\n1,u,vcEwI,1,2020-09-02 12:00:00,300\n";
    let place = |origin: &str, from: &str| {
        let mut trace = read_trace_from("jobs.csv", dated.as_bytes(), &options()).unwrap();
        let midnight = trace.report.origin.replace(origin.to_owned());
        assert_eq!(midnight.as_deref(), Some("2020-09-02 00:00:00"));
        let mut files = files();
        let text = FORECAST.replace("2020-09-01", from);
        files[3].1 = text.into_bytes();
        let tables = Tables {
            profiles: read_profiles_from("p", PROFILES.as_bytes()).unwrap(),
            pairs: read_pairs_from("p", PAIRS.as_bytes(), &PairOptions::default()).unwrap(),
            scores: read_scores_from("s", SCORES.as_bytes()).unwrap(),
            forecast: read_forecast_from("forecast.csv", Cursor::new(files[3].1.clone())).unwrap(),
        };
        let cluster = read_cluster_from("vcs.csv", VCS.as_bytes(), ClusterOptions::default());
        let inputs = LucidInputs::new(&trace, &cluster.unwrap(), tables, &[Span::SECOND]);
        inputs.map(|inputs| inputs.forecast_start_s).map_err(|error| error.to_string())
    };
    assert_eq!(place("2020-09-02 00:00:00", "2020-09-02"), Ok(0));
    // Clocks that start near midnight are taken to start then, as the artifact's is.
    assert_eq!(place("2020-09-01 00:02:31", "2020-09-01"), Ok(0));
    assert_eq!(place("2020-08-31 23:57:00", "2020-09-01"), Ok(0));
    assert_eq!(place("2020-09-01 20:00:00", "2020-09-02"), Ok(4 * 3_600));
    assert_eq!(place("2020-09-01 00:00:00", "2020-09-01"), Ok(0));
    let said = place("2020-09-02 00:00:00", "2021-09-01").unwrap_err();
    assert!(said.contains("forecast.csv: the forecast is from 2021-09-01T00:00:00 on"), "{said}");
}
