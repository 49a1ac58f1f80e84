//! What to simulate: the policy, and which of the two readings of it.

/// The order in which jobs are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OraclePolicy {
    /// First come, first served; nothing passes a job that does not fit.
    Fifo,
    /// Shortest true duration first; nothing passes a job that does not fit.
    Sjf,
    /// Smallest estimated duration times GPUs first; nothing passes a job that does not fit.
    Qssf,
    /// Shortest remaining duration first, preemptive.
    Srtf,
    /// Least attained service in two classes, by submission within a class, preemptive.
    Tiresias,
}

/// Which reading of a policy is simulated. FIFO and SJF are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semantics {
    /// To the second what the simulator published with Lucid does:
    /// - a preemptable job placed at T with R seconds left ends at T + R + 1;
    /// - Tiresias decides at multiples of 60 s only, and demotes above its threshold;
    /// - SRTF lets a waiting job displace a running one with as much left;
    /// - QSSF serves jobs that arrive to an empty queue by GPU count in their first second.
    Artifact,
    /// The same loop without those oddities:
    /// - a preemptable job placed at T with R seconds left ends at T + R;
    /// - Tiresias decides every second, and demotes at its threshold;
    /// - at equal keys running jobs go before waiting ones, then whoever started, or began to
    ///   wait, earlier;
    /// - QSSF orders by estimated GPU-seconds, then GPU count, then trace order.
    Plain,
}

/// Everything about a simulation except the cluster and the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleSettings {
    /// The order in which jobs are served.
    pub policy: OraclePolicy,
    /// Which reading of the policy.
    pub semantics: Semantics,
    /// GPUs of every node. The artifact knows no value but 8.
    pub gpus_per_node: u32,
    /// Seconds of work added by each preemption of a job no wider than a node. 40 by default.
    pub preemption_cost_s: u64,
    /// Seconds of work added by each preemption of a job wider than a node. 60 by default.
    pub wide_preemption_cost_s: u64,
    /// Attained service, in GPU-seconds, that parts Tiresias' two classes. 18,000 by default.
    pub demotion_gpu_s: u64,
}

impl OracleSettings {
    /// Settings with the artifact's numbers: 8 GPUs a node, 40 s and 60 s for a preemption, and
    /// 5 GPU-hours before demotion.
    pub fn new(policy: OraclePolicy, semantics: Semantics) -> Self {
        OracleSettings {
            policy,
            semantics,
            gpus_per_node: 8,
            preemption_cost_s: 40,
            wide_preemption_cost_s: 60,
            demotion_gpu_s: 18_000,
        }
    }
}
