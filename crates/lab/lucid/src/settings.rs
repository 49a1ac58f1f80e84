//! What the artifact has as constants, as settings with its values.

/// When jobs may share GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Whenever many jobs are forecast, as published.
    #[default]
    Forecast,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Everything that decides a run beside its inputs. The defaults are the artifact's.
#[derive(Clone, Debug, PartialEq)]
pub struct LucidSettings {
    /// When jobs may share GPUs.
    pub sharing: Sharing,
    /// With a forecast of at most this many jobs in ten minutes, nobody shares. 2.
    pub share_above_jobs: f64,
    /// The profiler; without one every job goes straight to its virtual cluster.
    pub profiler: Option<ProfilerSettings>,
    /// Virtual clusters that give a node each to the profiler for good; those that the cluster does
    /// not have are passed over, and the profiler has its nodes all the same. `vc8Gr` and `vcefl`.
    pub lenders: Vec<String>,
    /// The virtual cluster that gives a node when the profiler grows and gets one when it shrinks,
    /// if the cluster has it. `vcYVn`.
    pub echo: Option<String>,
    /// Memory of a GPU, MiB: two jobs share one only if theirs together is less. 24,576.
    pub gpu_memory_mib: u64,
    /// Largest sum of the sharing scores of two jobs on a GPU. 2.
    pub score_limit: u32,
    /// A job joins another only if its own priority value (estimated GPU time) is at most so many
    /// times the other's. 2.
    pub priority_factor: u32,
    /// Leave out the jobs that fit no cluster of their tenant, instead of refusing to run.
    pub skip_oversize: bool,
}

/// The profiler: nodes of its own on which jobs run for a short while first.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilerSettings {
    /// Its nodes, without the one it may borrow. 2.
    pub nodes: u32,
    /// Longest profile, seconds: a job that is no longer ends there. 200.
    pub limit_s: u64,
    /// Jobs of more GPUs are not profiled. 8, and never more than a node has.
    pub widest: u32,
    /// With more jobs waiting than this it borrows a node. 10.
    pub grow_above: usize,
    /// It looks whether to grow at multiples of this, seconds. 10.
    pub grow_every_s: u64,
    /// With fewer jobs waiting than this it gives the node back. 5.
    pub shrink_below: usize,
    /// It looks whether to shrink at multiples of this, seconds. 100.
    pub shrink_every_s: u64,
    /// It shrinks only with a forecast of at most so many GPUs in ten minutes. 40.
    pub shrink_up_to_gpus: f64,
}

impl Default for LucidSettings {
    fn default() -> LucidSettings {
        LucidSettings {
            sharing: Sharing::Forecast,
            share_above_jobs: 2.0,
            profiler: Some(ProfilerSettings::default()),
            lenders: vec!["vc8Gr".to_owned(), "vcefl".to_owned()],
            echo: Some("vcYVn".to_owned()),
            gpu_memory_mib: 24_576,
            score_limit: 2,
            priority_factor: 2,
            skip_oversize: false,
        }
    }
}

impl Default for ProfilerSettings {
    fn default() -> ProfilerSettings {
        ProfilerSettings {
            nodes: 2,
            limit_s: 200,
            widest: 8,
            grow_above: 10,
            grow_every_s: 10,
            shrink_below: 5,
            shrink_every_s: 100,
            shrink_up_to_gpus: 40.0,
        }
    }
}
