//! Every script of `scenarios/kubernetes/`, on a real API server: the decisions are those of the lab,
//! the log of them replays to the same commands, and the objects show no broken promise.

use crate::SCHEDULER;
use deepshare_e2e::{Bed, Beds, play, replayed, root};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One for each script, with its name.
pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    let folder = root().join("scenarios/kubernetes");
    let entries = std::fs::read_dir(folder).expect("scenarios are there");
    let mut scripts: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a scenario").path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "scn"));
    assert!(!scripts.is_empty());
    scripts.sort();
    let named = scripts.into_iter().map(|script| {
        let name = script.file_stem().unwrap_or_default().to_string_lossy();
        beds.test(&format!("{}::{name}", module_path!()), async move |bed| {
            decides_as_the_lab_does(bed, &script).await;
        })
    });
    named.collect()
}

async fn decides_as_the_lab_does(bed: &Bed, script: &Path) {
    let played = play(bed, SCHEDULER, script).await.unwrap_or_else(|wrong| panic!("{wrong}"));
    let faults = [played.evidence.faults, played.evidence.rejected].concat();
    assert_eq!(faults, Vec::<String>::new());
    let decided = replayed(&played.scheduler.event_log()).expect("its log replays");
    assert!(decided > 0, "nothing was decided");
}
