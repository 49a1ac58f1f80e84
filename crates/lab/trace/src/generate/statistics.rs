//! Published statistics of Venus, a cluster of SenseTime's Helios, in September 2020.
//!
//! Computed from the job log that Hu et al., "Characterization and Prediction of Deep Learning
//! Workloads in Large-Scale GPU Datacenters", SC '21, released under CC BY 4.0 (HeliosData). These
//! are summaries; no row of the log is here.

/// One virtual cluster.
pub(super) struct VirtualCluster {
    /// Nodes of 8 GPUs.
    pub nodes: u32,
    pub users: u32,
    /// Mean duration.
    pub mean_s: f64,
    /// Durations at [`SHARES`].
    pub durations_s: [f64; SHARES.len()],
    /// GPUs of the largest job.
    pub largest: u32,
    /// Jobs of each of [`SIZES`].
    pub sizes: [u32; SIZES.len()],
    pub gpu_hours: f64,
    /// Percent of the GPU-hours in jobs of each of [`CLASSES`].
    pub percent_by_size: [f64; CLASSES.len()],
}

impl VirtualCluster {
    pub(super) fn jobs(&self) -> u32 {
        self.sizes.iter().sum()
    }
}

/// Shares of jobs whose durations stay below the quantiles of a virtual cluster.
pub(super) const SHARES: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99];
/// Where in them the tail begins, of which a virtual cluster's mean depends.
pub(super) const TAIL: usize = 6;
/// Numbers of GPUs that jobs ask for. The rare ones between are counted as their neighbour.
pub(super) const SIZES: [u32; 15] = [1, 2, 3, 4, 6, 8, 16, 24, 32, 40, 64, 96, 120, 128, 144];
/// Classes of sizes, by the largest number of GPUs in each.
pub(super) const CLASSES: [u32; 9] = [1, 7, 8, 16, 24, 32, 120, 128, u32::MAX];

/// The virtual clusters, in the order of the published configuration. Their names are not kept.
pub(super) const CLUSTERS: [VirtualCluster; 15] = [
    VirtualCluster {
        nodes: 9,
        users: 13,
        mean_s: 4_132.0,
        durations_s: [37.0, 86.0, 123.0, 498.0, 601.0, 916.0, 3_070.0, 7_640.0, 123_000.0],
        largest: 32,
        sizes: [6_540, 248, 13, 293, 6, 198, 7, 1, 297, 0, 0, 0, 0, 0, 0],
        gpu_hours: 40_173.0,
        percent_by_size: [9.8, 20.6, 21.2, 0.0, 0.0, 48.4, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 5,
        users: 17,
        mean_s: 7_159.0,
        durations_s: [16.0, 33.0, 139.0, 678.0, 1_570.0, 4_400.0, 10_100.0, 29_200.0, 170_000.0],
        largest: 16,
        sizes: [1_663, 357, 12, 586, 2, 205, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 22_393.0,
        percent_by_size: [8.5, 36.3, 53.8, 1.3, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 8,
        users: 19,
        mean_s: 7_090.0,
        durations_s: [33.0, 127.0, 351.0, 1_120.0, 1_240.0, 1_320.0, 4_090.0, 33_500.0, 170_000.0],
        largest: 32,
        sizes: [1_445, 29, 6, 170, 22, 921, 41, 0, 20, 0, 0, 0, 0, 0, 0],
        gpu_hours: 30_657.0,
        percent_by_size: [5.7, 16.0, 47.0, 22.2, 0.0, 9.1, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 20,
        users: 5,
        mean_s: 4_606.0,
        durations_s: [5.0, 9.0, 80.0, 194.0, 222.0, 435.0, 1_570.0, 5_770.0, 152_000.0],
        largest: 144,
        sizes: [65, 79, 6, 123, 18, 330, 137, 15, 33, 11, 49, 41, 99, 401, 45],
        gpu_hours: 109_221.0,
        percent_by_size: [0.0, 0.0, 3.2, 4.9, 0.5, 10.1, 5.5, 73.4, 2.3],
    },
    VirtualCluster {
        nodes: 6,
        users: 17,
        mean_s: 16_981.0,
        durations_s: [21.0, 54.0, 183.0, 1_250.0, 2_010.0, 3_790.0, 27_300.0, 65_800.0, 436_000.0],
        largest: 24,
        sizes: [70, 56, 0, 185, 1, 318, 46, 34, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 23_593.0,
        percent_by_size: [0.1, 10.1, 85.9, 1.8, 2.1, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 12,
        users: 29,
        mean_s: 11_921.0,
        durations_s: [59.0, 166.0, 277.0, 1_190.0, 4_770.0, 8_530.0, 35_700.0, 46_300.0, 246_000.0],
        largest: 40,
        sizes: [1_575, 21, 0, 13, 0, 609, 53, 13, 1, 16, 0, 0, 0, 0, 0],
        gpu_hours: 47_943.0,
        percent_by_size: [7.6, 1.2, 49.3, 19.4, 3.4, 0.4, 18.7, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 4,
        users: 9,
        mean_s: 76_304.0,
        durations_s: [
            12.0, 183.0, 424.0, 76_900.0, 145_000.0, 188_000.0, 296_000.0, 400_000.0, 641_000.0,
        ],
        largest: 4,
        sizes: [219, 199, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 16_849.0,
        percent_by_size: [12.3, 87.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 11,
        users: 24,
        mean_s: 16_861.0,
        durations_s: [47.0, 188.0, 452.0, 1_910.0, 2_360.0, 3_480.0, 22_700.0, 84_000.0, 318_000.0],
        largest: 40,
        sizes: [1_113, 48, 1, 56, 9, 275, 15, 0, 7, 1, 0, 0, 0, 0, 0],
        gpu_hours: 46_005.0,
        percent_by_size: [9.7, 6.6, 15.8, 1.2, 0.0, 56.5, 10.2, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 4,
        users: 6,
        mean_s: 32_068.0,
        durations_s: [
            17.0, 80.0, 428.0, 52_800.0, 60_100.0, 95_700.0, 120_000.0, 124_000.0, 142_000.0,
        ],
        largest: 32,
        sizes: [36, 0, 0, 0, 0, 151, 0, 0, 9, 0, 0, 0, 0, 0, 0],
        gpu_hours: 15_390.0,
        percent_by_size: [0.4, 0.0, 83.5, 0.0, 0.0, 16.1, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 8,
        users: 11,
        mean_s: 30_702.0,
        durations_s: [
            55.0, 134.0, 2_010.0, 27_400.0, 44_700.0, 59_900.0, 100_000.0, 138_000.0, 419_000.0,
        ],
        largest: 16,
        sizes: [87, 10, 0, 9, 1, 392, 19, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 33_925.0,
        percent_by_size: [0.8, 5.2, 73.2, 20.8, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 3,
        users: 13,
        mean_s: 37_720.0,
        durations_s: [
            15.0, 47.0, 235.0, 7_090.0, 48_000.0, 102_000.0, 186_000.0, 230_000.0, 291_000.0,
        ],
        largest: 8,
        sizes: [444, 61, 2, 44, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 9_310.0,
        percent_by_size: [60.0, 31.1, 8.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 32,
        users: 8,
        mean_s: 15_579.0,
        durations_s: [27.0, 68.0, 123.0, 525.0, 1_110.0, 3_000.0, 9_590.0, 86_300.0, 393_000.0],
        largest: 160,
        sizes: [108, 130, 7, 70, 46, 507, 162, 151, 597, 21, 7, 10, 3, 1, 34],
        gpu_hours: 145_207.0,
        percent_by_size: [0.1, 0.5, 19.7, 20.8, 1.4, 44.0, 0.4, 0.0, 13.1],
    },
    VirtualCluster {
        nodes: 10,
        users: 6,
        mean_s: 32_584.0,
        durations_s: [69.0, 134.0, 203.0, 550.0, 989.0, 2_480.0, 14_100.0, 110_000.0, 696_000.0],
        largest: 8,
        sizes: [100, 252, 0, 88, 11, 228, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 45_734.0,
        percent_by_size: [0.1, 6.5, 93.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 2,
        users: 7,
        mean_s: 9_307.0,
        durations_s: [20.0, 78.0, 192.0, 794.0, 1_990.0, 3_260.0, 12_100.0, 57_200.0, 164_000.0],
        largest: 16,
        sizes: [10, 0, 0, 0, 0, 361, 44, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 9_097.0,
        percent_by_size: [0.0, 0.0, 88.5, 11.5, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
    VirtualCluster {
        nodes: 1,
        users: 4,
        mean_s: 88_385.0,
        durations_s: [
            69.0, 75.0, 171.0, 97_300.0, 131_000.0, 256_000.0, 262_000.0, 355_000.0, 882_000.0,
        ],
        largest: 8,
        sizes: [13, 0, 0, 1, 0, 35, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        gpu_hours: 6_486.0,
        percent_by_size: [6.7, 1.7, 91.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
];

/// Jobs of all virtual clusters.
pub(super) const JOBS: u32 = 23_859;
/// Days from the first job to the last.
pub(super) const DAYS: u32 = 26;
/// Users of all virtual clusters, and how many of them are in more than one.
pub(super) const USERS: u32 = 118;
pub(super) const SHARED_USERS: u32 = 34;

/// The longest duration, in seconds.
pub(super) const LONGEST_S: f64 = 1_286_670.0;

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
