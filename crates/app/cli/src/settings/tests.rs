//! Settings from several sources, and back to text.

use super::*;
use std::fs;

fn sets(texts: &[&str]) -> Result<Settings, Vec<Problem>> {
    let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    let mut problems = Vec::new();
    let assignments = from_text(&texts, &mut problems);
    match Settings::of(&assignments) {
        Ok(settings) if problems.is_empty() => Ok(settings),
        Ok(_) => Err(problems),
        Err(more) => Err(problems.into_iter().chain(more).collect()),
    }
}

fn file(text: &str) -> (Vec<Assignment>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    fs::write(&path, text).unwrap();
    let mut problems = Vec::new();
    let assignments = from_file(&path, &mut problems);
    let prefix = format!("{}:", path.display());
    let shown = problems.iter().map(|one| one.to_string().replace(&prefix, ""));
    (assignments, shown.collect())
}

fn value(settings: &Settings, name: &str) -> String {
    (find_key(name).unwrap().get)(settings).unwrap().to_string().trim().to_owned()
}

#[test]
fn every_value_of_every_key_reads_back_as_itself() {
    let examples = [
        "policy=sjf,fifo",
        "estimates.from=running-mean",
        "audit=true",
        "seed=18",
        "capacity=elastic",
        "placement=node-order",
        "oversize=skip",
        "cycle_s=0.5",
        "backoff.max_s=90",
        "restart.wide_above_gpus=16",
        "srtf.ties=waiting-first",
        "tiresias.thresholds_gpu_s=100,200.25",
        "tiresias.promote_after=2.5",
        "tiresias.demotion=above-threshold",
        "estimates.negative_as_s=7",
        "trace.format=helios",
        "trace.time_unit=ms",
        "trace.origin=2020-09-01 00:02:34",
        "trace.not_before=2020-04-01",
        "trace.window_s=[5, 10]",
        "outages.mean_up_s=1000",
        "outages.mean_down_s=10",
        "actuation.bind_s=1,5",
        "actuation.stop_s=3",
        "actuation.bind_failure=0.125",
        "actuation.loss=1",
        "actuation.resync_s=60",
        "generate.jobs=7",
        "generate.days=3",
        "classes=coin",
        "best_effort_share=0.25",
        "class_seed=9",
        "preempted_pause_s=45",
        "qad.lambda=0.5",
        "fifo.skip=true",
        "sjf.skip=true",
        "deepshare.without=rec",
        "deepshare.order_by_time=false",
        "deepshare.spill=true",
        "deepshare.alpha=0.75",
        "deepshare.beta=2",
        "deepshare.qad_bucket=0.05",
        "deepshare.preemption_cap=9",
        "lucid.sharing=off",
        "profiles.file=/a/profiles.csv",
        "pairs.file=/a/pairs.csv",
        "sharing.prediction_mae=0.05",
        "workloads.file=/a/workloads.csv",
        "forecast.file=/a/forecast.csv",
    ];
    for compat in ["compat=none", "compat=lucid"] {
        let given: Vec<&str> = std::iter::once(compat).chain(examples).collect();
        let settings = sets(&given).unwrap();
        let (assignments, problems) = file(&to_toml(&settings));
        assert_eq!(problems, [""; 0]);
        let again = Settings::of(&assignments).unwrap();
        assert_eq!(to_json(&again), to_json(&settings));
        for example in examples.iter().filter(|example| !example.contains(',')) {
            let (name, text) = example.split_once('=').unwrap();
            let shown = value(&again, name);
            assert!(shown.trim_matches('"').starts_with(text), "{name}: {text} became {shown}");
        }
    }
}

#[test]
fn what_differs_between_policies_under_compat_is_left_to_compat() {
    let text = to_toml(&sets(&["compat=lucid"]).unwrap());
    assert!(text.contains("# finish_lag_s differs between policies"), "{text}");
    let (assignments, _) = file(&text);
    let again = Settings::of(&assignments).unwrap();
    assert_eq!(again.run("srtf").finish_lag, Span::SECOND);
    assert_eq!(again.run("fifo").finish_lag, Span::ZERO);
}

#[test]
fn a_key_set_before_or_after_compat_wins_over_it() {
    for order in [["compat=lucid", "cycle_s=0"], ["cycle_s=0", "compat=lucid"]] {
        let settings = sets(&order).unwrap();
        assert_eq!(value(&settings, "cycle_s"), "0");
        assert_eq!(value(&settings, "placement"), "\"consolidate-artifact\"");
    }
}

#[test]
fn of_two_values_the_later_counts() {
    assert_eq!(value(&sets(&["seed=2", "seed=3"]).unwrap(), "seed"), "3");
}

#[test]
fn a_file_may_use_tables_dots_and_braces() {
    let text = "cycle_s = 2\nbackoff = { first_s = 3 }\nrestart.overhead_s = 4\n\
                [actuation]\nbind_s = [1, 2]\n";
    let (assignments, problems) = file(text);
    assert_eq!(problems, [""; 0]);
    let settings = Settings::of(&assignments).unwrap();
    let names = ["cycle_s", "backoff.first_s", "restart.overhead_s", "actuation.bind_s"];
    assert_eq!(names.map(|name| value(&settings, name)), ["2", "3", "4", "[1, 2]"]);
}

#[test]
fn unknown_keys_are_refused_where_they_are_with_the_nearest_name() {
    let (assignments, problems) = file(
        "cycel_s = 2\n[restart]\n  overhead = 3\n[tiresias]\nthreshold_gpu_s = [1]\n\
         [engine]\nplacement = \"pool\"\n",
    );
    assert!(assignments.is_empty());
    assert_eq!(
        problems,
        [
            "1:1: unknown key `cycel_s`; did you mean `cycle_s`?",
            "3:3: unknown key `restart.overhead`; did you mean `restart.overhead_s`?",
            "5:1: unknown key `tiresias.threshold_gpu_s`; did you mean \
             `tiresias.thresholds_gpu_s`?",
            "7:1: unknown key `engine.placement`; did you mean `placement`?",
        ]
    );
}

#[test]
fn bad_syntax_is_refused_where_it_is() {
    let (_, problems) = file("seed = 1\ncycle_s = = 2\n");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("2:11: not valid TOML: "), "{}", problems[0]);
}

#[test]
fn wrong_values_are_refused_all_at_once() {
    let wrong = [
        "cycle_s=-1",
        "cycle_s=\"1\"",
        "cycle_s=nan",
        "seed=1.5",
        "audit=1",
        "policy=",
        "capacity=shared",
        "actuation.loss=1.5",
        "actuation.bind_s=5,1",
        "trace.origin=yesterday",
        "trace.window_s=1",
        "restart.wide_above_gpus=4294967296",
    ];
    let problems = sets(&wrong).unwrap_err();
    let places: Vec<&str> = problems.iter().map(|one| one.place.as_str()).collect();
    let expected: Vec<String> =
        (1..=wrong.len()).map(|number| format!("--set #{number}")).collect();
    assert_eq!(places, expected);
    let first = "--set #1: cycle_s = -1: expected a number of seconds, 0 or more";
    assert_eq!(problems[0].to_string(), first);
}

#[test]
fn values_that_do_not_go_together_are_refused_where_they_were_said() {
    let refused = |texts: &[&str]| -> Vec<String> {
        sets(texts).unwrap_err().iter().map(ToString::to_string).collect()
    };
    let both = "set outages.mean_up_s and outages.mean_down_s, or neither";
    assert_eq!(
        refused(&["seed=1", "outages.mean_up_s=5"]),
        [format!("--set #2: outages.mean_up_s: {both}")]
    );
    assert_eq!(
        refused(&["tiresias.thresholds_gpu_s=2,1", "backoff.first_s=100"]),
        [
            "by default: backoff.max_s: is less than backoff.first_s",
            "--set #1: tiresias.thresholds_gpu_s: is not in ascending order",
        ]
    );
}

#[test]
fn a_share_of_best_effort_jobs_implies_the_coin_and_excludes_the_rest() {
    let settings = sets(&["best_effort_share=0.3"]).unwrap();
    assert_eq!(value(&settings, "classes"), "\"coin\"");
    assert_eq!(value(&sets(&["classes=coin"]).unwrap(), "best_effort_share"), "\"auto\"");
    for word in ["trace", "overflow"] {
        let set = format!("classes={word}");
        let problems = sets(&["best_effort_share=0.3", &set]).unwrap_err();
        assert_eq!(problems.len(), 1);
        let said = problems[0].to_string();
        let expected =
            format!("--set #1: best_effort_share: is for `classes = \"coin\"`, and `{word}`");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn predictions_are_as_good_as_one_of_two_figures_says() {
    let shown = |texts: &[&str]| {
        let settings = sets(texts).unwrap();
        ["sharing.prediction_r2", "sharing.prediction_mae"].map(|name| value(&settings, name))
    };
    assert_eq!(shown(&[]), ["0.902", "\"none\""]);
    assert_eq!(shown(&["sharing.prediction_mae=0.1"]), ["\"none\"", "0.1"]);
    assert_eq!(shown(&["sharing.prediction_mae=0.1", "sharing.prediction_r2=none"])[1], "0.1");
    let both = sets(&["sharing.prediction_r2=0.9", "sharing.prediction_mae=0.1"]).unwrap_err();
    assert_eq!(
        both[0].to_string(),
        "--set #2: sharing.prediction_mae: sharing.prediction_r2 says otherwise how good predictions \
         are; leave one out, or set it to `none`"
    );
    let neither = sets(&["sharing.prediction_r2=none"]).unwrap_err();
    assert!(neither[0].to_string().contains("say with one of them"), "{}", neither[0]);
}

#[test]
fn pools_and_pairs_are_files_or_names_and_a_pool_excludes_profiles() {
    for (set, shown) in [
        ("configurations.file=pool-29", "\"pool-29\""),
        ("configurations.file=/a/pool-29", "\"/a/pool-29\""),
        ("configurations.file=none", "\"none\""),
        ("pairs.file=six-models-p100", "\"six-models-p100\""),
    ] {
        let settings = sets(&[set]).unwrap();
        let name = set.split_once('=').unwrap().0;
        assert_eq!(value(&settings, name), shown);
        let (assignments, problems) = file(&to_toml(&settings));
        assert_eq!(problems, [""; 0]);
        assert_eq!(value(&Settings::of(&assignments).unwrap(), name), shown);
    }
    let both = sets(&["profiles.file=/a/p.csv", "configurations.file=six-models"]).unwrap_err();
    assert_eq!(
        both[0].to_string(),
        "--set #2: configurations.file: profiles.file (--profiles) says already what each job runs; \
         leave one out"
    );
}

#[test]
fn ablations_are_switches_and_must_not_contradict_them() {
    let switches = |texts: &[&str]| {
        let settings = sets(texts).unwrap();
        ["deepshare.order_by_qad", "deepshare.reclaim"].map(|name| value(&settings, name))
    };
    assert_eq!(switches(&["deepshare.without=ord"]), ["false", "true"]);
    assert_eq!(switches(&["deepshare.without=rec"]), ["true", "false"]);
    assert_eq!(switches(&["deepshare.without=all"]), ["false", "false"]);
    assert_eq!(switches(&["deepshare.without=all", "deepshare.reclaim=false"]), ["false", "false"]);
    let one = sets(&["deepshare.reclaim=false"]).unwrap();
    assert_eq!(value(&one, "deepshare.without"), "\"rec\"");
    let problems = sets(&["deepshare.without=ord", "deepshare.order_by_qad=true"]).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "--set #2: deepshare.order_by_qad: deepshare.without at --set #1 says otherwise; leave one out"
    );
}

#[test]
fn a_word_of_the_command_line_wins_over_the_switches_of_a_file() {
    let (mut assignments, _) = file(&to_toml(&Settings::new(Compat::None)));
    let mut problems = Vec::new();
    assignments.extend(from_text(&["deepshare.without=all".to_owned()], &mut problems));
    let settings = Settings::of(&assignments).unwrap();
    assert_eq!(value(&settings, "deepshare.reclaim"), "false");
}

#[test]
fn every_switch_of_deepshare_has_a_key() {
    // A new field stops this from compiling until it has a key and a line here.
    let deepshare_policies::DeepShareSettings {
        alpha_milli: _,
        beta_milli: _,
        qad_bucket_milli: _,
        order_by_qad: _,
        reclaim: _,
        order_by_time: _,
        spill: _,
        gang_guard: _,
        preemption_cap: _,
        shrink: _,
        grow: _,
        colocation:
            deepshare_policies::ColocationSettings {
                residents: _,
                rho_min_milli: _,
                gamma_milli: _,
                eps_share_milli: _,
                demand: _,
                guaranteed_floor_milli: _,
                candidates: _,
                by_qad: _,
                by_prediction: _,
                max_gpus: _,
            },
    } = deepshare_policies::DeepShareSettings::default();
    let keys = KEYS.iter().filter(|key| key.name.starts_with("deepshare."));
    assert_eq!(keys.count(), 22, "and one for the ablations");
}

#[test]
fn every_field_of_the_world_has_a_key() {
    // A new field stops this from compiling until it has a key and a line here.
    let deepshare_sim::Actuation {
        bind: _,
        start: _,
        stop: _,
        news: _,
        bind_failure_milli: _,
        rejection_milli: _,
        refusal_milli: _,
        loss_milli: _,
        doubling_milli: _,
        resync: _,
    } = deepshare_sim::Actuation::default();
    let deepshare_engine::EngineSettings {
        capacity: _,
        placer: _,
        cycle: _,
        grace: _,
        backoff_first: _,
        backoff_max: _,
        qad_lambda_milli: _,
        preempted_pause: _,
        pair_samples: _,
        pair_slack_ppm: _,
    } = deepshare_engine::EngineSettings::default();
    assert_eq!(KEYS.iter().filter(|key| key.name.starts_with("actuation.")).count(), 10);
}
