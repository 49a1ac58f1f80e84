//! Published statistics of Venus, a cluster of SenseTime's Helios, in September 2020.
//!
//! Computed from the job log that Hu et al., "Characterization and Prediction of Deep Learning
//! Workloads in Large-Scale GPU Datacenters", SC '21, released under CC BY 4.0 (HeliosData). These
//! are summaries; no row of the log is here.

/// One virtual cluster.
pub(super) struct VirtualCluster {
    pub jobs: u32,
    pub users: u32,
    pub mean_s: f64,
    pub median_s: f64,
    pub largest: u32,
    pub gpu_hours: f64,
    /// Nodes of 8 GPUs.
    pub nodes: u32,
}

const fn vc(
    nodes: u32,
    jobs: u32,
    users: u32,
    mean_s: f64,
    median_s: f64,
    largest: u32,
    gpu_hours: f64,
) -> VirtualCluster {
    VirtualCluster { jobs, users, mean_s, median_s, largest, gpu_hours, nodes }
}

/// The virtual clusters, in the order of the published configuration. Their names are not kept.
pub(super) const CLUSTERS: [VirtualCluster; 15] = [
    vc(9, 7_603, 13, 4_132.0, 123.0, 32, 40_173.0),
    vc(5, 2_826, 17, 7_159.0, 139.0, 16, 22_393.0),
    vc(8, 2_654, 19, 7_090.0, 351.0, 32, 30_657.0),
    vc(20, 1_452, 5, 4_606.0, 80.0, 144, 109_221.0),
    vc(6, 710, 17, 16_981.0, 183.0, 24, 23_593.0),
    vc(12, 2_301, 29, 11_921.0, 277.0, 40, 47_943.0),
    vc(4, 426, 9, 76_304.0, 424.0, 4, 16_849.0),
    vc(11, 1_525, 24, 16_861.0, 452.0, 40, 46_005.0),
    vc(4, 196, 6, 32_068.0, 428.0, 32, 15_390.0),
    vc(8, 518, 11, 30_702.0, 2_014.0, 16, 33_925.0),
    vc(3, 651, 13, 37_720.0, 235.0, 8, 9_310.0),
    vc(32, 1_854, 8, 15_579.0, 123.0, 160, 145_207.0),
    vc(10, 679, 6, 32_584.0, 203.0, 8, 45_734.0),
    vc(2, 415, 7, 9_307.0, 192.0, 16, 9_097.0),
    vc(1, 49, 4, 88_385.0, 171.0, 8, 6_486.0),
];

/// Jobs of all virtual clusters.
pub(super) const JOBS: u32 = 23_859;
/// Days from the first job to the last.
pub(super) const DAYS: u32 = 26;
/// Users of all virtual clusters, and how many of them are in more than one.
pub(super) const USERS: u32 = 118;
pub(super) const SHARED_USERS: u32 = 34;

/// A number of GPUs, the jobs that ask for it, and their share of all GPU-hours in percent. Where
/// only a range is published, its jobs are put on its usual sizes.
pub(super) const SIZES: [(u32, u32, f64); 13] = [
    (1, 13_488, 4.05),
    (2, 1_490, 3.55),
    (3, 48, 0.08),
    (4, 1_645, 4.44),
    (6, 116, 0.32),
    (8, 4_630, 35.47),
    (16, 700, 10.30),
    (24, 39, 0.64),
    (32, 964, 20.90),
    (40, 129, 1.29),
    (64, 129, 2.06),
    (128, 402, 13.33),
    (144, 79, 3.57),
];
/// GPU-hours of all jobs.
pub(super) const GPU_HOURS: f64 = 601_983.0;
/// Mean duration of all jobs, in seconds.
pub(super) const MEAN_S: f64 = 11_769.3;

/// Quantiles of the duration in seconds: share of jobs, and duration. The ends and the steps below
/// the first quartile, which are not published, are assumed.
pub(super) const DURATIONS: [(f64, f64); 12] = [
    (0.0, 1.0),
    (0.02, 6.0),
    (0.1, 30.0),
    (0.25, 81.0),
    (0.5, 193.0),
    (0.75, 814.0),
    (0.822, 1_800.0),
    (0.9, 9_514.0),
    (0.95, 56_918.0),
    (0.963, 86_400.0),
    (0.99, 264_172.0),
    (1.0, 1_286_670.0),
];
/// The longest duration, in seconds.
pub(super) const LONGEST_S: f64 = 1_286_670.0;
/// The median duration of all jobs, in seconds.
pub(super) const MEDIAN_S: f64 = 193.0;

/// Share of submissions in each hour of the day, in percent. Published are the low at 04-07, the
/// peak at 14-17 and the evening at 18-21; the hours between are drawn through.
pub(super) const HOURS: [f64; 24] = [
    3.2, 2.3, 1.7, 1.3, 1.1, 1.1, 1.1, 1.2, 2.0, 3.8, 5.2, 5.6, 4.2, 5.4, 7.0, 7.2, 7.0, 6.5, 5.3,
    5.7, 6.0, 5.7, 5.0, 4.2,
];
/// Share of submissions on each day of the week from Monday, in percent.
pub(super) const WEEKDAYS: [f64; 7] = [13.3, 16.2, 25.2, 20.1, 13.2, 6.7, 5.3];
/// How often each day of the week, from Monday, occurs in the 26 days.
pub(super) const WEEKDAY_COUNTS: [f64; 7] = [3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.0];
/// The day of the week of the first day, from Monday = 0: a Tuesday.
pub(super) const FIRST_WEEKDAY: usize = 1;

/// Share of jobs by how they end: succeeded, cancelled, failed, node failure, timeout.
pub(super) const OUTCOMES: [f64; 5] = [0.5566, 0.2530, 0.1899, 7.0 / 23_859.0, 4.0 / 23_859.0];
