//! Commands for what only a real cluster tells: jobs that run already, what nodes admit, who is to be
//! left alone, gangs that lost a member.

use super::commands::known_device;
use super::error::Fault;
use super::setup::keyword;
use super::story::Story;
use super::words::{Word, Words};
use deepshare_engine::{Degree, Event, Placement, Slice};
use deepshare_model::{AttemptId, Class, Devices, GpuTypeId, NodeId, Span, Time};
use std::collections::BTreeMap;

/// The parts of `a,b,c`, each with its column.
fn parts<'a>(word: Word<'a>) -> impl Iterator<Item = Word<'a>> {
    let mut column = word.column;
    word.text.split(',').map(move |text| {
        let part = Word { column, text };
        column += text.chars().count() + 1;
        part
    })
}

/// `SITE on all|n0,n1 [xN]`: nodes take any number of members, or N more.
pub(crate) fn admit(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let site = story.names.site(words.need("the site", usage)?.text);
    keyword(words, "on", usage)?;
    let word = words.need("the nodes", usage)?;
    let nodes = match word.text {
        "all" => (0..story.names.nodes).map(NodeId).collect(),
        _ => parts(word).map(|part| story.names.node(part)).collect::<Result<Vec<_>, _>>()?,
    };
    let members = match words.take() {
        None => u32::MAX,
        Some(word) => {
            let number = word.text.strip_prefix('x');
            let wrong = || word.wrong("is no number of members", "write x2");
            let text = number.ok_or_else(wrong)?;
            Word { column: word.column + 1, text }.count(0, u32::MAX)?
        }
    };
    words.done(usage)?;
    story.tell(Event::Admitted { site, nodes, members })
}

/// `NODE [gpus=N] [cpus=C] [memory=MIB]`: what is not said stays as it is.
pub(crate) fn change(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let node = story.names.node(words.need("the node", usage)?)?;
    let spec = &story.state().nodes()[node.index()].spec;
    let (mut gpus, mut capacity) = (spec.gpus, spec.capacity);
    let least = gpus;
    for setting in words.settings(&["gpus", "cpus", "memory"])? {
        let value = setting.value;
        match setting.key.text {
            "gpus" => gpus = value.count(least, Devices::MAX_PER_NODE)?,
            "cpus" => capacity.cpu_milli = value.milli()?,
            _ => capacity.memory_mib = value.count(0, u32::MAX)?.into(),
        }
    }
    story.tell(Event::NodeChanged { node, gpus, capacity })
}

/// `JOB on n0.0,n0.1 [ran=TIME] [cpus=C] [memory=MIB] [quota=no]`.
pub(crate) fn found(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let job = story.names.job(words.need("the job", usage)?)?;
    keyword(words, "on", usage)?;
    let mut by_node: BTreeMap<NodeId, Devices> = BTreeMap::new();
    for part in parts(words.need("its devices", usage)?) {
        let (node, device) = known_device(story, part)?;
        let devices = by_node.entry(node).or_insert(Devices::NONE);
        *devices = devices.union(Devices(1 << device));
    }
    let placement: Placement =
        by_node.into_iter().map(|(node, devices)| Slice { node, devices }).collect();
    let spec = &story.state().job(job).spec;
    let (mut charged, mut per_gpu) = (spec.class, spec.demand.per_gpu);
    let mut running_since = None;
    for setting in words.settings(&["ran", "cpus", "memory", "quota"])? {
        let value = setting.value;
        match setting.key.text {
            "ran" => running_since = Some(Time(story.now.0.saturating_sub(value.span()?.0))),
            "cpus" => per_gpu.cpu_milli = value.milli()?,
            "memory" => per_gpu.memory_mib = value.count(0, u32::MAX)?.into(),
            _ if value.yes()? => {}
            _ => charged = Class::BestEffort,
        }
    }
    story.tell(Event::Found { job, charged, placement, per_gpu, running_since })
}

/// `JOB [preempted=TIME,TIME] [ran=TIME]`.
pub(crate) fn carry(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let job = story.names.job(words.need("the job", usage)?)?;
    let (mut preempted_at, mut served) = (Vec::new(), Span::ZERO);
    for setting in words.settings(&["preempted", "ran"])? {
        match setting.key.text {
            "ran" => served = setting.value.span()?,
            _ => {
                preempted_at =
                    parts(setting.value).map(|at| at.time()).collect::<Result<_, _>>()?;
            }
        }
    }
    story.tell(Event::Carried { job, preempted_at, served })
}

/// `TENANT DEGREE`, of every GPU type so far.
pub(crate) fn assurance(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let tenant = story.names.tenant(words.need("the tenant", usage)?)?;
    let milli = words.need("the degree", usage)?.thousandths()?;
    words.done(usage)?;
    let smoothed = Degree::ratio(milli, 1_000);
    for gpu_type in (0..story.names.gpu_types()).map(GpuTypeId::from_index) {
        story.tell(Event::AssuranceRestored { tenant, gpu_type, smoothed })?;
    }
    Ok(())
}

/// `JOB`: a member of its attempt is gone.
pub(crate) fn break_up(
    story: &mut Story,
    words: &mut Words<'_>,
    usage: &'static str,
) -> Result<(), Fault> {
    let attempt = last_attempt(story, words, usage, "break only what runs")?;
    words.done(usage)?;
    story.tell(Event::Broken { attempt })
}

/// The last attempt of the job that comes next, or what to do instead.
pub(crate) fn last_attempt(
    story: &Story,
    words: &mut Words<'_>,
    usage: &'static str,
    advice: &'static str,
) -> Result<AttemptId, Fault> {
    let word = words.need("the job", usage)?;
    let job = story.names.job(word)?;
    let last = story.attempts_of(job).last().map(|&(attempt, _)| attempt);
    last.ok_or_else(|| word.wrong("never started", advice))
}
