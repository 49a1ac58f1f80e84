//! What `simulate` prints and writes.

use crate::running::{hashes, names, run, run_in};
use serde_json::json;
use std::fs;

const EXAMPLE: [&str; 5] =
    ["simulate", "--trace", "examples/trace.csv", "--cluster", "examples/cluster.toml"];

fn example<'a>(more: &[&'a str]) -> Vec<&'a str> {
    EXAMPLE.iter().chain(more).copied().collect()
}

#[test]
fn the_table_names_everything_a_reader_must_know() {
    let done = run(&example(&[]));
    for word in ["examples/trace.csv: 32 jobs of 2 tenants", "24 GPUs in 3 nodes", "seed 1"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    // Nodes are nobody's, and tenants have quotas.
    let modes = "capacity hard; elastic for elastic-quota, deepshare, seed 1";
    assert!(done.out.contains(modes), "{}", done.out);
    let rows: Vec<Vec<&str>> =
        done.out.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    let expected = [
        ["fifo", "-"],
        ["sjf", "oracle"],
        ["srtf", "oracle"],
        ["qssf", "running-mean"],
        ["tiresias", "-"],
        ["lucid", "running-mean"],
        ["easy-backfill", "oracle"],
        ["conservative-backfill", "oracle"],
        ["elastic-quota", "-"],
        ["sjf-bsbf", "oracle"],
        ["sjf-ffs", "oracle"],
        ["tensorshare", "oracle"],
        ["gandiva", "-"],
        ["deepshare", "running-mean"],
    ];
    let first = rows.iter().position(|row| row == &expected[0]).expect("fifo has a row");
    assert_eq!(rows[first..first + expected.len()], expected);
    assert_eq!(rows[first + expected.len()][0], "lower-bound");
    assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{}", done.out);
    assert!(done.err.contains("examples/trace.csv: 32 of 32 rows are jobs"), "{}", done.err);
}

#[test]
fn jobs_csv_starts_with_the_contract_and_keeps_trace_order() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    run(&example(&["--policy", "srtf", "--policy", "fifo", "--out", out.to_str().unwrap()])).ok();
    assert_eq!(names(&out), ["fifo", "run.json", "settings.toml", "srtf"]);
    assert_eq!(names(&out.join("fifo")), ["jobs.csv", "summary.json"]);
    assert_eq!(names(folder.path()), ["results"], "nothing is left beside it");
    let jobs = fs::read_to_string(out.join("fifo/jobs.csv")).unwrap();
    let contract = "job_id,tenant,gpus,submit_s,start_s,end_s,queueing_delay_s,jct_s,preemptions,";
    assert!(jobs.starts_with(contract), "{jobs}");
    let ids: Vec<String> =
        jobs.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect();
    let expected: Vec<String> = (1..=32).map(|id| id.to_string()).collect();
    assert_eq!(ids, expected);
    assert!(jobs.contains("\n1,vision,8,0,0,14400,0,14400,0,"), "the first job starts at once");
    let of_folder: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("srtf/summary.json")).unwrap()).unwrap();
    assert_eq!(of_folder["runs"][0], summary, "policies come in the order they were asked for");
}

#[test]
fn json_is_one_object_with_the_contract_of_scripts() {
    let object = run(&example(&["--json", "--policy", "qssf", "--seed", "7"])).json();
    assert_eq!(object["deepshare"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!(object["seed"], json!(7));
    assert_eq!(object["trace"]["jobs"], json!(32));
    assert_eq!(object["cluster"]["gpus"], json!(24));
    assert_eq!(object["settings"]["capacity"], json!("hard"), "what was decided, not `auto`");
    assert_eq!(object["settings"]["restart.overhead_s"], json!(40));
    let runs = object["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["policy"], json!("qssf"));
    assert_eq!(runs[0]["estimates"], json!("running-mean"));
    let figures = ["jct_mean_s", "queueing_delay_mean_s", "makespan_s", "preemptions"];
    assert!(figures.iter().all(|&figure| runs[0][figure].is_number()), "{}", runs[0]);
    assert_eq!(runs[0]["result_hash"].as_str().unwrap().len(), 32);
}

#[test]
fn where_quotas_are_guarantees_the_run_says_how_well_they_were_kept() {
    let elastic = ["--policy", "deepshare", "--set", "capacity=elastic"];
    let object = run(&example(&[&elastic[..], &["--json"]].concat())).json();
    let figures = &object["runs"][0];
    assert_eq!(figures["avoidable_s"], json!(0.0), "{figures}");
    assert_eq!(figures["avoidable_first"], json!(null));
    assert!(figures["qad_compliance"].as_f64().unwrap() > 0.0);
    let worst = figures["worst_tenant"].as_str().unwrap();
    let tenants = figures["by_tenant"].as_array().unwrap();
    let of = tenants.iter().find(|tenant| tenant["tenant"] == worst).unwrap();
    assert_eq!(of["qad_mean"], figures["qad_worst_tenant"]);
    let table = run(&example(&elastic)).out;
    assert!(table.contains("worst") && table.contains("< 0.95"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let hard = run(&example(&["--policy", "fifo"])).out;
    assert!(!hard.contains("< 0.95"), "quotas are caps here: {hard}");
}

#[test]
fn without_arguments_the_built_in_month_is_replayed_under_every_policy() {
    let object = run(&["simulate", "--json", "--set", "generate.days=2"]).json();
    assert_eq!(object["trace"]["jobs"], json!(1836), "two days of the load of 23,859 in 26");
    assert_eq!(object["settings"]["capacity"], json!("auto"), "policies differ in it");
    let policies: Vec<String> = hashes(&object).into_iter().map(|(policy, _)| policy).collect();
    assert_eq!(policies, deepshare_policies::PolicyConfig::NAMES);
    for run in object["runs"].as_array().unwrap() {
        let borrows = run["policy"] == "deepshare" || run["policy"] == "elastic-quota";
        assert_eq!(run["capacity"], json!(if borrows { "elastic" } else { "partition" }));
        assert_eq!(run["classes"], json!("trace"));
    }
}

#[test]
fn borrowing_policies_run_without_quotas_where_there_are_none_and_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("c.toml"), "[[node]]\ncount = 2\ngpus = 8\n").unwrap();
    let trace = "job_id,tenant,gpus,submit_s,duration_s\na,red,8,0,60\nb,blue,8,1,60\n";
    fs::write(here.join("t.csv"), trace).unwrap();
    let args = ["simulate", "--trace", "t.csv", "--cluster", "c.toml", "--policy", "deepshare"];
    assert_eq!(
        run_in(here, &[&args[..], &["--json"]].concat()).json()["runs"][0]["capacity"],
        "pool"
    );
    let hard = example(&["--policy", "deepshare", "--set", "capacity=hard", "--json"]);
    let object = run(&hard).json();
    assert_eq!(
        (&object["runs"][0]["capacity"], &object["cluster"]["capacity"]),
        (&json!("hard"), &json!("hard"))
    );
}

#[test]
fn a_share_of_best_effort_jobs_is_drawn_with_a_seed_of_its_own() {
    let with = |more: &[&'static str]| {
        let mut args = example(&["--policy", "deepshare", "--best-effort-share", "0.5", "--json"]);
        args.extend(more);
        run(&args).json()
    };
    let plain = with(&[]);
    assert_eq!(plain["runs"][0]["classes"], json!("coin 0.5"));
    let by_class = plain["runs"][0]["by_class"].as_array().unwrap();
    assert_eq!(by_class.len(), 2, "{by_class:?}");
    assert_eq!(hashes(&with(&["--set", "class_seed=1"])), hashes(&plain), "the run's seed is 1");
    assert_ne!(hashes(&with(&["--set", "class_seed=2"])), hashes(&plain));
    let table = run(&example(&["--best-effort-share", "0.5", "--policy", "fifo"])).ok();
    assert!(table.contains("capacity hard, seed 1, classes coin 0.5"), "{table}");
}

#[test]
fn what_deepshare_does_without_changes_what_it_does() {
    let with = |word: &str| {
        let set = format!("deepshare.without={word}");
        let testbed = ["simulate", "--preset", "testbed", "--policy", "deepshare", "--json"];
        // With sharing, whoever slows another too much is preempted as well.
        let alone = ["--set", "deepshare.k=1", "--set", &set];
        let object = run(&[&testbed[..], &alone].concat()).json();
        (hashes(&object), object["runs"][0]["preemptions"].as_u64().unwrap())
    };
    let (whole, reclaims) = with("none");
    assert!(reclaims > 0);
    assert_eq!(with("rec").1, 0);
    assert_ne!(with("rec").0, whole);
}

#[test]
fn sharing_is_shown_and_written_where_jobs_shared() {
    let testbed = ["simulate", "--preset", "testbed", "--policy", "deepshare", "--audit"];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let done = run(&[&testbed[..], &["--out", out.to_str().unwrap()]].concat());
    assert!(done.out.contains("\nSharing. pairs: formed"), "{}", done.out);
    assert!(done.err.contains("sharing: 20 profiles, drawn with seed 1"), "{}", done.err);
    let text = fs::read_to_string(out.join("deepshare/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(summary["pairs_formed"].as_u64() > Some(0), "{}", summary["pairs_formed"]);
    assert!(summary["slowdown_while_shared_weighted"].as_f64() > Some(1.0));
    let again = run(&[&testbed[..], &["--json"]].concat()).json();
    assert_eq!(again["runs"][0]["pairs_formed"], summary["pairs_formed"]);
    // Without profiles nobody shares, and nothing is said of it.
    let none = run(&[&testbed[..], &["--set", "sharing.profiles=none"]].concat());
    assert!(!none.out.contains("Sharing.") && !none.err.contains("sharing:"), "{}", none.out);
}

#[test]
fn a_log_of_philly_runs_on_its_virtual_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let log = "timestamp,duration,num_gpus,gpu_time,cluster\n\
               2017-10-09 07:00:10,66.0,1,66.0,small\n\
               2017-10-09 07:00:00,100.0,4,400.0,large\n\
               2017-10-09 07:00:20,5.0,8,40.0,small\n";
    fs::write(folder.path().join("log.csv"), log).unwrap();
    fs::write(folder.path().join("vc.csv"), "vc,node num\nsmall,1\nlarge,2\n").unwrap();
    let args = ["simulate", "--trace", "log.csv", "--cluster", "vc.csv", "--json", "--audit"];
    let with = |more: &[&str]| run_in(folder.path(), &[&args[..], more].concat());
    let object = with(&["--set", "trace.format=philly"]).json();
    let runs = object["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["finished"] == 3));
    // The job of 8 GPUs waits for that of 1.
    assert_eq!(runs[0]["queueing_delay_max_s"], 56.0);
    assert_eq!(hashes(&with(&[]).json()), hashes(&object), "it is recognised too");
    let said = with(&["--set", "trace.format=helios"]).fails(2);
    assert!(said.contains("log.csv: line 1"), "{said}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let month = ["simulate", "--json", "--set", "generate.days=2", "--threads"];
    let with = |threads: &'static str| hashes(&run(&[&month[..], &[threads]].concat()).json());
    assert_eq!(with("1"), with("2"));
}

#[test]
fn another_seed_is_another_month() {
    let month = ["simulate", "--json", "--policy", "fifo", "--set", "generate.days=1", "--seed"];
    let with = |seed: &'static str| hashes(&run(&[&month[..], &[seed]].concat()).json());
    assert_ne!(with("1"), with("2"));
}

#[test]
fn the_settings_that_a_run_leaves_repeat_it_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let world = [
        "--set",
        "restart.overhead_s=90",
        "--set",
        "tiresias.thresholds_gpu_s=600,7200",
        "--set",
        "outages.mean_up_s=20000",
        "--set",
        "outages.mean_down_s=1000",
        "--set",
        "actuation.start_s=0,20",
        "--seed",
        "5",
        "--json",
        "--audit",
        "--out",
        out.to_str().unwrap(),
    ];
    let first = run(&example(&world)).json();
    let again =
        run_in(folder.path(), &["simulate", "--settings", "results/settings.toml", "--json"]);
    let again = again.json();
    assert_eq!(hashes(&again), hashes(&first));
    let plain = run(&example(&["--json"])).json();
    assert_ne!(hashes(&plain), hashes(&first), "the settings did matter");
}

#[test]
fn the_example_settings_run() {
    let done = run(&["simulate", "--settings", "examples/settings.toml", "--json"]);
    let object = done.json();
    assert_eq!(object["runs"].as_array().unwrap().len(), 4);
    assert_eq!(object["settings"]["restart.checkpoint_interval_s"], json!(1800));
    assert_eq!(object["runs"][2]["unfinished"], json!(0));
}

#[test]
fn the_example_of_lending_runs() {
    let done = run(&["simulate", "--settings", "examples/elastic.toml", "--json", "--audit"]);
    let runs = done.json()["runs"].clone();
    assert_eq!((&runs[0]["capacity"], &runs[2]["capacity"]), (&json!("hard"), &json!("elastic")));
    assert_eq!(runs[2]["classes"], json!("coin 0.4"));
    assert!(runs[2]["preemptions"].as_u64() > Some(0), "somebody borrowed and gave back");
}

#[test]
fn nodes_drain_as_a_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("o.csv");
    fs::write(&file, "node,from_s,until_s,kind\ngpu-0,0,400000,drain\n").unwrap();
    let set = format!("outages.file={}", file.display());
    let args = ["--policy", "fifo", "--set", "oversize=skip", "--json", "--audit", "--set", &set];
    let drained = run(&example(&args)).json();
    let plain = run(&example(&["--policy", "fifo", "--json"])).json();
    let delay = |object: &serde_json::Value| object["runs"][0]["queueing_delay_mean_s"].as_f64();
    assert!(delay(&drained) > delay(&plain));
    assert_eq!(drained["runs"][0]["restarts_by_failure"], json!(0));
}

#[test]
fn a_file_of_estimates_is_named_and_only_where_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("guess.csv");
    let rows: String = (1..=32).map(|id| format!("{id},{}\n", 100 + id)).collect();
    fs::write(&file, format!("job_id,priority\n{rows}")).unwrap();
    let given = ["--estimates", file.to_str().unwrap(), "--json"];
    let object = run(&example(&given)).json();
    let named: Vec<&str> = object["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["estimates"].as_str().unwrap())
        .collect();
    let file = "guess.csv";
    let alone = ["none", file, file, file, "none", file, file, file, "none"];
    assert_eq!(named, [&alone[..], &[file, file, file, "none", file]].concat());
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    use std::io::Read;
    use std::process::Stdio;
    let args = ["simulate", "--json", "-q", "--set", "generate.days=1"];
    let mut child = crate::running::program()
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed before the program has anything to say.
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}
