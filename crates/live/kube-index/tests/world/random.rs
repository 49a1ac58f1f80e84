//! Any world, with everything going wrong. A failure names its seed: `DEEPSHARE_WORLD=SEED` runs that world
//! alone, `DEEPSHARE_WORLDS=N` runs N of them.

use crate::chance::Chance;
use crate::cluster::{Faults, Kind, World};
use crate::objects::{PodMaker, pod, quota};
use serde_json::json;

const WORLDS: u64 = 60;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

#[test]
fn whatever_happens_no_rule_is_broken_and_all_comes_to_rest() {
    let seeds = match number("DEEPSHARE_WORLD") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DEEPSHARE_WORLDS").unwrap_or(WORLDS),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| live(seed));
        if let Err(panic) = outcome {
            eprintln!("the world of DEEPSHARE_WORLD={seed} broke");
            std::panic::resume_unwind(panic);
        }
    }
}

/// One world, from its first day to its rest.
fn live(seed: u64) {
    let mut world = World::new(seed);
    let mut chance = Chance::new(seed ^ 0x5eed);
    let nodes = 1 + chance.below(4);
    for index in 0..nodes {
        world.add_node(&format!("n{index}"), chance.one(&["A100", "A100", "H100"]), {
            chance.one(&[1, 2, 4, 8])
        });
    }
    let tenants = ["a", "b", "c"];
    for name in tenants {
        let mut quota = quota(name, chance.below(6) as u32);
        quota["spec"]["colocation"] = json!({"allowed": chance.percent(50)});
        quota["spec"]["reclaim"] = json!({"overridePdb": true, "pdbWaitSeconds": 5});
        world.set(Kind::Quota, name, quota);
        world.namespace(name, json!({}));
    }
    world.storage_class();
    world.faults = faults(&mut chance);
    world.lead();
    for round in 0..60 {
        disturb(&mut world, &mut chance, round);
        world.run(chance.below(4));
    }
    rest(&mut world);
}

fn faults(chance: &mut Chance) -> Faults {
    let mut some = |most: u64| if chance.percent(50) { chance.below(most) as u32 } else { 0 };
    Faults {
        lost_watch: some(20),
        doubled_watch: some(30),
        bind_transient: some(20),
        bind_unknown: some(20),
        evict_refused: some(20),
        resize_refused: some(50),
        rejected: some(10),
        provision_ms: 500 + 20 * u64::from(some(1_000)),
        provision_refused: some(50),
        provision_lost: some(20),
        lands: some(100),
        watch_ms: 20 + u64::from(some(1_500)),
        write_ms: 20 + u64::from(some(1_000)),
        answer_ms: 20 + u64::from(some(2_000)),
        resize_ms: 500,
    }
}

/// Something happens.
fn disturb(world: &mut World, chance: &mut Chance, round: u32) {
    let nodes: Vec<String> = world.kubelets.keys().cloned().collect();
    let node = nodes[chance.below(nodes.len() as u64) as usize].clone();
    let tenant = chance.one(&["a", "b", "c"]);
    match chance.below(20) {
        0..10 => {
            let name = format!("j{round}");
            let size = chance.one(&[1, 1, 1, 2, 3]);
            let maker = some_pod(chance, tenant);
            let maker = if size > 1 { maker.gang(&name, size) } else { maker };
            let maker = match chance.percent(30) {
                true => {
                    world.claim(tenant, &name);
                    maker.claim(&name)
                }
                false => maker,
            };
            world.controller(&name, maker.0, size);
        }
        10 | 11 => {
            let uids: Vec<String> = world.pods().map(|(uid, _)| uid.to_owned()).collect();
            if !uids.is_empty() {
                let uid = &uids[chance.below(uids.len() as u64) as usize];
                world.delete(uid, 5);
            }
        }
        12 => world.silence(&node, chance.percent(50)),
        13 => {
            let closed = chance.percent(50);
            world.change(Kind::Node, &node, |node| node["spec"]["unschedulable"] = json!(closed));
        }
        14 => {
            let healthy = chance.percent(70);
            world.change(Kind::Gpus, &node, |gpus| {
                gpus["status"]["devices"][0]["healthy"] = json!(healthy);
            });
        }
        15 => {
            let gpus = chance.below(8);
            world.change(Kind::Quota, tenant, |quota| quota["spec"]["gpus"] = json!({"*": gpus}));
        }
        16 => {
            let budget = json!({
                "metadata": {"name": "all", "namespace": tenant},
                "spec": {"selector": {"matchLabels": {}}},
                "status": {"disruptionsAllowed": chance.below(2)},
            });
            world.set(Kind::Budget, &format!("{tenant}/all"), budget);
        }
        17 => {
            let last = world.processes.len() - 1;
            world.crash(last);
            world.run(chance.below(3));
            world.lead();
        }
        18 => {
            // Two for a moment.
            world.lead();
            world.run(chance.below(2));
            let old = world.processes.len() - 2;
            world.crash(old);
        }
        _ => {}
    }
}

fn some_pod(chance: &mut Chance, tenant: &str) -> PodMaker {
    let mut maker = pod(tenant, "p").lasts(5 + chance.below(60) as u32);
    maker = match chance.percent(30) {
        true => maker.slot(),
        false => maker.gpus(chance.one(&[1, 1, 2, 4])),
    };
    if chance.percent(60) {
        maker = maker.best_effort();
    }
    maker.grace(chance.one(&[1, 10, 60])).stops_in(chance.below(40) as u32)
}

/// Nothing goes wrong any more: everything that can run does, and the rest says why not.
fn rest(world: &mut World) {
    world.faults = Faults::default();
    for node in world.kubelets.keys().cloned().collect::<Vec<_>>() {
        world.silence(&node, false);
        world.change(Kind::Node, &node, |node| node["spec"]["unschedulable"] = json!(false));
        world.change(Kind::Gpus, &node, |gpus| {
            gpus["status"]["devices"][0]["healthy"] = json!(true);
        });
    }
    world.run(900);
    world.check_quiet();
}
