//! Every rule that the auditor checks, as what it says when one is broken.

use deepshare_engine::{AttemptState, EvictReason, JobState, NodeCondition, Reason};
use deepshare_model::{
    AttemptId, Class, Devices, Epoch, GpuTime, GpuTypeId, JobId, NodeId, Outcome, PoolId,
    Resources, Retention, SiteId, Span, TenantId, Time,
};
use std::fmt;
use thiserror::Error;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "fields carry what each message names")]
pub enum Violation {
    // The stream.
    /// An event is older than the one before it.
    #[error("time runs forward: {now} came after {last}")]
    TimeRanBackwards { now: Time, last: Time },
    /// A command is dated otherwise than the event that caused it.
    #[error("a command belongs to its step: dated {now} in the step of {step}")]
    CommandOffStep { now: Time, step: Time },
    /// Job ids are dense and in order.
    #[error("job ids are issued in order: {job} came where {expected} was due")]
    JobIdOutOfOrder { job: JobId, expected: JobId },
    /// Node ids are dense and in order.
    #[error("node ids are issued in order: {node} came where {expected} was due")]
    NodeIdOutOfOrder { node: NodeId, expected: NodeId },
    /// Tenant ids are dense and in order.
    #[error("tenant ids are issued in order: {tenant} came where {expected} was due")]
    TenantIdOutOfOrder { tenant: TenantId, expected: TenantId },
    /// Attempt ids are dense and in order.
    #[error("attempt ids are issued in order: {attempt} came where {expected} was due")]
    AttemptIdOutOfOrder { attempt: AttemptId, expected: AttemptId },
    /// A job that was never submitted is named.
    #[error("{job} was never submitted")]
    UnknownJob { job: JobId },
    /// A node that was never added is named.
    #[error("{node} was never added")]
    UnknownNode { node: NodeId },
    /// A tenant that was never set is named.
    #[error("{tenant} was never set")]
    UnknownTenant { tenant: TenantId },
    /// A command names an attempt that was never made.
    #[error("{attempt} was never reserved or started")]
    UnknownAttempt { attempt: AttemptId },
    /// A node has no such device.
    #[error("{node} has {gpus} devices, and device {device} is not one of them")]
    NoSuchDevice { node: NodeId, device: u32, gpus: u32 },
    /// A job asks for nothing.
    #[error("{job} asks for no GPU, and only jobs with GPUs are scheduled")]
    NoGpus { job: JobId },

    // Who may start.
    /// A job started that must not.
    #[error("{attempt} of {job} must not start: {why}")]
    NotStartable { attempt: AttemptId, job: JobId, why: Unstartable },
    /// A job has at most one live attempt.
    #[error("{job} has one attempt at a time: {second} came while {live} lives")]
    TwoLiveAttempts { job: JobId, live: AttemptId, second: AttemptId },
    /// An attempt starts once.
    #[error("an attempt starts once: {attempt} was {state:?} already")]
    StartedTwice { attempt: AttemptId, state: AttemptState },
    /// A reservation starts as it was made.
    #[error("{attempt} starts on other devices, or for another job, than it reserved")]
    ReservationChanged { attempt: AttemptId },
    /// A reservation can be released only while it is one.
    #[error("only a reservation can be given up: {attempt} is {state:?}")]
    NotAReservation { attempt: AttemptId, state: AttemptState },
    /// A command carries the term of leadership that decided it.
    #[error("{attempt} was decided under {current}, and its command says {given}")]
    WrongEpoch { attempt: AttemptId, given: Epoch, current: Epoch },

    // Where it may start.
    /// A gang starts whole.
    #[error("a gang starts whole: {attempt} has {given} devices where {job} asks for {asked}")]
    NotWhole { attempt: AttemptId, job: JobId, given: u32, asked: u32 },
    /// A placement has one slice a node, none of them empty.
    #[error("a placement has one slice a node, none empty: {attempt} on {node}")]
    MalformedPlacement { attempt: AttemptId, node: NodeId },
    /// A device does not exist.
    #[error("{attempt} takes devices {devices:?} of {node}, which has {gpus}")]
    DeviceMissing { attempt: AttemptId, node: NodeId, devices: Devices, gpus: u32 },
    /// Nothing new is placed on a closed node.
    #[error("nothing new is placed on a node that is {condition:?}: {attempt} on {node}")]
    NodeClosed { attempt: AttemptId, node: NodeId, condition: NodeCondition },
    /// Nothing new is placed on a failed device.
    #[error("nothing new is placed on a failed device: {attempt} on {node}, {devices:?}")]
    DeviceFailed { attempt: AttemptId, node: NodeId, devices: Devices },
    /// A device has one holder, unless two may share it and both stay.
    #[error("a device is not another's: {attempt} takes {device} of {node}, which {holder} holds")]
    DeviceHeld { attempt: AttemptId, node: NodeId, device: u32, holder: AttemptId },
    /// A device is promised to one attempt.
    #[error("a device is promised once: {attempt} takes {device} of {node}, {claimant}'s")]
    DevicePromised { attempt: AttemptId, node: NodeId, device: u32, claimant: AttemptId },
    /// A job runs on its pool's nodes.
    #[error("a job runs in its pool: {attempt} of {wanted} is on {node} of {pool}")]
    OtherPool { attempt: AttemptId, node: NodeId, pool: PoolId, wanted: PoolId },
    /// A job gets the GPU model it asks for, and one only.
    #[error("a job has one GPU model, the one it asks for: {attempt} of {wanted} has {given}")]
    WrongGpuType { attempt: AttemptId, node: NodeId, given: GpuTypeId, wanted: GpuTypeId },
    /// A device has the memory that is asked for.
    #[error("{attempt} needs {need} MiB a GPU, and {node} has {has}")]
    GpuMemoryShort { attempt: AttemptId, node: NodeId, need: u32, has: u32 },
    /// CPU and host memory of a node are not exceeded.
    #[error("{node} has {capacity:?}, and {attempt} beside what is there would make it {used:?}")]
    HostShort { attempt: AttemptId, node: NodeId, used: HostUse, capacity: Resources },
    /// CPU and host memory of a node cover what stays and what is promised.
    #[error("{node} has {capacity:?}, and {used:?} is held or promised for good")]
    HostOverdrawn { node: NodeId, used: HostUse, capacity: Resources },
    /// Nodes take members as far as they admit them.
    #[error("{node} admits {left} more members like those of {attempt}, which has {members} there")]
    NotAdmitted { attempt: AttemptId, node: NodeId, members: u32, left: u32 },
    /// What a node does not admit any more is promised no longer.
    #[error("on {node} more members of {site} are promised than it admits")]
    PromisedUnadmitted { site: SiteId, node: NodeId },
    /// A member never spans nodes.
    #[error("a member of {member} GPUs stays on one node: {attempt} of {job} splits one")]
    MemberSplit { attempt: AttemptId, job: JobId, member: u32 },
    /// A consolidated job is not spread further than it must be.
    #[error(
        "a job of {gpus} GPUs takes one node if it fits ({node_size} GPUs), else whole nodes and \
         one part: {attempt} of {job} has {nodes} nodes, {parts} in part"
    )]
    Spread { attempt: AttemptId, job: JobId, gpus: u32, node_size: u32, nodes: usize, parts: u32 },
    /// Devices are charged to a class the job does not belong to.
    #[error("{attempt} of {job}, which is {class:?}, is charged or promoted as {charged:?}")]
    WrongCharge { attempt: AttemptId, job: JobId, class: Class, charged: Class },
    /// A hard quota is not exceeded by new starts.
    #[error("{tenant} may use {quota} of {gpu_type}, and {attempt} makes it {used}")]
    OverQuota { attempt: AttemptId, tenant: TenantId, gpu_type: GpuTypeId, used: u32, quota: u32 },

    // Sharing.
    /// A device has at most two holders, and is not given away while one of two stays.
    #[error("a device has two holders at most: {attempt} takes {device} of {node}, {holders:?}'s")]
    DeviceFull { attempt: AttemptId, node: NodeId, device: u32, holders: [AttemptId; 2] },
    /// A pair is on the same devices.
    #[error("two jobs share all their devices or none: {attempt} takes some of {partner}'s")]
    PairUneven { attempt: AttemptId, partner: AttemptId },
    /// Owners agreed to share.
    #[error("{attempt} shares devices with {partner}, and not both agreed to share")]
    PairUnwilling { attempt: AttemptId, partner: AttemptId },
    /// Only jobs that trust each other share.
    #[error("{attempt} shares devices with {partner}, of another trust domain")]
    PairOfStrangers { attempt: AttemptId, partner: AttemptId },
    /// One of a pair is best-effort.
    #[error("{attempt} shares devices with {partner}, and both were submitted as guaranteed")]
    PairGuaranteed { attempt: AttemptId, partner: AttemptId },
    /// Wide jobs keep to themselves.
    #[error("{attempt} of {gpus} GPUs shares devices, and at most {most} GPUs may be shared")]
    PairTooWide { attempt: AttemptId, gpus: u32, most: u32 },
    /// Both of a pair fit a device's memory, and both say what they need.
    #[error(
        "{attempt} and its partner need {needs:?} MiB a GPU (0: not said), and {node} has {has}"
    )]
    PairMemoryShort { attempt: AttemptId, node: NodeId, needs: [u32; 2], has: u32 },
    /// What both of a pair keep is predicted.
    #[error("{attempt} shares devices with {partner}, and nobody knows what they keep")]
    PairUnpredicted { attempt: AttemptId, partner: AttemptId },
    /// A guaranteed job keeps the floor.
    #[error(
        "{attempt} and {partner}: a guaranteed job is to keep {keeps}, and the floor is {floor}"
    )]
    PairBelowFloor { attempt: AttemptId, partner: AttemptId, keeps: Retention, floor: Retention },
    /// Both of a pair keep what is tolerated.
    #[error("{attempt} and {partner}: one keeps {keeps}, and {tolerance} is the least tolerated")]
    PairBelowTolerance {
        attempt: AttemptId,
        partner: AttemptId,
        keeps: Retention,
        tolerance: Retention,
    },
    /// Tolerance follows from pressure and assurance.
    #[error(
        "{attempt} and {partner} have to keep {tolerance}, and pressure and assurance make it \
         {least} to {most}"
    )]
    ToleranceDiffers {
        attempt: AttemptId,
        partner: AttemptId,
        tolerance: Retention,
        least: Retention,
        most: Retention,
    },
    /// Iterations are done in steps that divide the batch, and only beside others in more than one.
    #[error("{attempt} of {job} does its iterations in {steps} steps (alone: {alone})")]
    WrongSteps { attempt: AttemptId, job: JobId, steps: u32, alone: bool },
    /// A pair is watched from its start on.
    #[error("{attempt} started beside {partner}, and nobody watches the two")]
    NotWatched { attempt: AttemptId, partner: AttemptId },
    /// Only a pair that begins is watched.
    #[error("{attempt} and {partner} are to be watched, and did not become a pair")]
    WatchedForNothing { attempt: AttemptId, partner: AttemptId },
    /// A pair is broken up after enough bad samples in a row.
    #[error("{attempt} is sent away after {bad} bad samples in a row, of {needed} it takes")]
    RevokedTooSoon { attempt: AttemptId, bad: u32, needed: u32 },
    /// Of a pair, the guaranteed one stays.
    #[error("{attempt} is guaranteed and is sent away, and {partner} is best-effort")]
    RevokedGuaranteed { attempt: AttemptId, partner: AttemptId },
    /// A pair that is slower than it may be is broken up.
    #[error("{attempt} goes on beside {partner} after {bad} bad samples in a row")]
    LeftDegraded { attempt: AttemptId, partner: AttemptId, bad: u32 },
    /// The engine has others on the devices of an attempt, or believes it to be slower or faster.
    #[error(
        "beside {attempt}, and what it keeps: {audited:?} by the stream, {engine:?} in the engine"
    )]
    BesideDiffers {
        attempt: AttemptId,
        audited: Vec<(AttemptId, Retention)>,
        engine: Vec<(AttemptId, Retention)>,
    },
    /// The engine predicts otherwise.
    #[error(
        "the engine's predicted retentions are not those it was told, lowered by what was seen"
    )]
    RetentionsDiffer,

    // Evictions, reservations, refusals.
    /// Only what was started and does not end already is evicted.
    #[error("only a started attempt can be evicted: {attempt} is {state:?}")]
    NotEvictable { attempt: AttemptId, state: AttemptState },
    /// Nobody may be shrunk like this.
    #[error(
        "{attempt} is shrunk to {to:?} beside each GPU: not best-effort, not what its job can do with, or twice"
    )]
    BadShrink { attempt: AttemptId, to: Resources },
    /// Nobody may be grown like this.
    #[error(
        "{attempt} is grown to {to:?} beside each GPU: not shrunk long enough, not what its job asks for, or twice"
    )]
    BadGrow { attempt: AttemptId, to: Resources },
    /// An eviction gives a reason that does not hold.
    #[error("{attempt} is evicted as {reason:?}, which it is not")]
    EvictedWithoutCause { attempt: AttemptId, reason: EvictReason },
    /// Guaranteed jobs are no victims here.
    #[error("guaranteed jobs are not preempted here: {attempt} of {job}")]
    GuaranteedPreempted { attempt: AttemptId, job: JobId },
    /// What had to end in this step goes on.
    #[error("{attempt} had to end in this step ({duty}), and is {state:?}")]
    DutyMissed { attempt: AttemptId, duty: Duty, state: AttemptState },
    /// A reservation waits for nobody, and does not start.
    #[error("{attempt} of {job} is reserved, and nobody stands in its way")]
    ReservationStuck { attempt: AttemptId, job: JobId },
    /// A refused job could run, or the reason gives wrong figures.
    #[error("{job} is refused ({reason}), and {truth}")]
    FalseRefusal { job: JobId, reason: Reason, truth: &'static str },
    /// A job is still kept out as too large, and could run by now.
    #[error("{job} is kept out as too large, and an empty pool would take it by now")]
    LeftRefused { job: JobId },

    // Reclaim.
    /// Who is evicted for a job makes room for it in the same step.
    #[error("{victims} jobs were evicted for {beneficiary}, which was given no devices")]
    EvictedForNobody { beneficiary: JobId, victims: usize },
    /// Only a guaranteed job takes devices back.
    #[error("{attempt} was evicted for {beneficiary}, which is best-effort")]
    EvictedForBestEffort { attempt: AttemptId, beneficiary: JobId },
    /// Nobody is evicted who could have stayed.
    #[error("{victim} was evicted for {beneficiary}, which could have been placed without that")]
    VictimNotNeeded { victim: AttemptId, beneficiary: JobId },
    /// Who was preempted too often lately is spared if others can go instead.
    #[error(
        "{victim} was preempted {times} times within the hour and is evicted for {beneficiary}, \
         although others could have gone"
    )]
    VictimNotSpared { victim: AttemptId, beneficiary: JobId, times: usize },
    /// Whoever is shielded is spared if others can go.
    #[error("{victim} is shielded and evicted for {beneficiary}, although others could have gone")]
    ShieldedNotSpared { victim: AttemptId, beneficiary: JobId },
    /// Who has not run its minimum time, or whose eviction was refused lately, is no victim.
    #[error("{attempt} is preempted, and may not be before {from}")]
    PreemptedTooSoon { attempt: AttemptId, from: Time },
    /// A guaranteed job within its quota waits although it could be given devices.
    #[error("{job} is within its quota, and waits although {with} would place it")]
    LeftWaiting { job: JobId, with: &'static str },
    /// The engine has another quota assurance degree.
    #[error(
        "the {what} assurance degree of {tenant} is {audited} millionths by the stream, {engine} \
         in the engine"
    )]
    AssuranceDiffers { tenant: TenantId, what: &'static str, audited: u32, engine: u32 },

    // The engine's view.
    /// The engine counts other entries.
    #[error("{what}: {audited} by the stream, {engine} in the engine")]
    CountDiffers { what: &'static str, audited: usize, engine: usize },
    /// The engine's figure for a pool differs.
    #[error("{what} GPUs of {pool}: {audited} by the stream, {engine} in the engine")]
    PoolDiffers { pool: PoolId, what: &'static str, audited: u32, engine: u32 },
    /// The engine's figure for a node differs.
    #[error("{what} devices of {node}: {audited:?} by the stream, {engine:?} in the engine")]
    NodeDiffers { node: NodeId, what: &'static str, audited: Devices, engine: Devices },
    /// The engine has a node in another condition.
    #[error("{node} is {audited:?} by the stream, {engine:?} in the engine")]
    ConditionDiffers { node: NodeId, audited: NodeCondition, engine: NodeCondition },
    /// The engine has others on a device.
    #[error("on device {device} of {node}: {audited:?} by the stream, {engine:?} in the engine")]
    HolderDiffers { node: NodeId, device: u32, audited: Vec<AttemptId>, engine: Vec<AttemptId> },
    /// The engine has a job elsewhere.
    #[error("{job} is {audited} by the stream, {engine:?} in the engine")]
    JobDiffers { job: JobId, audited: Standing, engine: JobState },
    /// The engine has an attempt elsewhere.
    #[error("{attempt} is {audited:?} by the stream, {engine:?} in the engine")]
    AttemptDiffers { attempt: AttemptId, audited: AttemptState, engine: AttemptState },
    /// The engine has an attempt hold other amounts.
    #[error("{attempt} holds {audited:?} beside each GPU by the stream, {engine:?} in the engine")]
    HeldDiffers { attempt: AttemptId, audited: Resources, engine: Resources },
    /// The engine charges a tenant otherwise.
    #[error("{tenant} uses {audited} of {gpu_type} by the stream, {engine} in the engine")]
    UsedDiffers { tenant: TenantId, gpu_type: GpuTypeId, audited: u32, engine: u32 },

    // Conservation.
    /// Devices of a node do not add up.
    #[error(
        "{node} has {healthy} healthy devices, and {free} free, {held} held, {promised} promised"
    )]
    NodeNotConserved { node: NodeId, free: u32, held: u32, promised: u32, healthy: u32 },
    /// GPU time held by devices is not that of attempts.
    #[error("devices were held for {devices:?}, a holder each, by attempts for {attempts:?}")]
    HeldTimeNotConserved { devices: GpuTime, attempts: GpuTime },
    /// Shares of GPU time do not add up.
    #[error("{installed:?} of GPU time were installed, and its shares make {shares:?}")]
    GpuTimeNotConserved { installed: GpuTime, shares: GpuTime },
    /// Progress that was kept is not the work demanded.
    #[error(
        "{job} demands {work}, progressed {progressed} and lost {lost} of it (completed: \
         {completed})"
    )]
    WorkNotConserved { job: JobId, work: Span, progressed: Span, lost: Span, completed: bool },
    /// Running time is not progress and restarts.
    #[error("{job} ran {ran}, of which {progressed} was progress and {restarts} restarts")]
    RunTimeNotConserved { job: JobId, ran: Span, progressed: Span, restarts: Span },
    /// A job ran longer than it held devices.
    #[error("{job} ran {ran} and held devices for {held} only")]
    RanWithoutDevices { job: JobId, ran: Span, held: Span },
}

/// Why a job must not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstartable {
    /// It is over.
    Ended(Outcome),
    /// Its owner withdrew it.
    Cancelled,
    /// Its owner holds it.
    Held,
    /// It failed to start and pauses.
    BackingOff {
        /// Until when.
        until: Time,
    },
}

impl fmt::Display for Unstartable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unstartable::Ended(outcome) => write!(f, "it ended ({})", outcome.name()),
            Unstartable::Cancelled => f.write_str("it was cancelled"),
            Unstartable::Held => f.write_str("its owner holds it"),
            Unstartable::BackingOff { until } => write!(f, "it backs off until {until}"),
        }
    }
}

/// Why an attempt had to end in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Its job was cancelled.
    Cancelled,
    /// One of its nodes was lost.
    NodeLost(NodeId),
    /// It was declared overdue.
    StartOverdue,
    /// It waited for an attempt whose eviction was refused.
    EvictionRefused(AttemptId),
    /// It was promised devices that another attempt turned out to hold.
    DevicesTaken(AttemptId),
    /// A member of it is gone.
    Broken,
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Duty::Cancelled => f.write_str("its job was cancelled"),
            Duty::NodeLost(node) => write!(f, "{node} was lost"),
            Duty::StartOverdue => f.write_str("its start is overdue"),
            Duty::EvictionRefused(holder) => write!(f, "the eviction of {holder} was refused"),
            Duty::DevicesTaken(holder) => write!(f, "{holder} was found on its devices"),
            Duty::Broken => f.write_str("a member of it is gone"),
        }
    }
}

/// Where a job stands, by the stream of events and commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Over.
    Ended(Outcome),
    /// With this attempt.
    Active(AttemptId),
    /// Held by its owner.
    Held,
    /// Refused as too large.
    Refused,
    /// In its queue, or pausing before it returns there.
    Waiting,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Ended(outcome) => write!(f, "ended ({})", outcome.name()),
            Standing::Active(attempt) => write!(f, "active ({attempt})"),
            Standing::Held => f.write_str("held"),
            Standing::Refused => f.write_str("refused"),
            Standing::Waiting => f.write_str("waiting"),
        }
    }
}

/// CPU and host memory used on a node; wide, so that a wrong sum is reported rather than overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// Thousandths of a core.
    pub cpu_milli: u128,
    /// MiB.
    pub memory_mib: u128,
}

impl HostUse {
    pub(crate) fn add(&mut self, each: Resources, n: u32) {
        self.cpu_milli += u128::from(each.cpu_milli) * u128::from(n);
        self.memory_mib += u128::from(each.memory_mib) * u128::from(n);
    }

    /// True if this is more than there is of something that is asked for.
    pub(crate) fn is_short_of(self, limit: Resources, asked: Resources) -> bool {
        (asked.cpu_milli > 0 && self.cpu_milli > u128::from(limit.cpu_milli))
            || (asked.memory_mib > 0 && self.memory_mib > u128::from(limit.memory_mib))
    }

    pub(crate) fn fits(self, limit: Resources) -> bool {
        self.cpu_milli <= u128::from(limit.cpu_milli)
            && self.memory_mib <= u128::from(limit.memory_mib)
    }
}
