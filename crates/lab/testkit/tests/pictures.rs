//! Pictures of schedules: those in the repository are what their scripts ask for.

use deepshare_testkit::{Pictures, picture, record_scenario};
use std::path::Path;

#[test]
fn every_committed_picture_is_that_of_its_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let pictures = Pictures::draw(&root).unwrap();
    assert!(pictures.paths().count() >= 3);
    let stale = pictures.stale(&root);
    assert!(stale.is_empty(), "{}\nwrite them anew: cargo xtask pictures", stale.join("\n"));
}

const SCRIPT: &str = "\
policy srtf
cluster 1 node x 1 gpu
0s  submit a gpus=1 run=100s
slow-start a 5s
20s submit b gpus=1 run=30s
slow-stop a 10s
run until 40s
";

#[test]
fn a_schedule_says_who_was_where_and_who_waited_for_what() {
    let schedule = record_scenario(SCRIPT).unwrap();
    let seconds = |time: deepshare_model::Time| time.as_secs_f64();
    let stays: Vec<_> = schedule
        .stays
        .iter()
        .map(|stay| {
            let [running, evicted, released] =
                [stay.running, stay.evicted, stay.released].map(|time| time.map(seconds));
            (stay.job.0, seconds(stay.placed), running, evicted, released)
        })
        .collect();
    // a starts for 5 s, is sent away after 20 s and takes 10 s to go; b is there at the end.
    let first = (0, 0.0, Some(5.0), Some(20.0), Some(30.0));
    assert_eq!(stays, [first, (1, 30.0, Some(30.0), None, None)]);
    let waits: Vec<_> = schedule
        .jobs
        .iter()
        .flat_map(|job| &job.waits)
        .map(|wait| (wait.word, seconds(wait.from), seconds(wait.to)))
        .collect();
    let of_a = ("outranked", 30.0, 40.0);
    assert_eq!(waits, [of_a, ("awaiting-release", 20.0, 30.0)]);
    assert_eq!((&schedule.nodes[..], seconds(schedule.end)), (&[1][..], 40.0));
}

#[test]
fn a_picture_names_devices_jobs_and_reasons_and_nothing_is_left_of_markup_in_names() {
    let svg = picture(&record_scenario(SCRIPT).unwrap(), "a <b> & c", "sub");
    for text in ["n0[0]</text>", ">a</text>", "awaiting-release</text>", "a &lt;b&gt; &amp; c"] {
        assert!(svg.contains(text), "{text} is not in\n{svg}");
    }
    assert_eq!(svg.matches("url(#gone)").count(), 2, "the box that was left, and the legend");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}
