//! Searching 1,250 nodes of 8 GPUs, most of them partly used.

use super::stage::Stage;
use deepshare_engine::{Draft, Policy, Rank, State};
use deepshare_model::JobId;

const NODES: u32 = 1_250;
/// Nodes that stay wholly free.
const FREE_NODES: u32 = 10;
/// Jobs of these sizes leave 1 to 3 GPUs of a node.
const FILLING: [u32; 3] = [5, 6, 7];
const FITTING: [u32; 4] = [1, 2, 3, 20];
const MISFITTING: [u32; 1] = [400];

/// Starts filling jobs for good. Places the others in turn and takes that back.
struct Probe {
    units: u32,
    fits: bool,
}

impl Policy for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).spec.submit.0, 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut probes = Vec::new();
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            if FILLING.contains(&draft.state().job(job).gpus()) {
                draft.place(job).expect("a filling job has a node of its own");
            } else {
                probes.push(job);
            }
        }
        for unit in 0..self.units as usize {
            let Some(&job) = probes.get(unit % probes.len().max(1)) else { return };
            let mark = draft.mark();
            let placed = draft.place(job).is_ok();
            assert_eq!(placed, self.fits, "{job}");
            draft.undo_to(mark);
        }
    }
}

fn search(units: u32, sizes: &[u32], fits: bool) {
    let mut stage = Stage::new(Box::new(Probe { units, fits }), NODES, 8);
    for index in 0..NODES - FREE_NODES {
        stage.submit(FILLING[index as usize % FILLING.len()], 1_000);
    }
    stage.wake();
    stage.expect_started((NODES - FREE_NODES) as usize);
    for &gpus in sizes {
        stage.submit(gpus, 1_000);
    }
    stage.wake();
    assert_eq!(stage.waiting() as usize, sizes.len());
}

pub(super) fn fits(units: u32) {
    search(units, &FITTING, true);
}

pub(super) fn misfit(units: u32) {
    search(units, &MISFITTING, false);
}
