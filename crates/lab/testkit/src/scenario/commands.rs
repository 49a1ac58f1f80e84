//! Every command of the language, in one table.

use super::error::Fault;
use super::report;
use super::setup;
use super::sharing;
use super::story::{JobTruth, Story};
use super::words::{Word, Words};
use super::world;
use deepshare_engine::{BindFailure, Event};
use deepshare_model::{
    Class, Demand, IterationTime, JobId, JobSpec, NodeId, Outcome, Resources, Sharing, Span,
    TenantId, Training, TrainingMemory,
};

type Run = fn(&mut Story, &mut Words<'_>, &'static str) -> Result<(), Fault>;

/// One command: its name, how it is written, and what it does.
struct Entry {
    name: &'static str,
    usage: &'static str,
    run: Run,
}

macro_rules! commands {
    ($($name:literal $usage:literal $run:expr;)*) => {
        &[$(Entry { name: $name, usage: concat!($name, $usage), run: $run }),*]
    };
}

/// To add a command, add a line, a function, and a paragraph in `docs/formats/scenario.md`.
const COMMANDS: &[Entry] = commands! {
    // Before anything happens.
    "policy" " NAME [key=value ..]" setup::policy;
    "settings" " key=value .." setup::settings;
    // Inventory and tenants.
    "cluster" " N nodes x G gpus [type=T] [tenant=T] [cpus=C] [memory=MIB] [gpu-memory=MIB]"
        setup::cluster;
    "tenant" " NAME [quota=N] [parent=T] [best-effort=X] [lending=N] [min-run=TIME]" setup::tenant;
    "quota" " TENANT N" setup::quota;
    "lose" " NODE" |s, w, u| with_node(s, w, u, |node| Event::NodeLost { node });
    "recover" " NODE" |s, w, u| with_node(s, w, u, |node| Event::NodeRecovered { node });
    "cordon" " NODE"
        |s, w, u| with_node(s, w, u, |node| Event::NodeCordoned { node, cordoned: true });
    "uncordon" " NODE"
        |s, w, u| with_node(s, w, u, |node| Event::NodeCordoned { node, cordoned: false });
    "move" " NODE TENANT" setup::move_node;
    "device" " NODE.DEVICE bad|good" device;
    "change" " NODE [gpus=N] [cpus=C] [memory=MIB]" world::change;
    "admit" " SITE on all|n0,n1 [xN]" world::admit;
    "assurance" " TENANT DEGREE" world::assurance;
    // Jobs.
    "submit" " NAME gpus=N|members=MxG [key=value ..]" submit;
    "estimate" " JOB TIME" estimate;
    "finish" " JOB [OUTCOME]" finish;
    "cancel" " JOB" |s, w, u| with_job(s, w, u, |job| Event::Cancelled { job });
    "hold" " JOB" |s, w, u| with_job(s, w, u, |job| Event::Held { job });
    "unhold" " JOB" |s, w, u| with_job(s, w, u, |job| Event::Unheld { job });
    "overdue" " JOB" overdue;
    "stale" " JOB" stale;
    "found" " JOB on n0.0,n0.1 [ran=TIME] [cpus=C] [memory=MIB] [quota=no]" world::found;
    "carry" " JOB [preempted=TIME,TIME] [ran=TIME]" world::carry;
    "shield" " JOB" |s, w, u| with_job(s, w, u, |job| Event::Shielded { job, shielded: true });
    "unshield" " JOB" |s, w, u| with_job(s, w, u, |job| Event::Shielded { job, shielded: false });
    "break" " JOB" world::break_up;
    // Two jobs on the same devices.
    "predict" " PROFILE PROFILE KEEPS KEEPS" sharing::predict;
    "predict-errors" " CHANCE=ERROR .." sharing::predict_errors;
    "truth" " PROFILE PROFILE KEEPS KEEPS" sharing::truth;
    "sample" " JOB JOB KEPT KEPT" sharing::sample;
    // What the world will do with a job's next start or stop.
    "slow-bind" " JOB TIME" |s, w, u| arrange(s, w, u, |job, span| job.fate.bind_takes = span);
    "slow-start" " JOB TIME" |s, w, u| arrange(s, w, u, |job, span| job.fate.start_takes = span);
    "slow-stop" " JOB TIME" |s, w, u| arrange(s, w, u, |job, span| job.fate.stop_takes = span);
    "fail-bind" " JOB [permanent]" fail_bind;
    "reject" " JOB" reject;
    "refuse-eviction" " JOB [after=TIME]" refuse_eviction;
    "refuse-resize" " JOB" refuse_resize;
    // Time and questions.
    "run" " [until TIME]" run;
    "snapshot" "" snapshot;
    "explain" " JOB" explain;
    "show" " free|jobs|tenants|qad|pairs|predictions" show;
};

/// Takes a line's time stamp, if it has one, and goes there.
pub(crate) fn reach(story: &mut Story, words: &mut Words<'_>) -> Result<(), Fault> {
    let Some(word) = words.peek().filter(Word::looks_like_time) else { return Ok(()) };
    words.take();
    let time = word.time()?;
    if time < story.now {
        let now = story.now;
        return Err(word.wrong("is in the past", format!("it is {now} already")));
    }
    story.go_to(time)
}

/// Carries out what is left of a line.
pub(crate) fn obey(story: &mut Story, words: &mut Words<'_>) -> Result<(), Fault> {
    let name = words.need("the command", "TIME COMMAND ..")?;
    let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name.text) else {
        let names: Vec<&str> = COMMANDS.iter().map(|entry| entry.name).collect();
        return Err(name.wrong("is no command", format!("use one of {}", names.join(", "))));
    };
    (entry.run)(story, words, entry.usage)
}

fn with_node(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
    event: fn(NodeId) -> Event,
) -> Result<(), Fault> {
    let node = story.names.node(words.need("the node", usage)?)?;
    words.done(usage)?;
    story.tell(event(node))
}

fn job(story: &Story, words: &mut Words<'_>, usage: &'static str) -> Result<JobId, Fault> {
    story.names.job(words.need("the job", usage)?)
}

fn with_job(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
    event: fn(JobId) -> Event,
) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    story.tell(event(job))
}

fn arrange(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
    set: fn(&mut JobTruth, Span),
) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    let span = words.need("how long it takes", usage)?.span()?;
    words.done(usage)?;
    set(&mut story.jobs[job.index()], span);
    Ok(())
}

fn device(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let (node, device) = known_device(story, words.need("the device", usage)?)?;
    let health = [("good", true), ("bad", false)];
    let healthy = words.need("bad or good", usage)?.one_of(&health)?;
    words.done(usage)?;
    story.tell(Event::DeviceHealth { node, device, healthy })
}

/// A device of a node that has it.
pub(super) fn known_device(story: &mut Story, word: Word<'_>) -> Result<(NodeId, u32), Fault> {
    let (node, device) = story.names.device(word)?;
    let gpus = story.state().nodes()[node.index()].spec.gpus;
    match device < gpus {
        true => Ok((node, device)),
        false => Err(word.wrong("is no device", format!("{node} has devices 0 to {}", gpus - 1))),
    }
}

fn submit(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let name = words.need("the job's name", usage)?;
    let mut spec = JobSpec {
        tenant: TenantId(0),
        user: deepshare_model::UserId(0),
        class: Class::default(),
        priority: 0,
        submit: story.now,
        demand: Demand::gpus(0),
        sharing: Sharing::default(),
        profile: None,
        training: None,
        recommended: None,
        requested_time: None,
    };
    let mut truth = JobTruth::default();
    let (mut estimate, mut estimated, mut tenant) = (None, false, None);
    let mut shares = None;
    let mut training = Training {
        batch: 0,
        iterations: 1,
        time: IterationTime {
            compute_fixed_us: 0,
            compute_per_sample_ns: 0,
            communication_us: 0,
            overlap_milli: 1_000,
        },
        memory: TrainingMemory { fixed_mib: 0, per_sample_kib: 0 },
    };
    let keys = [
        "tenant",
        "gpus",
        "members",
        "class",
        "type",
        "run",
        "outcome",
        "estimate",
        "cpus",
        "memory",
        "enough-cpus",
        "gpu-memory",
        "profile",
        "share",
        "domain",
        "limit",
        "batch",
        "fixed-memory",
        "sample-memory",
        "fixed-ms",
        "sample-ms",
        "priority",
        "user",
        "site",
    ];
    for setting in words.settings(&keys)? {
        let (key, value) = (setting.key.text, setting.value);
        match key {
            "tenant" => tenant = Some(setup::tenant_named(story, value)?),
            "gpus" => spec.demand.gpus = value.count(1, 4_096)?,
            "members" => (spec.demand.gpus, spec.demand.layout) = value.members()?,
            "class" => spec.class = value.class()?,
            "type" => spec.demand.gpu_type = Some(story.names.gpu_type(value.text)),
            "run" => truth.run = Some(value.span()?),
            "outcome" => truth.outcome = value.outcome()?,
            "estimate" => {
                estimated = true;
                estimate = if value.text == "none" { None } else { Some(value.span()?) };
            }
            "cpus" => spec.demand.per_gpu.cpu_milli = value.milli()?,
            "enough-cpus" => {
                let cpu_milli = value.milli()?;
                spec.recommended = Some(Resources { cpu_milli, memory_mib: 0 });
            }
            "memory" => spec.demand.per_gpu.memory_mib = value.count(0, u32::MAX)?.into(),
            "gpu-memory" => spec.demand.gpu_memory_mib = value.count(0, u32::MAX)?,
            "profile" => spec.profile = Some(story.names.profile(value.text)),
            "share" => shares = Some(value.yes()?),
            "domain" => spec.sharing.trust_domain = story.names.trust_domain(value.text),
            "limit" => spec.sharing.slowdown_limit_milli = value.thousandths()?,
            "batch" => training.batch = value.count(1, 1 << 20)?,
            "fixed-memory" => training.memory.fixed_mib = value.count(0, 1 << 20)?,
            "sample-memory" => training.memory.per_sample_kib = value.count(0, 1 << 20)? * 1_024,
            "fixed-ms" => training.time.compute_fixed_us = value.count(0, 1 << 20)? * 1_000,
            "sample-ms" => {
                training.time.compute_per_sample_ns =
                    u64::from(value.count(0, 1 << 20)?) * 1_000_000;
            }
            "site" => spec.demand.site = Some(story.names.site(value.text)),
            "priority" => spec.priority = value.count(0, 1_000)? as i32,
            _ => spec.user = story.names.user(value.text),
        }
    }
    if training.batch > 0 {
        spec.training = Some(training);
        spec.demand.gpu_memory_mib = training.memory_mib(1);
    }
    if spec.demand.gpus == 0 {
        return Err(name.wrong("asks for nothing", format!("write `{usage}`")));
    }
    // Who says how it behaves is meant to share.
    spec.sharing.consent = shares.unwrap_or(spec.profile.is_some());
    spec.tenant = match tenant {
        Some(tenant) => tenant,
        None => setup::tenant_called(story, "all", name)?,
    };
    if !estimated && story.setup.policy.uses_estimates() {
        estimate = truth.run;
    }
    let job = story.names.new_job(name)?;
    story.jobs.push(truth);
    story.tell(Event::Submitted { job, spec })?;
    match estimate {
        Some(run_time) => story.tell(Event::Estimated { job, run_time }),
        None => Ok(()),
    }
}

fn estimate(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    let run_time = words.need("the run time", usage)?.span()?;
    words.done(usage)?;
    story.tell(Event::Estimated { job, run_time })
}

fn finish(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let word = words.need("the job", usage)?;
    let job = story.names.job(word)?;
    let outcome = words.take().map_or(Ok(Outcome::Succeeded), |word| word.outcome())?;
    words.done(usage)?;
    let Some(attempt) = story.running(job) else {
        return Err(word.wrong("does not run", "finish only what runs"));
    };
    story.complete(attempt, outcome);
    story.deliver()
}

fn overdue(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    match story.attempts_of(job).last() {
        Some(&(attempt, _)) => story.tell(Event::StartOverdue { attempt }),
        None => Ok(()),
    }
}

/// Tells again everything that could have been heard of the job's past attempts.
fn stale(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    let past = story.attempts_of(job).into_iter().filter(|&(_, over)| over);
    for (attempt, _) in past.collect::<Vec<_>>() {
        let failure = BindFailure::Permanent;
        for event in [
            Event::Bound { attempt },
            Event::Running { attempt },
            Event::BindFailed { attempt, failure },
            Event::Rejected { attempt },
            Event::StartOverdue { attempt },
            Event::EvictionRefused { attempt },
            Event::Terminating { attempt, until: story.now },
            Event::DevicesReleased { attempt },
        ] {
            story.tell(event)?;
        }
    }
    Ok(())
}

fn fail_bind(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    let failure = match words.take_if("permanent") {
        true => BindFailure::Permanent,
        false => BindFailure::Transient,
    };
    words.done(usage)?;
    story.jobs[job.index()].fate.bind_fails = Some(failure);
    Ok(())
}

fn reject(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    story.jobs[job.index()].fate.rejected = true;
    Ok(())
}

fn refuse_eviction(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    let settings = words.settings(&["after"])?;
    let after = settings.first().map_or(Ok(Span::ZERO), |setting| setting.value.span())?;
    story.jobs[job.index()].fate.refuses_after = Some(after);
    Ok(())
}

fn refuse_resize(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    story.jobs[job.index()].fate.refuses_resize = true;
    Ok(())
}

fn run(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    if !words.take_if("until") {
        words.done(usage)?;
        return story.run();
    }
    let word = words.need("the time", usage)?;
    let time = word.time()?;
    words.done(usage)?;
    if time < story.now {
        return Err(word.wrong("is in the past", format!("it is {} already", story.now)));
    }
    story.go_to(time)?;
    story.close()
}

fn snapshot(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    words.done(usage)?;
    story.snapshot()
}

fn explain(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let job = job(story, words, usage)?;
    words.done(usage)?;
    story.close()?;
    let why = story.state().explain(job);
    let why =
        why.map_or_else(|| "does not wait".to_owned(), |why| report::reason(&story.names, &why));
    let name = story.names.job_name(job).to_owned();
    story.say(format_args!("{name}: {why}"));
    Ok(())
}

fn show(story: &mut Story, words: &mut Words<'_>, usage: &'static str) -> Result<(), Fault> {
    let what = words.need("what to show", usage)?;
    let what = what.one_of(&[
        ("free", 0),
        ("jobs", 1),
        ("tenants", 2),
        ("qad", 3),
        ("pairs", 4),
        ("predictions", 5),
    ])?;
    words.done(usage)?;
    story.close()?;
    if what == 3 {
        // The engine's clock is that of its last event; averages move on without any.
        story.tell(Event::Wake)?;
    }
    let jobs = (0..story.names.jobs.len()).map(JobId::from_index);
    let tenants = (0..story.names.tenants.len()).map(TenantId::from_index);
    let lines: Vec<String> = match what {
        0 => vec![report::free(story.state())],
        1 => jobs.map(|id| story.describe(|names, state| report::job(names, state, id))).collect(),
        2 => tenants
            .map(|id| story.describe(|names, state| report::tenant(names, state, id)))
            .collect(),
        4 => vec![report::pairs(story.state())],
        5 => story.describe_all(report::predictions),
        _ => {
            tenants.map(|id| story.describe(|names, state| report::qad(names, state, id))).collect()
        }
    };
    for line in lines {
        story.say(line);
    }
    Ok(())
}
