//! The table of keys.

use super::field::Field::{Address, Count, Flag, Milli, Millionths, Name, Path, Seconds, Word};
use super::field::{Field, Key};
use crate::writes::Kind;
use deepshare_policies::PolicyConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most of a factor, thousandths.
const FACTOR: u32 = 1_000_000_000;
/// Most of a share, thousandths.
const SHARE: u32 = 1_000;

const fn key(name: &'static str, unit: &'static str, field: Field, doc: &'static str) -> Key {
    Key { name, unit, field, doc }
}

/// The word that serde has for a value.
fn word_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Sets the value that serde reads from a word.
fn set_word<T: DeserializeOwned>(field: &mut T, word: &str) -> bool {
    serde_json::from_value(Value::from(word)).map(|value| *field = value).is_ok()
}

const POLICY: Field = Word {
    words: &PolicyConfig::NAMES,
    get: |settings| settings.policy.to_owned(),
    set: |settings, word| {
        let known = PolicyConfig::NAMES.into_iter().find(|name| *name == word);
        known.map(|name| settings.policy = name).is_some()
    },
};

const CAPACITY: Field = Word {
    words: &["elastic", "hard", "pool"],
    get: |settings| word_of(&settings.engine.capacity),
    // A partition gives each tenant nodes of its own, which no Kubernetes object tells.
    set: |settings, word| word != "partition" && set_word(&mut settings.engine.capacity, word),
};

const PLACEMENT: Field = Word {
    words: &["consolidate", "consolidate-artifact", "node-order"],
    get: |settings| word_of(&settings.engine.placer),
    set: |settings, word| set_word(&mut settings.engine.placer, word),
};

const PRESSURE: Field = Word {
    words: &["promoted", "guaranteed-only", "all-pending"],
    get: |settings| word_of(&settings.deepshare.colocation.demand),
    set: |settings, word| set_word(&mut settings.deepshare.colocation.demand, word),
};

/// Every key, in the order of the reference.
pub const KEYS: &[Key] = &[
    key(
        "scheduler",
        "",
        Name(|s| &mut s.scheduler),
        "`spec.schedulerName` of the pods that are scheduled",
    ),
    key("policy", "", POLICY, "who goes first, who shares and who is preempted"),
    key(
        "capacity",
        "",
        CAPACITY,
        "how quotas bind: one pool with quotas and borrowing, one pool with quotas, or one without; \
         `elastic` for deepshare and elastic-quota, else `hard`",
    ),
    key(
        "placement",
        "",
        PLACEMENT,
        "how GPUs are chosen: on as few nodes as possible, snuggest first; the same as the Lucid \
         artifact has it; or the first free ones in node order",
    ),
    key(
        "cycle_s",
        "s",
        Seconds(|s| &mut s.engine.cycle),
        "at most one round of decisions in each slot of this length; 0: at every event; 0.05 for \
         deepshare, else 0",
    ),
    key("grace_s", "s", Seconds(|s| &mut s.engine.grace), "grace that evicted pods are given"),
    key(
        "backoff.first_s",
        "s",
        Seconds(|s| &mut s.engine.backoff_first),
        "pause after a failed start; doubles with each failure in a row",
    ),
    key(
        "backoff.max_s",
        "s",
        Seconds(|s| &mut s.engine.backoff_max),
        "longest pause after failed starts",
    ),
    key(
        "preempted_pause_s",
        "s",
        Seconds(|s| &mut s.engine.preempted_pause),
        "pause before a job starts again that was preempted before within an hour; doubles with each \
         preemption, up to ten times `backoff.max_s`; 0: none; 30 for deepshare, else 0",
    ),
    key(
        "qad.lambda",
        "",
        Milli(|s| &mut s.engine.qad_lambda_milli, SHARE),
        "weight of the newest sample in a tenant's smoothed quota assurance degree",
    ),
    key(
        "pair.samples",
        "",
        Count(|s| &mut s.engine.pair_samples),
        "readings in a row below tolerance after which a pair is broken up; 0: none are",
    ),
    key(
        "pair.slack",
        "",
        Millionths(|s| &mut s.engine.pair_slack_ppm),
        "how far below tolerance a reading may be before it counts",
    ),
    key(
        "retentions.file",
        "",
        Path(|s| &mut s.retentions),
        "what pods of each profile class keep of their speed beside others \
         ([format](operations.md#the-retention-file)); without it nobody shares",
    ),
    key(
        "deepshare.order_by_qad",
        "",
        Flag(|s| &mut s.deepshare.order_by_qad),
        "serve tenants further from their quota first",
    ),
    key(
        "deepshare.reclaim",
        "",
        Flag(|s| &mut s.deepshare.reclaim),
        "evict best-effort jobs for guaranteed ones within quota",
    ),
    key(
        "deepshare.order_by_time",
        "",
        Flag(|s| &mut s.deepshare.order_by_time),
        "serve jobs with less estimated time left first, among equally assured tenants",
    ),
    key(
        "deepshare.spill",
        "",
        Flag(|s| &mut s.deepshare.spill),
        "let guaranteed jobs beyond their quota start as best-effort",
    ),
    key(
        "deepshare.alpha",
        "",
        Milli(|s| &mut s.deepshare.alpha_milli, FACTOR),
        "weight of a job's past preemptions in the cost of evicting it",
    ),
    key(
        "deepshare.beta",
        "",
        Milli(|s| &mut s.deepshare.beta_milli, FACTOR),
        "weight of the number of victims in the cost of a set of them",
    ),
    key(
        "deepshare.qad_bucket",
        "",
        Milli(|s| &mut s.deepshare.qad_bucket_milli, FACTOR),
        "quota assurance degrees that differ by less count as equal; 0: none do",
    ),
    key(
        "deepshare.gang_guard_s",
        "s",
        Seconds(|s| &mut s.deepshare.gang_guard),
        "a gang wider than a node that no quota holds back has nodes set aside for it after waiting \
         this long; 0: never",
    ),
    key(
        "deepshare.preemption_cap",
        "",
        Count(|s| &mut s.deepshare.preemption_cap),
        "preemptions within an hour after which a job is a victim only if there is no other; 0: none",
    ),
    key(
        "deepshare.shrink",
        "",
        Flag(|s| &mut s.deepshare.shrink),
        "shrink best-effort jobs' CPU and memory in place for guaranteed ones that lack them",
    ),
    key(
        "deepshare.grow",
        "",
        Flag(|s| &mut s.deepshare.grow),
        "give shrunk jobs back what they ask for, after a minute, once nobody lacks CPU or memory",
    ),
    key(
        "deepshare.k",
        "jobs",
        Count(|s| &mut s.deepshare.colocation.residents),
        "most jobs on one GPU: 2, or 1 for no sharing",
    ),
    key(
        "deepshare.rho_min",
        "",
        Milli(|s| &mut s.deepshare.colocation.rho_min_milli, SHARE),
        "share of its solo speed that each of a pair keeps at least, without pressure",
    ),
    key(
        "deepshare.gamma",
        "",
        Milli(|s| &mut s.deepshare.colocation.gamma_milli, FACTOR),
        "exponent of the contention pressure in the tolerance of a pair",
    ),
    key(
        "deepshare.eps",
        "",
        Milli(|s| &mut s.deepshare.colocation.eps_share_milli, FACTOR),
        "what is added to free GPUs in the contention pressure, as a share of all GPUs: the more, the \
         more is shared while jobs wait",
    ),
    key(
        "deepshare.pressure",
        "",
        PRESSURE,
        "whose demand makes contention pressure: jobs that a round promoted and could not place, \
         guaranteed ones among them, or all that wait",
    ),
    key(
        "deepshare.guaranteed_floor",
        "",
        Milli(|s| &mut s.deepshare.colocation.guaranteed_floor_milli, SHARE),
        "share of its solo speed that a guaranteed job of a pair keeps at least; 0: as the others",
    ),
    key(
        "deepshare.candidates",
        "jobs",
        Count(|s| &mut s.deepshare.colocation.candidates),
        "running jobs that are looked at as partners for one waiting job; 0: all",
    ),
    key(
        "deepshare.share_by_qad",
        "",
        Flag(|s| &mut s.deepshare.colocation.by_qad),
        "pairs of tenants further from their quota have to keep more of their speed",
    ),
    key(
        "deepshare.share_by_prediction",
        "",
        Flag(|s| &mut s.deepshare.colocation.by_prediction),
        "pairs are judged by predicted slowdown; false: whatever fits into GPU memory shares",
    ),
    key(
        "deepshare.max_shared_gpus",
        "GPUs",
        Count(|s| &mut s.deepshare.colocation.max_gpus),
        "widest job that shares; 0: any",
    ),
    key(
        "volumes_s",
        "s",
        Seconds(|s| &mut s.volumes),
        "volumes that are made for a pod once it has a node (`WaitForFirstConsumer`) and are not there \
         after this long are given up, and its job is decided anew",
    ),
    key("lease.namespace", "", Name(|s| &mut s.lease.namespace), "namespace of the Lease"),
    key(
        "lease.name",
        "",
        Name(|s| &mut s.lease.name),
        "name of the Lease: of the processes that name the same one, one schedules",
    ),
    key(
        "lease.duration_s",
        "s",
        Seconds(|s| &mut s.lease.duration),
        "a leader that has not renewed for so long is replaced",
    ),
    key(
        "lease.renew_deadline_s",
        "s",
        Seconds(|s| &mut s.lease.renew_deadline),
        "a leader that could not renew for so long stops writing and ends",
    ),
    key("lease.retry_s", "s", Seconds(|s| &mut s.lease.retry), "time between two tries to renew"),
    key(
        "log.folder",
        "",
        Path(|s| &mut s.log.folder),
        "folder of the event log, which `deepshare replay` re-runs; without it nothing is recorded",
    ),
    key(
        "log.max_mib",
        "MiB",
        Count(|s| &mut s.log.max_mib),
        "most of all files of the event log together: the oldest are removed",
    ),
    key("log.file_mib", "MiB", Count(|s| &mut s.log.file_mib), "size at which a new file is begun"),
    key(
        "in_flight.bind",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Bind as usize]),
        "bindings, and nodes written on volume claims before them, in flight at once",
    ),
    key(
        "in_flight.evict",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Evict as usize]),
        "evictions, deletions and the conditions before them",
    ),
    key(
        "in_flight.resize",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Resize as usize]),
        "resizes",
    ),
    key(
        "in_flight.status",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Status as usize]),
        "conditions, nominations and annotations of pods",
    ),
    key(
        "in_flight.tenant",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Tenant as usize]),
        "status of TenantQuotas",
    ),
    key(
        "in_flight.event",
        "requests",
        Count(|s| &mut s.in_flight[Kind::Announce as usize]),
        "events about pods",
    ),
    key(
        "listen",
        "",
        Address(|s| &mut s.listen),
        "where `/healthz`, `/readyz` and `/metrics` are served; there is no authentication",
    ),
];
