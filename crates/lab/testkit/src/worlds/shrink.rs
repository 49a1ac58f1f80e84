//! Makes a failing world smaller.

use super::{RandomWorld, Trouble};

/// Worlds tried at most.
const PATIENCE: u32 = 400;

pub(super) fn shrink(mut world: RandomWorld) -> RandomWorld {
    let mut left = PATIENCE;
    loop {
        let before = (world.jobs.len(), world.nodes.len(), world.without.len());
        world = drop_parts(world, &mut left, |w| &w.jobs, |w, keep| w.with_jobs(keep));
        for trouble in Trouble::ALL {
            if !world.without.contains(&trouble) {
                let calmer = world.clone().without(trouble);
                if fails(&calmer, &mut left) {
                    world = calmer;
                }
            }
        }
        world = drop_parts(world, &mut left, |w| &w.nodes, |w, keep| w.with_nodes(keep));
        if left == 0 || before == (world.jobs.len(), world.nodes.len(), world.without.len()) {
            return world;
        }
    }
}

fn fails(world: &RandomWorld, left: &mut u32) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    world.check().is_err()
}

/// Leaves out halves, then quarters, down to single parts, while it still fails.
fn drop_parts(
    mut world: RandomWorld,
    left: &mut u32,
    parts: fn(&RandomWorld) -> &Vec<usize>,
    with: fn(RandomWorld, &[usize]) -> RandomWorld,
) -> RandomWorld {
    let mut size = parts(&world).len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < parts(&world).len() && parts(&world).len() > 1 {
            let mut keep = parts(&world).clone();
            keep.drain(at..(at + size).min(keep.len()));
            let smaller = with(world.clone(), &keep);
            if !keep.is_empty() && fails(&smaller, left) {
                world = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    world
}
