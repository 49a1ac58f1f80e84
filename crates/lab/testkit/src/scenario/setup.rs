//! Commands that choose settings, and those that describe machines and tenants.

use super::error::Fault;
use super::story::Story;
use super::words::{Word, Words};
use deepshare_engine::{CapacityMode, Event, Placer};
use deepshare_model::{
    Devices, GpuTime, GpuTypeId, NodeId, NodeSpec, PoolId, Quota, Resources, TenantId, TenantSpec,
};
use deepshare_policies::{
    DeepShareSettings, Demotion, PairOrder, Partners, PolicyConfig, PressureDemand, SharingMode,
    SlowdownCheck, TensorShareSettings, TieOrder,
};

fn before_all(story: &Story, words: &Words<'_>) -> Result<(), Fault> {
    let column = words.peek().map_or(1, |word| word.column);
    match story.has_begun() {
        true => Err(Fault::script(column, "the engine runs already", "say it on the first lines")),
        false => Ok(()),
    }
}

pub(crate) fn policy(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    before_all(story, words)?;
    let name = words.need("the policy's name", usage)?;
    let Some(mut policy) = PolicyConfig::by_name(name.text) else {
        let remedy = format!("use one of {}", PolicyConfig::NAMES.join(", "));
        return Err(name.wrong("is no policy", remedy));
    };
    match &mut policy {
        PolicyConfig::Srtf { ties, spare_unneeded } => {
            let orders = [
                ("running-first", TieOrder::RunningFirst),
                ("waiting-first", TieOrder::WaitingFirst),
            ];
            for setting in words.settings(&["ties", "spare"])? {
                match setting.key.text {
                    "ties" => *ties = setting.value.one_of(&orders)?,
                    _ => *spare_unneeded = setting.value.yes()?,
                }
            }
        }
        PolicyConfig::Qssf { first_second_by_gpus } => {
            for setting in words.settings(&["first-second-by-gpus"])? {
                *first_second_by_gpus = setting.value.yes()?;
            }
        }
        PolicyConfig::Tiresias {
            thresholds,
            interval,
            promote_after_milli,
            demotion,
            spare_unneeded,
        } => {
            let keys = ["thresholds", "interval", "promote", "demotion", "spare"];
            let at = [("at", Demotion::AtThreshold), ("above", Demotion::AboveThreshold)];
            for setting in words.settings(&keys)? {
                let value = setting.value;
                match setting.key.text {
                    "thresholds" => *thresholds = gpu_times(value)?,
                    "interval" => *interval = value.span()?,
                    "promote" => *promote_after_milli = Some(value.milli()?),
                    "demotion" => *demotion = value.one_of(&at)?,
                    _ => *spare_unneeded = value.yes()?,
                }
            }
        }
        PolicyConfig::Fifo { skip } | PolicyConfig::Sjf { skip } => {
            for setting in words.settings(&["skip"])? {
                *skip = setting.value.yes()?;
            }
        }
        PolicyConfig::DeepShare(settings) => deepshare(settings, words)?,
        PolicyConfig::SjfBsbf(sharing) => {
            let orders = [
                ("completion", PairOrder::Completion),
                ("benefit", PairOrder::Benefit),
                ("benefit-per-gpu", PairOrder::BenefitPerGpu),
            ];
            for setting in words.settings(&["order", "split"])? {
                match setting.key.text {
                    "order" => sharing.order = setting.value.one_of(&orders)?,
                    _ => sharing.split = setting.value.yes()?,
                }
            }
        }
        PolicyConfig::SjfFfs { split } => {
            for setting in words.settings(&["split"])? {
                *split = setting.value.yes()?;
            }
        }
        PolicyConfig::TensorShare(settings) => tensorshare(settings, words)?,
        _ => words.done(usage)?,
    }
    story.setup.choose(policy);
    Ok(())
}

fn tensorshare(settings: &mut TensorShareSettings, words: &mut Words<'_>) -> Result<(), Fault> {
    let modes = [
        ("predicted", SharingMode::Predicted),
        ("ordinary", SharingMode::Ordinary),
        ("reactive", SharingMode::Reactive),
        ("never", SharingMode::Never),
        ("always", SharingMode::Always),
    ];
    let checks = [("steady", SlowdownCheck::Steady), ("time-aware", SlowdownCheck::TimeAware)];
    let partners =
        [("both", Partners::Both), ("waiting", Partners::Waiting), ("running", Partners::Running)];
    let keys = ["mode", "limit", "check", "chance", "guard", "mu", "partners", "window"];
    for setting in words.settings(&keys)? {
        let value = setting.value;
        match setting.key.text {
            "mode" => settings.mode = value.one_of(&modes)?,
            "limit" => settings.limit_milli = value.thousandths()?,
            "check" => settings.check = value.one_of(&checks)?,
            "chance" => settings.chance = value.count(50, 100)?,
            "guard" => settings.guard = value.yes()?,
            "mu" => settings.mu_milli = value.thousandths()?,
            "partners" => settings.partners = value.one_of(&partners)?,
            _ => settings.window = value.count(1, 1_000)?,
        }
    }
    Ok(())
}

fn deepshare(settings: &mut DeepShareSettings, words: &mut Words<'_>) -> Result<(), Fault> {
    let keys = [
        "alpha",
        "beta",
        "qad-bucket",
        "order-by-qad",
        "order-by-time",
        "reclaim",
        "spill",
        "shrink",
        "grow",
        "gang-guard",
        "residents",
        "rho-min",
        "gamma",
        "eps",
        "pressure",
        "floor",
        "candidates",
        "tolerance-by-qad",
        "by-prediction",
        "max-gpus",
        "preemption-cap",
    ];
    let demands = [
        ("promoted", PressureDemand::Promoted),
        ("guaranteed-only", PressureDemand::GuaranteedOnly),
        ("all-pending", PressureDemand::AllPending),
    ];
    for setting in words.settings(&keys)? {
        let value = setting.value;
        match setting.key.text {
            "alpha" => settings.alpha_milli = value.thousandths()?,
            "beta" => settings.beta_milli = value.thousandths()?,
            "qad-bucket" => settings.qad_bucket_milli = value.thousandths()?,
            "order-by-qad" => settings.order_by_qad = value.yes()?,
            "order-by-time" => settings.order_by_time = value.yes()?,
            "reclaim" => settings.reclaim = value.yes()?,
            "spill" => settings.spill = value.yes()?,
            "shrink" => settings.shrink = value.yes()?,
            "grow" => settings.grow = value.yes()?,
            "gang-guard" => settings.gang_guard = value.span()?,
            "residents" => settings.colocation.residents = value.count(1, 2)?,
            "rho-min" => settings.colocation.rho_min_milli = value.thousandths()?,
            "gamma" => settings.colocation.gamma_milli = value.thousandths()?,
            "eps" => settings.colocation.eps_share_milli = value.thousandths()?,
            "pressure" => settings.colocation.demand = value.one_of(&demands)?,
            "floor" => settings.colocation.guaranteed_floor_milli = value.thousandths()?,
            "candidates" => settings.colocation.candidates = value.count(0, u32::MAX)?,
            "tolerance-by-qad" => settings.colocation.by_qad = value.yes()?,
            "by-prediction" => settings.colocation.by_prediction = value.yes()?,
            "max-gpus" => settings.colocation.max_gpus = value.count(0, u32::MAX)?,
            _ => settings.preemption_cap = value.count(0, u32::MAX)?,
        }
    }
    Ok(())
}

/// `100s,400s`: GPU-seconds, ascending.
fn gpu_times(word: Word<'_>) -> Result<Vec<GpuTime>, Fault> {
    let parts = word.text.split(',').map(|text| Word { column: word.column, text });
    let times: Vec<GpuTime> =
        parts.map(|part| Ok(part.span()?.on(1))).collect::<Result<_, Fault>>()?;
    match times.is_sorted() {
        true => Ok(times),
        false => Err(word.wrong("does not ascend", "write the lower threshold first")),
    }
}

pub(crate) fn settings(
    story: &mut Story,
    words: &mut Words<'_>,
    _usage: &'static str,
) -> Result<(), Fault> {
    before_all(story, words)?;
    let keys = [
        "capacity",
        "placement",
        "cycle",
        "grace",
        "backoff-first",
        "backoff-max",
        "preempted-pause",
        "pair-samples",
        "pair-slack",
        "restart",
        "news",
    ];
    let modes =
        [CapacityMode::Partition, CapacityMode::Hard, CapacityMode::Pool, CapacityMode::Elastic];
    let modes = modes.map(|mode| (mode.name(), mode));
    let placers = [
        ("consolidate", Placer::Consolidate),
        ("consolidate-artifact", Placer::ConsolidateArtifact),
        ("node-order", Placer::NodeOrder),
    ];
    for setting in words.settings(&keys)? {
        let (value, setup) = (setting.value, &mut story.setup);
        setup.said.push(setting.key.text.to_owned());
        match setting.key.text {
            "capacity" => setup.engine.capacity = value.one_of(&modes)?,
            "placement" => setup.engine.placer = value.one_of(&placers)?,
            "cycle" => setup.engine.cycle = value.span()?,
            "grace" => setup.engine.grace = value.span()?,
            "backoff-first" => setup.engine.backoff_first = value.span()?,
            "backoff-max" => setup.engine.backoff_max = value.span()?,
            "preempted-pause" => setup.engine.preempted_pause = value.span()?,
            "pair-samples" => setup.engine.pair_samples = value.count(0, u32::MAX)?,
            "pair-slack" => setup.engine.pair_slack_ppm = value.thousandths()? * 1_000,
            "restart" => setup.restart = value.span()?,
            _ => setup.news_twice = value.one_of(&[("once", false), ("twice", true)])?,
        }
    }
    Ok(())
}

pub(super) fn keyword(words: &mut Words<'_>, text: &str, usage: &'static str) -> Result<(), Fault> {
    let word = words.need(&format!("`{text}`"), usage)?;
    // `1 node` reads better than `1 nodes`.
    let singular = text.strip_suffix('s').is_some_and(|singular| singular == word.text);
    match word.text == text || singular {
        true => Ok(()),
        false => {
            Err(word.wrong(&format!("stands where `{text}` was due"), format!("write `{usage}`")))
        }
    }
}

pub(crate) fn cluster(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let nodes = words.need("the number of nodes", usage)?.count(1, 10_000)?;
    keyword(words, "nodes", usage)?;
    keyword(words, "x", usage)?;
    let gpus = words.need("GPUs of each", usage)?.count(1, Devices::MAX_PER_NODE)?;
    keyword(words, "gpus", usage)?;
    let mut spec = NodeSpec {
        pool: PoolId(0),
        gpu_type: GpuTypeId(0),
        gpus,
        gpu_memory_mib: 0,
        capacity: Resources::UNLIMITED,
    };
    let (mut named_type, mut owner) = (false, None);
    let keys = ["type", "tenant", "cpus", "memory", "gpu-memory"];
    for setting in words.settings(&keys)? {
        let value = setting.value;
        match setting.key.text {
            "type" => (spec.gpu_type, named_type) = (story.names.gpu_type(value.text), true),
            "tenant" => owner = Some(tenant_named(story, value)?),
            "cpus" => spec.capacity.cpu_milli = value.milli()?,
            "memory" => spec.capacity.memory_mib = value.count(0, u32::MAX)?.into(),
            _ => spec.gpu_memory_mib = value.count(0, u32::MAX)?,
        }
    }
    if !named_type {
        spec.gpu_type = story.names.gpu_type("any");
    }
    if let Some(owner) = owner {
        spec.pool = pool_of(story, owner);
    }
    for _ in 0..nodes {
        let node = NodeId(story.names.nodes);
        story.names.nodes += 1;
        story.tell(Event::NodeAdded { node, spec: spec.clone() })?;
    }
    Ok(())
}

pub(crate) fn move_node(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let node = story.names.node(words.need("the node", usage)?)?;
    let tenant = words.need("whose partition it joins", usage)?;
    words.done(usage)?;
    let tenant = story.names.tenant(tenant)?;
    let pool = pool_of(story, tenant);
    story.tell(Event::NodeMoved { node, pool })
}

fn pool_of(story: &Story, tenant: TenantId) -> PoolId {
    match story.setup.engine.capacity {
        CapacityMode::Partition => PoolId::from_index(tenant.index()),
        _ => PoolId(0),
    }
}

/// The tenant of this name; one without terms if there is none yet and terms do not matter.
pub(crate) fn tenant_named(story: &mut Story, word: Word<'_>) -> Result<TenantId, Fault> {
    tenant_called(story, word.text, word)
}

/// As [`tenant_named`], blaming `word` if there is none.
pub(crate) fn tenant_called(
    story: &mut Story,
    name: &str,
    word: Word<'_>,
) -> Result<TenantId, Fault> {
    if let Ok(tenant) = story.names.tenant(Word { column: word.column, text: name }) {
        return Ok(tenant);
    }
    let capacity = story.setup.engine.capacity;
    if matches!(capacity, CapacityMode::Hard | CapacityMode::Elastic) {
        let why = format!("has no quota, and capacity is {} (tenant `{name}`)", capacity.name());
        return Err(word.wrong(&why, format!("write `tenant {name} quota=N` before")));
    }
    let tenant = TenantId::from_index(story.names.tenants.len());
    story.names.tenants.push(name.to_owned());
    let spec = TenantSpec::new(pool_of(story, tenant), Quota::default());
    story.tell(Event::TenantSet { tenant, spec })?;
    Ok(tenant)
}

pub(crate) fn tenant(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let name = words.need("the tenant's name", usage)?;
    let known = story.names.tenant(name).ok();
    let tenant = known.unwrap_or(TenantId::from_index(story.names.tenants.len()));
    let mut spec = match known {
        Some(tenant) => story.state().tenant(tenant).clone(),
        None => TenantSpec::new(pool_of(story, tenant), Quota::default()),
    };
    let keys = ["quota", "parent", "best-effort", "lending", "min-run"];
    for setting in words.settings(&keys)? {
        let value = setting.value;
        match setting.key.text {
            "quota" => spec.quota = quota_of(story, value)?,
            "parent" if value.text == "none" => spec.parent = None,
            "parent" => spec.parent = Some(story.names.tenant(value)?),
            "best-effort" => spec.best_effort_milli = value.thousandths()?,
            "lending" if value.text == "all" => spec.lending_limit = None,
            "lending" => spec.lending_limit = Some(value.count(0, u32::MAX)?),
            _ => spec.min_run_time = value.span()?,
        }
    }
    if known.is_none() {
        story.names.tenants.push(name.text.to_owned());
    }
    story.tell(Event::TenantSet { tenant, spec })
}

/// `8`, for every GPU type so far, or `A100:4,V100:2`.
fn quota_of(story: &mut Story, word: Word<'_>) -> Result<Quota, Fault> {
    if !word.text.contains(':') {
        return Ok(Quota::uniform(word.count(0, u32::MAX)?, story.names.gpu_types()));
    }
    let mut quota = Quota::default();
    for part in word.text.split(',') {
        let remedy = "write a number, or type:number with commas between";
        let (gpu_type, gpus) =
            part.split_once(':').ok_or_else(|| word.wrong("is no quota", remedy))?;
        let gpus = Word { column: word.column, text: gpus }.count(0, u32::MAX)?;
        quota.set(story.names.gpu_type(gpu_type), gpus);
    }
    Ok(quota)
}

pub(crate) fn quota(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let tenant = story.names.tenant(words.need("the tenant", usage)?)?;
    let word = words.need("the quota", usage)?;
    words.done(usage)?;
    let quota = quota_of(story, word)?;
    let spec = TenantSpec { quota, ..story.state().tenant(tenant).clone() };
    story.tell(Event::TenantSet { tenant, spec })
}
