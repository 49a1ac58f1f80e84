//! Random small worlds, run in the simulator with the auditor on after every step.
//!
//! A seed picks cluster, workload, policy, settings, faults and outages ([`RandomWorld::draw`]);
//! [`RandomWorld::check`] runs it twice and says which property does not hold. A failing world
//! can be made smaller ([`RandomWorld::shrink`]) and prints as the code that makes it again.

mod draw;
mod properties;
mod shrink;

use deepshare_sim::SimSettings;
use deepshare_trace::{Cluster, Trace};
use std::fmt;

/// Something that makes a world less than ideal, and can be left out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Nodes go away and come back.
    Outages,
    /// Binding, starting and stopping take time.
    Delays,
    /// Bindings fail and nodes reject.
    FailedStarts,
    /// Evictions are refused.
    Refusals,
    /// News takes time and overtakes other news.
    LateNews,
    /// News is lost until the next resync.
    LostNews,
    /// News comes twice.
    DoubledNews,
    /// Restarts cost time.
    RestartCosts,
    /// There is one round a slot.
    Slots,
    /// Nodes have few CPUs.
    FewCpus,
    /// Two jobs may be on one device.
    Sharing,
}

impl Trouble {
    /// All of it.
    pub const ALL: [Trouble; 11] = [
        Trouble::Outages,
        Trouble::Delays,
        Trouble::FailedStarts,
        Trouble::Refusals,
        Trouble::LateNews,
        Trouble::LostNews,
        Trouble::DoubledNews,
        Trouble::RestartCosts,
        Trouble::Slots,
        Trouble::FewCpus,
        Trouble::Sharing,
    ];
}

/// A world drawn from a seed, perhaps without some of its parts.
#[derive(Clone, Debug)]
pub struct RandomWorld {
    seed: u64,
    /// Jobs and nodes that are left, as numbered when drawn.
    jobs: Vec<usize>,
    nodes: Vec<usize>,
    without: Vec<Trouble>,
    trace: Trace,
    cluster: Cluster,
    settings: SimSettings,
}

impl RandomWorld {
    /// The world of this seed.
    pub fn draw(seed: u64) -> RandomWorld {
        let (trace, cluster, settings) = draw::world(seed);
        let (jobs, nodes) = (0..trace.jobs.len(), 0..cluster.nodes.len());
        RandomWorld {
            seed,
            jobs: jobs.collect(),
            nodes: nodes.collect(),
            without: Vec::new(),
            trace,
            cluster,
            settings,
        }
    }

    /// The same world with only these jobs, as numbered when drawn.
    #[must_use]
    pub fn with_jobs(mut self, keep: &[usize]) -> RandomWorld {
        let kept = |jobs: &[usize]| -> Vec<usize> {
            (0..jobs.len()).filter(|&at| keep.contains(&jobs[at])).collect()
        };
        let positions = kept(&self.jobs);
        self.trace.jobs = positions.iter().map(|&at| self.trace.jobs[at].clone()).collect();
        self.settings.estimates = draw::kept_estimates(&self.settings.estimates, &positions);
        let interference = &self.settings.interference;
        self.settings.interference = draw::kept_interference(interference, &positions);
        self.jobs = positions.iter().map(|&at| self.jobs[at]).collect();
        self
    }

    /// The same world with only these nodes, as numbered when drawn.
    #[must_use]
    pub fn with_nodes(mut self, keep: &[usize]) -> RandomWorld {
        let positions: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| keep.contains(&self.nodes[at])).collect();
        self.cluster.nodes = positions.iter().map(|&at| self.cluster.nodes[at].clone()).collect();
        draw::keep_outages(&mut self.settings.outages, &positions);
        self.nodes = positions.iter().map(|&at| self.nodes[at]).collect();
        self
    }

    /// The same world without some trouble.
    #[must_use]
    pub fn without(mut self, trouble: Trouble) -> RandomWorld {
        draw::remove(trouble, &mut self.settings, &mut self.cluster);
        self.without.push(trouble);
        self
    }

    /// The history it replays.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The machines it replays on.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// How it replays.
    pub fn settings(&self) -> &SimSettings {
        &self.settings
    }

    /// Runs the world and checks every property.
    ///
    /// # Errors
    /// What does not hold. Panics of the code under test are caught and returned like the rest.
    pub fn check(&self) -> Result<(), String> {
        properties::check(self)
    }

    /// A smaller world that still fails, if this one does.
    #[must_use]
    pub fn shrink(self) -> RandomWorld {
        shrink::shrink(self)
    }
}

/// The code that makes this world, and what is in it.
impl fmt::Display for RandomWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawn = RandomWorld::draw(self.seed);
        write!(f, "RandomWorld::draw({})", self.seed)?;
        if self.jobs != drawn.jobs {
            write!(f, ".with_jobs(&{:?})", self.jobs)?;
        }
        if self.nodes != drawn.nodes {
            write!(f, ".with_nodes(&{:?})", self.nodes)?;
        }
        for trouble in &self.without {
            write!(f, ".without(Trouble::{trouble:?})")?;
        }
        writeln!(f, ".check()")?;
        let settings = &self.settings;
        writeln!(f, "  policy     {:?}, estimates {}", settings.policy, settings.estimates.name())?;
        writeln!(f, "  engine     {:?}", settings.engine)?;
        writeln!(f, "  restart    {:?}", settings.restart)?;
        writeln!(f, "  actuation  {:?}", settings.actuation)?;
        writeln!(f, "  outages    {:?}", settings.outages)?;
        if let Some(interference) = &settings.interference {
            writeln!(f, "  sharing    {interference:?}")?;
        }
        for (index, tenant) in self.cluster.tenants.iter().enumerate() {
            let (quota, parent) = (&tenant.quota, tenant.parent);
            writeln!(f, "  tenant t{index}  quota {quota:?} parent {parent:?}")?;
        }
        for (index, node) in self.cluster.nodes.iter().enumerate() {
            let (gpus, gpu_type, cpu) = (node.gpus, node.gpu_type, node.cpu_milli);
            writeln!(
                f,
                "  node n{index}    {gpus} x {gpu_type} of {:?}, cpu {cpu:?}",
                node.tenant
            )?;
        }
        for (index, job) in self.trace.jobs.iter().enumerate().take(20) {
            let (submit, duration, gpus) = (job.submit, job.duration, job.gpus);
            write!(f, "  job j{index}     {submit} + {duration} x {gpus} of {}", job.tenant)?;
            writeln!(f, ", type {:?}, cpu {}", job.gpu_type, job.cpu_milli)?;
        }
        Ok(())
    }
}
