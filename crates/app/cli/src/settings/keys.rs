//! The table of keys.

use super::choices::{
    CapacityWord, ClassesWord, CompatWord, DemotionWord, EstimatesWord, FormatWord, OriginWord,
    OversizeWord, PairOrderWord, PartnersWord, PlacementWord, Policies, PresetWord, PressureWord,
    SharingModeWord, SharingWord, SlowdownCheckWord, TiesWord, TimeUnitWord,
};
use super::key::{Key, WITHOUT, WrongKind, bsbf, deepshare, key, lucid, tensorshare};
use super::keys_of_sharing as sharing;
use super::kind::{
    Chance, ChanceOrAuto, ChanceRange, Count, Count32, CountOrAuto, DateTimeOrNone, Factor,
    FactorFromOne, FactorOrZero, FileOrNone, Flag, FolderOrNone, GpuSecondsList, Kind,
    LikelyChance, Seconds, SecondsOrNone, SecondsRange, Slack, WindowOrNone,
};
use deepshare_policies::PolicyConfig;

/// Every key, in the order of the reference.
pub const KEYS: &[Key] = &[
    key!(
        "policy",
        "",
        Policies,
        settings.policies,
        "policies to run; by default all, but under `compat = \"lucid\"` without lucid; flag `--policy`"
    ),
    key!(
        "estimates.from",
        "",
        EstimatesWord,
        settings.estimates,
        "where run-time estimates come from, for every policy that uses any; `default` is `oracle` \
         for sjf, srtf and the backfills and `running-mean` for qssf, lucid and deepshare; \
         flag `--estimates`"
    ),
    key!(
        "seed",
        "",
        Count,
        run.seed,
        "seed of the built-in month and of all chance; flag `--seed`"
    ),
    key!(
        "audit",
        "",
        Flag,
        run.audit,
        "check every step with the independent auditor; flag `--audit`"
    ),
    key!(
        "compat",
        "",
        CompatWord,
        settings.compat,
        "whose peculiarities to copy: `lucid` sets what docs/compat-lucid.md lists, and every key \
         that is set itself wins over it"
    ),
    key!(
        "capacity",
        "",
        CapacityWord,
        settings.capacity,
        "how quotas bind: a queue and nodes of its own for each tenant, one pool with quotas, one \
         pool with quotas and borrowing, or one pool without; `auto` is, for deepshare and \
         elastic-quota, `elastic` where tenants have quotas, else `pool`; for other policies \
         `partition` where every node names a tenant, else `hard` where the cluster has tenants, \
         else `pool`"
    ),
    key!(
        "classes",
        "",
        ClassesWord,
        settings.classes,
        "which jobs are best-effort: those that the trace says, those that a coin says, or those \
         that come when their tenant's guaranteed demand has reached its quota"
    ),
    key!(
        "best_effort_share",
        "",
        ChanceOrAuto,
        settings.best_effort_milli,
        "share of best-effort jobs with `classes = \"coin\"`, which it implies; `auto` is 0.4; flag \
         `--best-effort-share`"
    ),
    key!(
        "class_seed",
        "",
        CountOrAuto,
        run.class_seed,
        "seed of the coin, to vary classes while all else stays; `auto`: `seed`"
    ),
    key!(
        "placement",
        "",
        PlacementWord,
        run.engine.placer,
        "how GPUs are chosen: on as few nodes as possible, snuggest first; the same as the Lucid \
         artifact has it; or the first free ones in node order"
    ),
    key!(
        "oversize",
        "",
        OversizeWord,
        run.oversize,
        "what to do about jobs that the cluster can never run: stop, or leave them out and count them"
    ),
    key!(
        "cycle_s",
        "s",
        Seconds,
        run.engine.cycle,
        "at most one round of decisions in each slot of this length; 0: at every event"
    ),
    key!("grace_s", "s", Seconds, run.engine.grace, "grace that evicted jobs are given"),
    key!(
        "backoff.first_s",
        "s",
        Seconds,
        run.engine.backoff_first,
        "pause after a failed start; doubles with each failure in a row"
    ),
    key!(
        "backoff.max_s",
        "s",
        Seconds,
        run.engine.backoff_max,
        "longest pause after failed starts"
    ),
    key!(
        "preempted_pause_s",
        "s",
        Seconds,
        run.engine.preempted_pause,
        "pause before a job starts again that was preempted before within an hour; doubles with \
         each preemption, up to ten times `backoff.max_s`; 0: none; 30 for deepshare, else 0"
    ),
    key!(
        "qad.lambda",
        "",
        Chance,
        run.engine.qad_lambda_milli,
        "weight of the newest sample in a tenant's smoothed quota assurance degree"
    ),
    key!(
        "restart.overhead_s",
        "s",
        Seconds,
        run.restart.overhead,
        "time a restarted job holds its GPUs before it makes progress"
    ),
    key!(
        "restart.overhead_wide_s",
        "s",
        Seconds,
        run.restart.overhead_wide,
        "the same for wide jobs"
    ),
    key!(
        "restart.wide_above_gpus",
        "GPUs",
        Count32,
        run.restart.wide_above,
        "jobs with more GPUs than this are wide"
    ),
    key!(
        "restart.checkpoint_interval_s",
        "s",
        Seconds,
        run.restart.checkpoint_interval,
        "progress between checkpoints; 0: a preempted job writes one on demand and loses nothing, \
         one that loses its node loses all since it last started"
    ),
    key!(
        "restart.overhead_accumulates",
        "",
        Flag,
        run.restart.overhead_accumulates,
        "a job stopped before its restart was over owes the rest beside the next one"
    ),
    key!(
        "finish_lag_s",
        "s",
        Seconds,
        run.finish_lag,
        "time between the end of a job's work and the scheduler's noticing; `compat = \"lucid\"` \
         has 1 for policies that preempt"
    ),
    key!(
        "fifo.skip",
        "",
        Flag,
        Fifo { skip },
        "pass over a job that does not fit, instead of blocking those behind it"
    ),
    key!(
        "sjf.skip",
        "",
        Flag,
        Sjf { skip },
        "pass over a job that does not fit, instead of blocking those behind it"
    ),
    key!(
        "srtf.ties",
        "",
        TiesWord,
        Srtf { ties },
        "whether a waiting job may preempt a running one with as much left to do"
    ),
    key!(
        "srtf.spare_unneeded",
        "",
        Flag,
        Srtf { spare_unneeded },
        "let a victim run on if nobody could use its GPUs"
    ),
    key!(
        "qssf.first_second_by_gpus",
        "",
        Flag,
        Qssf { first_second_by_gpus },
        "serve jobs that arrive to an empty queue by GPU count, not estimate, in their first second"
    ),
    key!(
        "tiresias.thresholds_gpu_s",
        "GPU-s",
        GpuSecondsList,
        Tiresias { thresholds },
        "attained service at which a job drops to the next queue, ascending"
    ),
    key!(
        "tiresias.interval_s",
        "s",
        Seconds,
        Tiresias { interval },
        "decide only at multiples of this; 0: at every event"
    ),
    key!(
        "tiresias.promote_after",
        "",
        FactorOrZero,
        Tiresias { promote_after_milli },
        "back to the first queue after waiting this many times its running time; 0: never"
    ),
    key!(
        "tiresias.demotion",
        "",
        DemotionWord,
        Tiresias { demotion },
        "whether attaining exactly the threshold demotes"
    ),
    key!(
        "tiresias.spare_unneeded",
        "",
        Flag,
        Tiresias { spare_unneeded },
        "let a victim run on if nobody could use its GPUs"
    ),
    WITHOUT,
    key!(
        "deepshare.order_by_qad",
        "",
        Flag,
        deepshare.order_by_qad,
        "serve tenants further from their quota first"
    ),
    key!(
        "deepshare.reclaim",
        "",
        Flag,
        deepshare.reclaim,
        "evict best-effort jobs for guaranteed ones within quota"
    ),
    key!(
        "deepshare.order_by_time",
        "",
        Flag,
        deepshare.order_by_time,
        "serve jobs with less estimated time left first, among equally assured tenants"
    ),
    key!(
        "deepshare.spill",
        "",
        Flag,
        deepshare.spill,
        "let guaranteed jobs beyond their quota start as best-effort"
    ),
    key!(
        "deepshare.alpha",
        "",
        Factor,
        deepshare.alpha_milli,
        "weight of a job's past preemptions in the cost of evicting it"
    ),
    key!(
        "deepshare.beta",
        "",
        Factor,
        deepshare.beta_milli,
        "weight of the number of victims in the cost of a set of them"
    ),
    key!(
        "deepshare.qad_bucket",
        "",
        Factor,
        deepshare.qad_bucket_milli,
        "quota assurance degrees that differ by less count as equal; 0: none do"
    ),
    key!(
        "deepshare.gang_guard_s",
        "s",
        Seconds,
        deepshare.gang_guard,
        "a gang wider than a node that no quota holds back has nodes set aside for it after waiting \
         this long; 0: never"
    ),
    key!(
        "deepshare.preemption_cap",
        "",
        Count32,
        deepshare.preemption_cap,
        "preemptions within an hour after which a job is a victim only if there is no other; 0: none"
    ),
    key!(
        "deepshare.shrink",
        "",
        Flag,
        deepshare.shrink,
        "shrink best-effort jobs' CPU and memory in place for guaranteed ones that lack them"
    ),
    key!(
        "deepshare.grow",
        "",
        Flag,
        deepshare.grow,
        "give shrunk jobs back what they ask for, after a minute, once nobody lacks CPU or memory"
    ),
    key!(
        "shrink.recommended",
        "",
        ChanceRange,
        run.recommended_milli,
        "CPU and memory that would be enough for a best-effort job, as a share of what it asks for: \
         drawn between these two; the least it is shrunk to is a tenth more, and at least half a core \
         and 256 MiB"
    ),
    key!(
        "deepshare.k",
        "jobs",
        Count32,
        deepshare.colocation.residents,
        "most jobs on one GPU: 2, or 1 for no sharing"
    ),
    key!(
        "deepshare.rho_min",
        "",
        Chance,
        deepshare.colocation.rho_min_milli,
        "share of its solo speed that each of a pair keeps at least, without pressure"
    ),
    key!(
        "deepshare.gamma",
        "",
        Factor,
        deepshare.colocation.gamma_milli,
        "exponent of the contention pressure in the tolerance of a pair"
    ),
    key!(
        "deepshare.eps",
        "",
        Factor,
        deepshare.colocation.eps_share_milli,
        "what is added to free GPUs in the contention pressure, as a share of all GPUs: the more, the \
         more is shared while jobs wait"
    ),
    key!(
        "deepshare.pressure",
        "",
        PressureWord,
        deepshare.colocation.demand,
        "whose demand makes contention pressure: jobs that a round promoted and could not place, \
         guaranteed ones among them, or all that wait"
    ),
    key!(
        "deepshare.guaranteed_floor",
        "",
        Chance,
        deepshare.colocation.guaranteed_floor_milli,
        "share of its solo speed that a guaranteed job of a pair keeps at least; 0: as the others"
    ),
    key!(
        "deepshare.candidates",
        "jobs",
        Count32,
        deepshare.colocation.candidates,
        "running jobs that are looked at as partners for one waiting job; 0: all"
    ),
    key!(
        "deepshare.share_by_qad",
        "",
        Flag,
        deepshare.colocation.by_qad,
        "pairs of tenants further from their quota have to keep more of their speed"
    ),
    key!(
        "deepshare.share_by_prediction",
        "",
        Flag,
        deepshare.colocation.by_prediction,
        "pairs are judged by predicted slowdown; false: whatever fits into GPU memory shares"
    ),
    key!(
        "deepshare.max_shared_gpus",
        "GPUs",
        Count32,
        deepshare.colocation.max_gpus,
        "widest job that shares; 0: any"
    ),
    key!(
        "pair.samples",
        "",
        Count32,
        run.engine.pair_samples,
        "readings in a row below tolerance after which a pair is broken up; 0: none are"
    ),
    key!(
        "pair.slack",
        "",
        Slack,
        run.engine.pair_slack_ppm,
        "how far below tolerance a reading may be before it counts; twice the noise of readings is a \
         good choice"
    ),
    sharing::PROFILES_FROM,
    sharing::MECHANISM,
    sharing::PREDICTION_R2,
    sharing::PREDICTION_MAE,
    sharing::NOISE,
    sharing::SAMPLE_PERIOD,
    sharing::GPU_MEMORY,
    sharing::PAIRS_GPU,
    key!(
        "lucid.sharing",
        "",
        SharingWord,
        lucid.sharing,
        "when Lucid lets jobs share GPUs: while its forecast of arrivals is not low, always, or never"
    ),
    key!(
        "lucid.quiet_jobs",
        "jobs",
        Factor,
        lucid.quiet_milli,
        "arrivals forecast for ten minutes at or below which Lucid does not share"
    ),
    key!(
        "lucid.profiler_nodes",
        "nodes",
        Count32,
        lucid.profiler_nodes,
        "nodes that Lucid keeps for profiling runs of 200 s; 0: profiles are known"
    ),
    key!(
        "sjf_bsbf.order",
        "",
        PairOrderWord,
        bsbf.order,
        "which job sjf-bsbf shares with first: the one beside which both end soonest on the mean, or that \
         gains most over waiting, in all or for each GPU"
    ),
    key!(
        "sjf_bsbf.split",
        "",
        Flag,
        bsbf.split,
        "sjf-bsbf may do a job's iterations in steps on smaller batches to fit beside another, where \
         its training configuration is known"
    ),
    key!("sjf_ffs.split", "", Flag, SjfFfs { split }, "the same for sjf-ffs"),
    key!(
        "tensorshare.mode",
        "",
        SharingModeWord,
        tensorshare.mode,
        "which pairs TensorShare forms: those predicted to keep both limits; whatever fits (ordinary); \
         the same, parted once seen beyond a limit (reactive); none; those that save most, whatever the \
         limits"
    ),
    key!(
        "tensorshare.limit",
        "",
        FactorFromOne,
        tensorshare.limit_milli,
        "the most that the running time of a job without a limit of its own may be over that alone"
    ),
    key!(
        "tensorshare.check",
        "",
        SlowdownCheckWord,
        tensorshare.check,
        "what is held against a limit: the slowdown beside each other, or the ratio to the job's end with \
         only the overlap slowed"
    ),
    key!(
        "tensorshare.chance",
        "",
        LikelyChance,
        tensorshare.chance,
        "chance with which a slowdown is not above what is reckoned with"
    ),
    key!(
        "tensorshare.guard",
        "",
        Flag,
        tensorshare.guard,
        "part a pair when one of the two has been slowed down as much as it accepts"
    ),
    key!(
        "tensorshare.mu",
        "GPUs",
        Factor,
        tensorshare.mu_milli,
        "what a second of slowdown weighs against a second of a GPU; 0: only GPU time counts"
    ),
    key!(
        "tensorshare.partners",
        "",
        PartnersWord,
        tensorshare.partners,
        "between whom pairs are formed: waiting jobs with each other, with running ones, or both"
    ),
    key!(
        "tensorshare.window",
        "jobs",
        Count32,
        tensorshare.window,
        "waiting jobs matched at a time, and running jobs tried for each"
    ),
    key!(
        "estimates.negative_as_s",
        "s",
        SecondsOrNone,
        settings.negative_estimate,
        "what a negative estimate of a file counts as; `none`: it is refused"
    ),
    key!(
        "trace.file",
        "",
        FileOrNone,
        settings.trace.file,
        "the job history; `none`: the built-in month; flag `--trace`"
    ),
    key!(
        "trace.log",
        "",
        FolderOrNone,
        settings.trace.log,
        "the event log of a scheduler on Kubernetes, which has the jobs and, unless `cluster.file` \
         says otherwise, the cluster; see docs/event-log.md; flag `--history`"
    ),
    key!(
        "trace.order_file",
        "",
        FileOrNone,
        settings.trace.order_file,
        "a CSV with the column `job_id` that orders simultaneous jobs; flag `--trace-order`"
    ),
    sharing::PROFILES_FILE,
    sharing::CONFIGURATIONS_FILE,
    sharing::PAIRS_FILE,
    key!(
        "workloads.file",
        "",
        FileOrNone,
        settings.tables.workloads,
        "sharing score of each workload, for lucid; `none`: from profiles; flag `--workloads`"
    ),
    key!(
        "forecast.file",
        "",
        FileOrNone,
        settings.tables.forecast,
        "forecast of arrivals in ten minutes, for lucid; `none`: what came lately; flag `--forecast`"
    ),
    key!(
        "trace.format",
        "",
        FormatWord,
        settings.trace.format,
        "the family of column names; `auto`: by the header"
    ),
    key!(
        "trace.time_unit",
        "",
        TimeUnitWord,
        settings.trace.time_unit,
        "the unit of times without a date; `auto`: seconds, refused if they look like something else"
    ),
    key!(
        "trace.origin",
        "",
        OriginWord,
        settings.trace.times.origin,
        "time zero of a log with dates: midnight before the first job, the first job, or a date"
    ),
    key!(
        "trace.not_before",
        "",
        DateTimeOrNone,
        settings.trace.times.not_before,
        "leave out jobs submitted earlier; logs with dates only"
    ),
    key!(
        "trace.window_s",
        "s",
        WindowOrNone,
        settings.trace.times.window_s,
        "keep jobs submitted from the first to the second of these after time zero, both included"
    ),
    key!(
        "cluster.file",
        "",
        FileOrNone,
        settings.cluster.file,
        "the cluster; `none`: that of the built-in month; flag `--cluster`"
    ),
    key!(
        "cluster.gpus_per_node",
        "GPUs",
        Count,
        settings.cluster.gpus_per_node,
        "GPUs of each node of a vc_config.csv, which does not say; 1 to 64"
    ),
    key!(
        "outages.file",
        "",
        FileOrNone,
        settings.outages.file,
        "a CSV of node failures, drains and maintenance; see docs/formats/outages.md"
    ),
    key!(
        "outages.mean_up_s",
        "s",
        SecondsOrNone,
        settings.outages.mean_up,
        "mean time to a node's next failure, exponential; needs `outages.mean_down_s`"
    ),
    key!(
        "outages.mean_down_s",
        "s",
        SecondsOrNone,
        settings.outages.mean_down,
        "mean time to its repair, exponential; needs `outages.mean_up_s`"
    ),
    key!(
        "actuation.bind_s",
        "s",
        SecondsRange,
        run.actuation.bind,
        "from the decision to the binding; a pair is uniform between its ends, as in all of these"
    ),
    key!(
        "actuation.start_s",
        "s",
        SecondsRange,
        run.actuation.start,
        "from the binding to running"
    ),
    key!(
        "actuation.stop_s",
        "s",
        SecondsRange,
        run.actuation.stop,
        "from an eviction to the release of the GPUs"
    ),
    key!(
        "actuation.news_s",
        "s",
        SecondsRange,
        run.actuation.news,
        "from something happening to the scheduler's hearing of it; a pair reorders news"
    ),
    key!(
        "actuation.bind_failure",
        "",
        Chance,
        run.actuation.bind_failure_milli,
        "bindings that fail"
    ),
    key!(
        "actuation.rejection",
        "",
        Chance,
        run.actuation.rejection_milli,
        "bound jobs that their node rejects"
    ),
    key!(
        "actuation.refusal",
        "",
        Chance,
        run.actuation.refusal_milli,
        "evictions of preempted jobs that are refused"
    ),
    key!(
        "actuation.loss",
        "",
        Chance,
        run.actuation.loss_milli,
        "news that is lost and heard only after the next resync"
    ),
    key!(
        "actuation.doubling",
        "",
        Chance,
        run.actuation.doubling_milli,
        "news that is heard twice"
    ),
    key!(
        "actuation.resync_s",
        "s",
        Seconds,
        run.actuation.resync,
        "from the loss of news to the resync that brings it"
    ),
    key!(
        "generate.preset",
        "",
        PresetWord,
        settings.generate.preset,
        "the history that is replayed without `trace.file`: a month like a published one, a million \
         jobs on 10,000 GPUs, or 50 jobs on 16; flag `--preset`"
    ),
    key!(
        "generate.jobs",
        "jobs",
        CountOrAuto,
        settings.generate.jobs,
        "its jobs; `auto`: 917.65 a day, 23,859 in 26 days; of `scale` 1,000,000; `testbed` always \
         has 50"
    ),
    key!(
        "generate.days",
        "days",
        CountOrAuto,
        settings.generate.days,
        "days of the month; `auto`: 26; other histories are as long as their load asks"
    ),
    key!(
        "max_idle_steps",
        "steps",
        Count,
        run.max_idle_steps,
        "steps without any job ending after which a run is given up as a livelock"
    ),
];
