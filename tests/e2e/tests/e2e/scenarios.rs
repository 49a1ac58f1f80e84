//! Every script of `scenarios/kubernetes/`, on a real API server: the decisions are those of the lab,
//! the log of them replays to the same commands, and the objects show no broken promise.

use crate::SCHEDULER;
use deepshare_e2e::{Bed, play, replayed, root};
use std::path::PathBuf;

fn scripts() -> Vec<PathBuf> {
    let folder = root().join("scenarios/kubernetes");
    let entries = std::fs::read_dir(folder).expect("scenarios are there");
    let mut scripts: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a scenario").path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "scn"));
    // One of them, to look at it closely.
    if let Ok(only) = std::env::var("DEEPSHARE_SCENARIO") {
        scripts.retain(|path| path.to_string_lossy().contains(&only));
    }
    scripts.sort();
    scripts
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_decides_as_the_lab_does() {
    let Some(bed) = Bed::start().await else { return };
    let scripts = scripts();
    assert!(!scripts.is_empty());
    let mut wrong = Vec::new();
    for script in scripts {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match play(&bed, SCHEDULER, &script).await {
            Err(what) => wrong.push(what),
            Ok(played) => {
                let faults = [played.evidence.faults, played.evidence.rejected].concat();
                if !faults.is_empty() {
                    wrong.push(format!("{name}: {}", faults.join("; ")));
                }
                match replayed(&played.scheduler.event_log()) {
                    Err(why) => wrong.push(format!("{name}: {why}")),
                    Ok(0) => wrong.push(format!("{name}: nothing was decided")),
                    Ok(_) => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
