//! A whole run: the profiler first, then every virtual cluster by itself.

use crate::cluster::NODE_GPUS;
use crate::echo::Echo;
use crate::error::LucidError;
use crate::forecast::Outlook;
use crate::inputs::{LucidInputs, LucidJob, LucidVc};
use crate::outcome::{LucidOutcome, LucidRecord};
use crate::profiler::{Profiler, Profiling};
use crate::settings::LucidSettings;
use crate::sharing::{NO_FORECAST_JOBS, switches};
use crate::virtual_cluster::{Fate, VirtualCluster};

/// Runs every job to its end.
///
/// # Errors
/// If jobs can never run, or two would share a GPU that were never measured together.
pub fn simulate(
    inputs: &LucidInputs,
    settings: &LucidSettings,
) -> Result<LucidOutcome, LucidError> {
    simulate_at(Pace::Events, inputs, settings)
}

/// How often a loop looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Only when something can change.
    Events,
    /// Every second, as the artifact does: to show that this changes nothing.
    #[cfg(test)]
    Seconds,
}

impl Pace {
    /// The next second to look at after `now`, if `event` is when something can change.
    pub(crate) fn next(self, _now: u64, event: Option<u64>) -> Option<u64> {
        match self {
            Pace::Events => event,
            #[cfg(test)]
            Pace::Seconds => event.map(|_| _now + 1),
        }
    }
}

pub(crate) fn simulate_at(
    pace: Pace,
    inputs: &LucidInputs,
    settings: &LucidSettings,
) -> Result<LucidOutcome, LucidError> {
    let fits = fitting(inputs, settings)?;
    let mut profiling = match &settings.profiler {
        None => Profiling { jobs: vec![None; inputs.jobs.len()], ..Profiling::default() },
        Some(profiler) => {
            let jobs = (0..inputs.jobs.len()).filter(|&job| fits[job]);
            Profiler::new(inputs, profiler).run(pace, jobs)
        }
    };
    let rows = &inputs.forecast.rows;
    let first = inputs.forecast_start_s;
    let outlook = Outlook::new(rows, first, |row| row.jobs, NO_FORECAST_JOBS);
    let switches = switches(settings, outlook, inputs.start_s);
    let mut outcome = LucidOutcome {
        records: vec![None; inputs.jobs.len()],
        scaling: std::mem::take(&mut profiling.scaling),
        levels: std::mem::take(&mut profiling.levels),
        ticks: profiling.ticks,
    };
    let mut queues: Vec<Vec<usize>> = vec![Vec::new(); inputs.vcs.len()];
    for (job, &fits) in fits.iter().enumerate() {
        let done = profiling.jobs[job].is_some_and(|profile| profile.finished);
        if fits && done {
            outcome.records[job] = Some(profiled(inputs, &profiling, job));
        } else if fits {
            queues[inputs.jobs[job].vc].push(job);
        }
    }
    let mut fates = vec![Fate::default(); inputs.jobs.len()];
    for (vc, jobs) in queues.into_iter().enumerate() {
        let echoes = settings.echo.as_deref() == Some(&inputs.vcs[vc].name);
        let echo = Echo::new(if echoes { &outcome.scaling } else { &[] });
        let nodes = nodes(&inputs.vcs[vc], settings);
        let mine = jobs.clone();
        let given = (inputs, settings);
        let mut run = VirtualCluster::new(given, (vc, nodes), jobs, &switches, echo, &mut fates);
        run.run(pace)?;
        outcome.levels.append(&mut run.levels);
        outcome.ticks += run.ticks;
        for job in mine {
            let fate = fates[job];
            let profile = profiling.jobs[job];
            let submit_s = inputs.jobs[job].submit_s;
            let waited_for_profile = profile.map_or(0, |profile| profile.start_s - submit_s);
            outcome.records[job] = Some(LucidRecord {
                start_s: fate.start_s,
                end_s: fate.end_s,
                queue_s: waited_for_profile + (fate.start_s - submit_s),
                jct_s: fate.end_s - submit_s,
                profiled: profile,
                shared: fate.shared,
            });
        }
    }
    Ok(outcome)
}

/// A job that was done in the profiler.
fn profiled(inputs: &LucidInputs, profiling: &Profiling, job: usize) -> LucidRecord {
    let profile = profiling.jobs[job].expect("only jobs that were profiled are done there");
    let submit_s = inputs.jobs[job].submit_s;
    LucidRecord {
        start_s: profile.start_s,
        end_s: profile.end_s,
        queue_s: profile.start_s - submit_s,
        jct_s: profile.end_s - submit_s,
        profiled: Some(profile),
        shared: false,
    }
}

/// Nodes of a virtual cluster without the one it may have given to the profiler.
fn nodes(vc: &LucidVc, settings: &LucidSettings) -> u32 {
    vc.nodes.saturating_sub(u32::from(settings.lenders.contains(&vc.name)))
}

/// Which jobs can ever run. Every job must fit its virtual cluster, even one that is done in the
/// profiler: whether it is depends on what else comes.
fn fitting(inputs: &LucidInputs, settings: &LucidSettings) -> Result<Vec<bool>, LucidError> {
    let fit = |job: &LucidJob| job.gpus.div_ceil(NODE_GPUS) <= nodes(&inputs.vcs[job.vc], settings);
    let fits: Vec<bool> = inputs.jobs.iter().map(fit).collect();
    let mut left_out = inputs.jobs.iter().zip(&fits).filter(|(_, fits)| !**fits);
    match left_out.next() {
        Some((first, _)) if !settings.skip_oversize => {
            let vc = &inputs.vcs[first.vc];
            let nodes = nodes(vc, settings);
            let lent = if nodes < vc.nodes { " beside the one that the profiler has" } else { "" };
            Err(LucidError::Oversize {
                count: 1 + left_out.count(),
                first: first.id.clone(),
                line: first.row,
                gpus: first.gpus,
                vc: vc.name.clone(),
                nodes,
                lent,
            })
        }
        _ => Ok(fits),
    }
}
