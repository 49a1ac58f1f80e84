//! Every committed scenario says what is committed, also under strain.

use deepshare_testkit::{Strain, run_scenario, run_scenario_under, scenario_files};
use std::path::{Path, PathBuf};

fn scenarios() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    scenario_files(&root).expect("scenarios are beside the crates")
}

fn first_difference(got: &str, want: &str) -> String {
    let mut lines = got.lines().zip(want.lines()).enumerate();
    match lines.find(|(_, (got, want))| got != want) {
        Some((at, (got, want))) => format!("line {}:\n  is   {got}\n  was  {want}", at + 1),
        None => "one is longer than the other".to_owned(),
    }
}

#[test]
fn every_scenario_replies_what_is_committed() {
    let scenarios = scenarios();
    assert!(scenarios.len() >= 20, "only {} scenarios found", scenarios.len());
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for path in scenarios {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let committed = std::fs::read_to_string(&path).unwrap();
        match run_scenario(&committed) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(output) if update => std::fs::write(&path, output).unwrap(),
            Ok(output) if output != committed => {
                wrong.push(format!("{name}: {}", first_difference(&output, &committed)));
            }
            Ok(_) => {}
        }
    }
    let hint = "if the change is meant, run with UPDATE_SCENARIOS=1 and read the difference";
    assert!(wrong.is_empty(), "{}\n{hint}", wrong.join("\n"));
}

fn all_say_the_same_under(strain: Strain) {
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).expect("found just before");
        let calm = run_scenario(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let strained =
            run_scenario_under(&text, strain).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(strained == calm, "{path:?}: {}", first_difference(&strained, &calm));
    }
}

#[test]
fn an_engine_restored_from_json_after_every_step_says_the_same() {
    all_say_the_same_under(Strain::Restarts);
}

#[test]
fn an_engine_that_hears_everything_twice_says_the_same() {
    all_say_the_same_under(Strain::NewsTwice);
}

#[test]
fn a_mistake_is_shown_with_line_column_and_remedy() {
    let cases = [
        (
            "cluster 2 nodes x four gpus",
            "line 1, column 19: `four` is not a number",
            "from 1 to 64",
        ),
        ("cluster 1 nodes x 4 gpus\n\n0s  sumbit a gpus=1", "line 3, column 5: `sumbit`", "submit"),
        ("submit a gpus=1\nsubmit a gpus=1", "line 2, column 8: `a` was submitted before", "own"),
        ("submit a gpu=1", "line 1, column 10: `gpu` is not known here", "gpus"),
        ("submit a gpus=1 gpus=2", "line 1, column 17: `gpus` is given twice", "once"),
        ("submit a", "line 1, column 8: `a` asks for nothing", "gpus=N"),
        ("5s run\n4s run", "line 2, column 1: `4s` is in the past", "5s already"),
        ("5 run", "line 1, column 1: `5` is not a time", "40s"),
        ("cancel x", "line 1, column 8: `x` is no job", "there is no job yet"),
        ("cluster 1 node x 1 gpu\nlose n1", "line 2, column 6: `n1` is no node", "n0 to n0"),
        ("cluster 1 node x 1 gpu\npolicy sjf", "line 2, column 8: the engine runs", "first lines"),
        ("policy lifo", "line 1, column 8: `lifo` is no policy", "fifo, sjf"),
        (
            "settings capacity=hard\nsubmit a gpus=1 tenant=red",
            "line 2, column 24: `red`",
            "quota=N",
        ),
        ("cluster 1 node x 1 gpu\ndevice n0.1 bad", "line 2, column 8: `n0.1`", "0 to 0"),
        ("run untill 5s", "line 1, column 5: `untill` is too much", "run [until TIME]"),
    ];
    for (script, why, remedy) in cases {
        let said = run_scenario(script).unwrap_err().to_string();
        assert!(said.starts_with(why), "{script:?} gave {said:?}");
        assert!(said.contains(remedy), "{script:?} gave {said:?}, without {remedy:?}");
    }
}

#[test]
fn replies_in_the_script_are_not_read() {
    let script = "cluster 1 node x 1 gpu\nsubmit a gpus=1\n> 0s nonsense\n";
    let output = "cluster 1 node x 1 gpu\nsubmit a gpus=1\n> 0s start a on n0[0]\n";
    assert_eq!(run_scenario(script).unwrap(), output);
}
