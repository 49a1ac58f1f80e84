//! Reading profiles and pairs: what the files say, and what is said of what they should not hold.

use deepshare_interference::{
    Assignment, Measured, Mechanism, PairFormat, PairOptions, PairTable, ProfileSource, Workload,
    built_in_profiles, read_pairs, read_profiles, read_profiles_from,
};
use deepshare_trace::{ReadOptions, Trace, read_trace_from};
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn pairs(name: &str) -> PairTable {
    read_pairs(&fixture(name), &PairOptions::default()).expect("the fixture is sound")
}

fn refused(text: &str) -> String {
    let options = PairOptions::default();
    let read = deepshare_interference::read_pairs_from("pairs.csv", text.as_bytes(), &options);
    read.expect_err("the text is no table").to_string()
}

fn workload(model: &str, dataset: &str, batch: u32, mixed_precision: bool) -> Workload {
    Workload { model: model.to_owned(), dataset: dataset.to_owned(), batch, mixed_precision }
}

fn trace(rows: &str) -> Trace {
    let text = format!("job_id,user,vc,gpu_num,submit_time,duration,state\n{rows}");
    let input = Cursor::new(text.into_bytes());
    read_trace_from("log.csv", input, &ReadOptions::default()).expect("the log is sound")
}

fn near(found: Option<Measured>, wanted: f64) -> bool {
    matches!(found, Some(Measured::Retention(value)) if (value - wanted).abs() < 1e-9)
}

#[test]
fn our_own_table_is_found_either_way_round_and_averages_repeated_pairs() {
    let table = pairs("own.csv");
    assert_eq!((table.format, table.mechanism), (PairFormat::Own, Some(Mechanism::Mps)));
    assert_eq!((table.rows().len(), table.workloads().len()), (5, 3));
    let (alpha, beta) = (workload("alpha", "x", 8, false), workload("beta", "", 16, true));
    let gamma = workload("gamma", "y", 0, false);
    assert!(near(table.find(&alpha, &beta), 0.85));
    assert!(near(table.find(&beta, &alpha), 0.55));
    assert!(near(table.find(&alpha, &alpha), 0.725));
    assert_eq!(table.find(&beta, &gamma), Some(Measured::DoesNotFit));
    assert_eq!(table.find(&gamma, &beta), Some(Measured::DoesNotFit));
    assert_eq!(table.find(&gamma, &gamma), None);
}

#[test]
fn lucid_s_table_says_time_slicing_and_names_gpus() {
    let table = pairs("lucid.csv");
    assert_eq!((table.format, table.mechanism), (PairFormat::Lucid, Some(Mechanism::TimeSlicing)));
    let one = workload("alpha", "x", 8, false);
    assert!(near(table.find(&one, &workload("beta", "y", 16, true)), 0.9));
    assert!(near(table.find(&workload("alpha (2 GPUs)", "x", 8, false), &one), 1.2));
}

#[test]
fn blox_s_table_skips_jobs_alone_and_keeps_what_did_not_fit() {
    let table = pairs("blox.csv");
    assert_eq!((table.format, table.left_out, table.rows().len()), (PairFormat::Blox, 1, 2));
    let llm = workload("llm (2 GPUs, 10,14, micro-batch 16)", "text", 256, false);
    assert!(near(table.find(&llm, &workload("cnn (2 GPUs)", "photos", 32, false)), 0.5));
    let (small, large) =
        (workload("cnn", "photos", 32, false), workload("cnn", "photos", 64, false));
    assert_eq!(table.find(&large, &small), Some(Measured::DoesNotFit));
}

#[test]
fn gavel_s_throughputs_need_a_gpu_type_and_become_retentions() {
    let why = read_pairs(&fixture("gavel.json"), &PairOptions::default()).unwrap_err().to_string();
    assert!(why.contains("2 GPU types") && why.contains("choose one of k80, v100"), "{why}");
    let of = |name: &str| PairOptions { gpu_type: Some(name.to_owned()), format: None };
    let why = read_pairs(&fixture("gavel.json"), &of("h100")).unwrap_err().to_string();
    assert!(why.contains("no GPU type \"h100\""), "{why}");
    let table = read_pairs(&fixture("gavel.json"), &of("k80")).unwrap();
    assert_eq!((table.format, table.rows().len(), table.left_out), (PairFormat::Gavel, 4, 1));
    let (net, agent) = (workload("net", "", 16, false), workload("agent", "", 0, false));
    assert!(near(table.find(&net, &net), 0.5));
    assert!(near(table.find(&net, &agent), 0.75));
    assert!(near(table.find(&agent, &net), 0.5));
    assert_eq!(table.find(&agent, &agent), Some(Measured::DoesNotFit));
}

#[test]
fn bad_pairs_are_refused_with_line_column_and_remedy() {
    let head = "model_a,dataset_a,batch_a,amp_a,retention_a,model_b,dataset_b,batch_b,amp_b,\
                retention_b\n";
    let row = |row: &str| refused(&format!("{head}{row}\n"));
    for (row, says) in [
        (
            row("a,,8,0,x,b,,8,0,1"),
            "pairs.csv: line 2, column 5 (retention_a): \"x\" is not a number",
        ),
        (row("a,,8,0,-1,b,,8,0,1"), "is negative"),
        (row("a,,8,2,1,b,,8,0,1"), "column 4 (amp_a): \"2\" is neither 0 nor 1"),
        (row("a,,8,0,0,b,,8,0,0.5"), "column 5 (retention_a): \"0\" is 0 where the other's is not"),
        (
            row("a,,8,0,0.5,b,,8,0,0"),
            "column 10 (retention_b): \"0\" is 0 where the other's is not",
        ),
        (row(",,8,0,1,b,,8,0,1"), "column 1 (model_a): \"\" is empty"),
        (row("a,,1.5,0,1,b,,8,0,1"), "column 3 (batch_a): \"1.5\" is not a whole number"),
        (refused("model_a,retention_a\n"), "the header lacks dataset_a and batch_a"),
        (refused("a,b\n1,2\n"), "of no known table of pairs"),
        (refused(head), "there is no pair in it"),
        (refused(""), "the file is empty"),
        (refused("{\"k80\": 3}"), "line 1, column 9: no throughputs"),
        (refused("{\"k80\": {\"('a', 1)\": {\"('a', 1)\": [1, 1]}}}"), "no speed alone"),
        (refused("{\"k80\": {\"a\": {\"a\": [1, 1], \"null\": 2}}}"), "a name that is not"),
    ] {
        assert!(row.contains(says), "{row}\nlacks {says}");
    }
}

#[test]
fn jobs_of_one_workload_have_one_class_with_the_mean_of_their_rows() {
    let file = read_profiles(&fixture("profiles.csv")).unwrap();
    let trace =
        trace("j1,u,t,1,0,10,COMPLETED\nj2,u,t,1,1,10,COMPLETED\nj3,u,t,1,2,10,COMPLETED\n");
    let assignment = Assignment::from_file(&file, &trace).unwrap();
    assert_eq!(assignment.catalogue.len(), 2);
    assert_eq!(assignment.averaged, 1);
    assert_eq!(assignment.of_job[0], assignment.of_job[2]);
    let alpha = assignment.catalogue.get(assignment.of_job[0]);
    assert_eq!((alpha.compute, alpha.bandwidth, alpha.memory_mib), (0.5, 0.2, 2_500));
    assert_eq!(alpha.throughput, Some(120.5));
    let beta = assignment.catalogue.get(assignment.of_job[1]);
    assert_eq!((beta.memory_mib, beta.throughput), (9_001, None));
    let (one, two) = (assignment.of_job[0], assignment.of_job[1]);
    assert!(assignment.catalogue.fits(one, two, 11_501));
    assert!(!assignment.catalogue.fits(one, two, 11_500));
}

#[test]
fn a_job_without_a_profile_and_a_bad_row_are_refused() {
    let file = read_profiles(&fixture("profiles.csv")).unwrap();
    let jobs = trace("j1,u,t,1,0,10,COMPLETED\nlost,u,t,1,1,10,COMPLETED\n");
    let why = Assignment::from_file(&file, &jobs).unwrap_err().to_string();
    assert!(why.contains("no profile for 1 jobs of the trace: \"lost\""), "{why}");
    assert!(why.contains("draw all profiles with a seed"), "{why}");
    let read = |text: &str| {
        let input = Cursor::new(text.as_bytes().to_vec());
        read_profiles_from("p.csv", input).unwrap_err().to_string()
    };
    let head = "job_id,model,batchsize,gpu_util,gmem_util,gmem\n";
    let why = read(&format!("{head}a,m,1,101,5,100\na,m,1,50,5,100\na,m,1,50,5,100\n"));
    assert!(
        why.contains("line 2, column 4 (gpu_util): \"101\" is above the limit of 100"),
        "{why}"
    );
    assert!(why.contains("line 4, column 1 (job_id): \"a\" is on line 3 too"), "{why}");
    assert!(read("job_id,model\n").contains("the header lacks batchsize and gpu_util"));
}

#[test]
fn drawn_profiles_depend_on_the_seed_alone_and_get_heavier_with_the_gang() {
    let mut rows = String::new();
    for job in 0..4_000 {
        let gpus = if job % 2 == 0 { 1 } else { 32 };
        rows.push_str(&format!("{job},u,t,{gpus},{job},10,COMPLETED\n"));
    }
    let trace = trace(&rows);
    let drawn = Assignment::drawn(&trace, 7);
    assert_eq!(drawn, Assignment::drawn(&trace, 7));
    assert_ne!(drawn.of_job, Assignment::drawn(&trace, 8).of_job);
    assert_eq!(drawn.source, ProfileSource::Drawn { seed: 7 });
    assert_eq!((drawn.catalogue.len(), drawn.catalogue == built_in_profiles()), (20, true));
    let mean = |first: usize| {
        let of = drawn.of_job.iter().skip(first).step_by(2);
        of.map(|class| drawn.catalogue.get(*class).compute).sum::<f64>() / 2_000.0
    };
    assert!(mean(0) < 0.4 && mean(1) > 0.6, "{} {}", mean(0), mean(1));
}
