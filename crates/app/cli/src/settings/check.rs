//! What is wrong with settings that are each of the right kind.

use super::choices::AblationWord;
use super::kind::{Flag, Kind};
use super::{Assignment, ClassesFrom, GenerateSettings, Preset, Problem, Settings};
use deepshare_policies::PolicyConfig;

/// Largest job list the generator is asked for.
const MAX_JOBS: u64 = 50_000_000;
/// Longest history the generator is asked for.
const MAX_DAYS: u64 = 36_500;

/// Everything that is wrong, each at the assignment that last set the key.
pub fn problems(settings: &Settings, assignments: &[Assignment]) -> Vec<Problem> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    numbers(settings, &mut found);
    found.extend(generated(&settings.generate));
    policies(settings, &mut found);
    classes(settings, &mut found);
    ablation(assignments, &mut found);
    sharing(settings, &mut found);
    inputs(settings, &mut found);
    crate::lucid::check(settings, &mut found);
    outages(settings, &mut found);
    let place = |name: &str| {
        let last = assignments.iter().rev().find(|assignment| assignment.key.name == name);
        last.map_or_else(|| "by default".to_owned(), |assignment| assignment.place.clone())
    };
    found
        .into_iter()
        .map(|(name, what)| Problem { place: place(name), what: format!("{name}: {what}") })
        .collect()
}

fn numbers(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    let per_node = settings.cluster.gpus_per_node;
    if !(1..=64).contains(&per_node) {
        found.push(("cluster.gpus_per_node", format!("{per_node} is not between 1 and 64")));
    }
    let run = &settings.runs[0];
    if run.engine.backoff_max < run.engine.backoff_first {
        found.push(("backoff.max_s", "is less than backoff.first_s".to_owned()));
    }
    if !(10..=1_000).contains(&run.engine.qad_lambda_milli) {
        let lambda = f64::from(run.engine.qad_lambda_milli) / 1_000.0;
        found.push(("qad.lambda", format!("{lambda} is not between 0.01 and 1")));
    }
    for own in settings.runs.iter().filter_map(|run| match &run.policy {
        PolicyConfig::DeepShare(own) => Some(&own.colocation),
        _ => None,
    }) {
        if !(1..=2).contains(&own.residents) {
            found.push(("deepshare.k", format!("{} is neither 1 nor 2", own.residents)));
        }
    }
    if settings.sharing.gpu_memory_mib == 0 {
        let what = "is 0; say how much memory the GPUs have".to_owned();
        found.push(("sharing.gpu_memory_mib", what));
    }
    if settings.sharing.sample_period < deepshare_model::Span::SECOND {
        let what = "is below 1, which would be readings without end; use 1 or more".to_owned();
        found.push(("sharing.sample_period_s", what));
    }
    if run.max_idle_steps == 0 {
        found.push(("max_idle_steps", "is 0, which no run survives; use 1 or more".to_owned()));
    }
    if run.actuation.loss_milli > 0 && run.actuation.resync.is_zero() {
        let what = "news is lost, but resync takes no time, so that loss has no effect; set it";
        found.push(("actuation.resync_s", what.to_owned()));
    }
}

/// What is wrong with the history that needs no file.
pub fn generated(generate: &GenerateSettings) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let preset = generate.preset;
    if let Some(days) = generate.days {
        if preset != Preset::Venus {
            let what = format!("is for the month, not for `{}`; leave it out", preset.name());
            found.push(("generate.days", what));
        } else if !(1..=MAX_DAYS).contains(&days) {
            found.push(("generate.days", format!("{days} is not between 1 and {MAX_DAYS}")));
        }
    }
    if let Some(jobs) = generate.jobs {
        if preset == Preset::Testbed {
            let what = "`testbed` always has the same number of jobs; leave it out";
            found.push(("generate.jobs", what.to_owned()));
        } else if !(1..=MAX_JOBS).contains(&jobs) {
            found.push(("generate.jobs", format!("{jobs} is not between 1 and {MAX_JOBS}")));
        }
    }
    found
}

fn policies(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    for run in &settings.runs {
        if let PolicyConfig::Tiresias { thresholds, .. } = &run.policy
            && !thresholds.is_sorted_by(|a, b| a < b)
        {
            found.push(("tiresias.thresholds_gpu_s", "is not in ascending order".to_owned()));
        }
    }
}

fn classes(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    let Some(_) = settings.best_effort_milli else { return };
    let word = match settings.classes {
        ClassesFrom::Coin => return,
        ClassesFrom::Trace => "trace",
        ClassesFrom::Overflow => "overflow",
    };
    let what = format!("is for `classes = \"coin\"`, and `{word}` is asked for; leave one out");
    found.push(("best_effort_share", what));
}

/// A word and a switch of one source that say the opposite: later sources win, but here nothing
/// says which is meant.
fn ablation(assignments: &[Assignment], found: &mut Vec<(&'static str, String)>) {
    let of = |name: &'static str| assignments.iter().filter(move |one| one.key.name == name);
    for word in of("deepshare.without") {
        let Some(ablation) = AblationWord::read(&word.value) else { continue };
        let names = ["deepshare.order_by_qad", "deepshare.share_by_qad", "deepshare.reclaim"];
        for (name, on) in names.into_iter().zip(ablation.switches()) {
            let beside = of(name).filter(|one| one.is_typed() == word.is_typed());
            if beside.filter_map(|one| Flag::read(&one.value)).any(|said| said != on) {
                let what = format!("{} says otherwise; leave one out", word.place);
                found.push((name, format!("deepshare.without at {what}")));
            }
        }
    }
}

/// How good predictions are, and what jobs run, can be said in one way at a time.
fn sharing(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    let sharing = &settings.sharing;
    match (sharing.prediction_r2_milli, sharing.prediction_mae_milli) {
        (Some(_), Some(_)) => {
            let what = "sharing.prediction_r2 says otherwise how good predictions are; leave one out, \
                        or set it to `none`";
            found.push(("sharing.prediction_mae", what.to_owned()));
        }
        (None, None) => {
            let what = "is `none`, and so is sharing.prediction_mae; say with one of them how good \
                        predictions are";
            found.push(("sharing.prediction_r2", what.to_owned()));
        }
        _ => {}
    }
    if settings.tables.configurations.is_some() && settings.tables.profiles.is_some() {
        let what = "profiles.file (--profiles) says already what each job runs; leave one out";
        found.push(("configurations.file", what.to_owned()));
    }
}

fn inputs(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    let (trace, cluster) = (&settings.trace, &settings.cluster);
    match (&trace.file, &cluster.file) {
        _ if trace.log.is_some() => {}
        (Some(_), None) => found.push((
            "trace.file",
            "a trace needs a cluster to run on; give one with `--cluster FILE`: a vc_config.csv, or \
             a TOML file with as little as `[[node]]`, `count = 4`, `gpus = 8` \
             (see docs/formats/cluster.md)"
                .to_owned(),
        )),
        (None, Some(_)) => found.push((
            "cluster.file",
            "the built-in month runs on its own cluster, whose tenants another one does not have; \
             give the jobs too with `--trace FILE`, or write the month to files with \
             `deepshare generate` and edit those"
                .to_owned(),
        )),
        _ => {}
    }
    if trace.order_file.is_some() && trace.file.is_none() {
        let what = "there is no trace to order; give one with `--trace FILE`";
        found.push(("trace.order_file", what.to_owned()));
    }
    if trace.log.is_some() && trace.file.is_some() {
        let what = "trace.file (--trace) has the jobs already; leave one of the two out";
        found.push(("trace.log", what.to_owned()));
    }
    let generate = &settings.generate;
    let given = trace.named().is_some();
    let unused = [
        ("generate.jobs", generate.jobs.is_some()),
        ("generate.preset", generate.preset != Preset::Venus),
    ];
    for (name, _) in unused.into_iter().filter(|&(_, said)| said && given) {
        let what = "no history is generated where a trace is given; leave it out";
        found.push((name, what.to_owned()));
    }
}

fn outages(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    let outages = &settings.outages;
    let both = "set outages.mean_up_s and outages.mean_down_s, or neither";
    match (outages.mean_up, outages.mean_down) {
        (Some(_), None) => found.push(("outages.mean_up_s", both.to_owned())),
        (None, Some(_)) => found.push(("outages.mean_down_s", both.to_owned())),
        (Some(up), Some(_)) if up.is_zero() => {
            found.push(("outages.mean_up_s", "is 0: nodes would never be up".to_owned()));
        }
        (Some(_), Some(_)) if outages.file.is_some() => {
            let what = "outages come from a file or from a model, not both; leave one out";
            found.push(("outages.file", what.to_owned()));
        }
        _ => {}
    }
}
