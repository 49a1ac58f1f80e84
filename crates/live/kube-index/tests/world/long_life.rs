//! What a scheduler knows after a long time: who was who, and no more than it needs.

use crate::cluster::World;
use crate::objects::pod;
use deepshare_engine::Event;
use deepshare_kube_index::Named;
use deepshare_model::{JobId, SiteId, UserId};
use serde_json::json;

#[test]
fn two_jobs_of_one_name_have_two_names_in_a_log() {
    let mut world = World::with(1, 2, &[("a", 2)]);
    let first = world.create(pod("a", "train").lasts(1).0);
    world.run(5);
    world.delete(&first, 0);
    let second = world.create(pod("a", "train").0);
    world.run(5);
    assert!(world.runs("a/train"), "{}", world.report());
    let names = &world.processes[0].audit.names;
    let jobs: Vec<&Named> = names.iter().filter(|name| matches!(name, Named::Job(..))).collect();
    let named = |id, uid: &str| Named::Job(JobId(id), format!("a/train#{uid}"));
    assert_eq!(jobs, [&named(0, &first), &named(1, &second)]);
    assert!(names.contains(&Named::User(UserId(0), "a".to_owned())), "{names:?}");
}

#[test]
fn what_pods_required_is_forgotten_when_they_are_over() {
    let mut world = World::with(1, 8, &[("a", 8)]);
    let own = |number: u32| {
        // Every pod with a claim of its own is such a case.
        let mut pod = pod("a", &format!("p{number}")).lasts(1).0;
        pod["spec"]["tolerations"] = json!([{"key": format!("k{number}"), "operator": "Exists"}]);
        pod
    };
    for batch in 0..25 {
        (0..8).for_each(|at| _ = world.create(own(8 * batch + at)));
        world.run(5);
    }
    let over = world.pods().filter(|(_, pod)| pod["status"]["phase"] == "Succeeded").count();
    assert_eq!(over, 200, "{}", world.report());
    let sites = world.processes[0].audit.steps.iter().filter_map(|(event, _)| match event {
        Event::Submitted { spec, .. } => spec.demand.site,
        _ => None,
    });
    let last = sites.max().unwrap();
    assert!(last < SiteId(100), "{last:?}: numbers of requirements are given again");
    // What had the number before could go where this one cannot.
    let mut elsewhere = own(200);
    elsewhere["spec"]["nodeSelector"] = json!({"zone": "elsewhere"});
    world.create(elsewhere);
    world.run(5);
    assert_eq!(world.phase("a/p200"), "Pending", "{}", world.report());
}
