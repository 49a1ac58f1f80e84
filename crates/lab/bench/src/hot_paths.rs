//! Small pieces of work whose instructions can be counted.
//!
//! A hot path does `units` units of one kind of work after a preparation that does not depend on
//! `units`. The work of two sizes differs by whole units, so preparation and start-up cancel.
//! Nothing here is random or timed: counts repeat to the instruction on one machine.

mod deepshare;
mod placement;
mod policies;
// Private to the simulator, so compiled here once more from its own source.
#[allow(dead_code, reason = "not every kind of event is pushed here")]
#[path = "../../sim/src/queue.rs"]
mod queue;
mod queues;
mod stage;
mod whole;

/// A piece of work.
pub struct HotPath {
    /// Its name.
    pub name: &'static str,
    /// What a unit is.
    pub unit: &'static str,
    /// The two sizes to count.
    pub sizes: [u32; 2],
    /// Units of the printed figure that a unit holds: a replay holds many jobs.
    pub per_unit: u32,
    /// Does so many units.
    pub run: fn(u32),
}

impl HotPath {
    /// One line: name, sizes, units of the figure in each, and what a unit is.
    pub fn line(&self) -> String {
        let HotPath { name, unit, sizes: [small, large], per_unit, .. } = self;
        format!("{name} {small} {large} {per_unit} {unit}\n")
    }
}

/// Every hot path, in the order of the report.
pub const ALL: [HotPath; 28] = [
    HotPath {
        name: "engine-job",
        unit: "job submitted, placed, run and ended, 1,000 GPUs",
        sizes: [200, 1_200],
        per_unit: 1,
        run: policies::engine_job,
    },
    HotPath {
        name: "event-queue",
        unit: "event popped and one pushed, 10,000 pending",
        sizes: [1_000, 11_000],
        per_unit: 1,
        run: queues::event_queue,
    },
    HotPath {
        name: "placement-fits",
        unit: "placement of 1 to 20 GPUs found, claimed and undone, 1,250 nodes",
        sizes: [4, 404],
        per_unit: 1,
        run: placement::fits,
    },
    HotPath {
        name: "placement-misfit",
        unit: "placement of 400 GPUs refused for its shape, 1,250 nodes",
        sizes: [4, 104],
        per_unit: 1,
        run: placement::misfit,
    },
    HotPath {
        name: "fifo-blocked",
        unit: "FIFO round with a blocked head, 1,000 waiting, 125 nodes",
        sizes: [10, 210],
        per_unit: 1,
        run: policies::fifo_blocked,
    },
    HotPath {
        name: "srtf-nobody-moves",
        unit: "SRTF round in which nobody moves, 500 running, 1,000 waiting",
        sizes: [10, 110],
        per_unit: 1,
        run: policies::srtf_nobody_moves,
    },
    HotPath {
        name: "tiresias-nobody-moves",
        unit: "Tiresias round in which nobody moves, 500 running, 1,000 waiting",
        sizes: [10, 110],
        per_unit: 1,
        run: policies::tiresias_nobody_moves,
    },
    HotPath {
        name: "easy-blocked",
        unit: "EASY round in which nobody may backfill, 200 waiting, 125 nodes",
        sizes: [2, 22],
        per_unit: 1,
        run: policies::easy_blocked,
    },
    HotPath {
        name: "conservative-plan",
        unit: "new job planned behind 100 reservations, 125 nodes",
        sizes: [2, 12],
        per_unit: 1,
        run: policies::conservative_plan,
    },
    HotPath {
        name: "deepshare-steady",
        unit: "DeepShare instant with ends and one with arrivals, 1,000 GPUs, 1,000 waiting",
        sizes: [20, 220],
        per_unit: 1,
        run: deepshare::steady,
    },
    HotPath {
        name: "deepshare-reclaim",
        unit: "gang of 16 GPUs that evicts, runs and ends, 1,000 GPUs, 1,000 waiting",
        sizes: [2, 22],
        per_unit: 1,
        run: deepshare::reclaim,
    },
    HotPath {
        name: "deepshare-array",
        unit: "job of an array that evicts others, 10,000 GPUs, 10,000 waiting",
        sizes: [50, 250],
        per_unit: 1,
        run: deepshare::array,
    },
    HotPath {
        name: "generate",
        unit: "job of a generated 3-day history",
        sizes: [1, 3],
        per_unit: whole::JOBS,
        run: whole::generate,
    },
    replay("replay-fifo", whole::fifo),
    replay("replay-sjf", whole::sjf),
    replay("replay-srtf", whole::srtf),
    replay("replay-qssf", whole::qssf),
    replay("replay-tiresias", whole::tiresias),
    replay("replay-lucid", whole::lucid),
    replay("replay-easy-backfill", whole::easy_backfill),
    replay("replay-conservative-backfill", whole::conservative_backfill),
    replay("replay-elastic-quota", whole::elastic_quota),
    replay("replay-sjf-bsbf", whole::sjf_bsbf),
    replay("replay-sjf-ffs", whole::sjf_ffs),
    replay("replay-tensorshare", whole::tensorshare),
    replay("replay-gandiva", whole::gandiva),
    replay("replay-deepshare", whole::deepshare),
    HotPath {
        name: "scale-deepshare",
        unit: "job of the preset scale with 20,000 jobs",
        sizes: [1, 2],
        per_unit: deepshare::JOBS,
        run: deepshare::preset,
    },
];

const fn replay(name: &'static str, run: fn(u32)) -> HotPath {
    let unit = "job of a replayed 3-day history";
    HotPath { name, unit, sizes: [1, 2], per_unit: whole::JOBS, run }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_policies::PolicyConfig;

    #[test]
    fn every_hot_path_does_what_it_says_at_its_smaller_size() {
        for path in &ALL {
            assert!(path.sizes[0] < path.sizes[1], "{}", path.name);
            (path.run)(path.sizes[0]);
        }
    }

    #[test]
    fn every_policy_is_replayed() {
        for policy in PolicyConfig::NAMES {
            let name = format!("replay-{policy}");
            assert!(ALL.iter().any(|path| path.name == name), "{name}");
        }
    }
}
