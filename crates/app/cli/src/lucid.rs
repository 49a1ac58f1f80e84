//! Lucid as its artifact behaves: a run outside the engine, for `compat=lucid`.

use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::settings::{Capacity, Compat, EstimatesFrom, Settings};
use crate::sharing;
use deepshare_engine::CapacityMode;
use deepshare_interference::read_profiles;
use deepshare_lucid::{
    LucidInputs, LucidSettings, Sharing, Tables, read_forecast, read_scores, run_record, simulate,
};
use deepshare_metrics::RunRecord;
use deepshare_policies::{LucidSharing, PolicyConfig};
use deepshare_sim::Oversize;
use deepshare_trace::read_estimates;
use std::path::Path;

/// The policy's name.
pub const POLICY: &str = "lucid";

/// True if this policy of the run is the artifact's.
pub fn is_artifact(settings: &Settings, policy: &str) -> bool {
    policy == POLICY && settings.compat == Compat::Lucid
}

/// True if any policy of the run is the artifact's.
pub fn is_asked_for(settings: &Settings) -> bool {
    settings.policies.iter().any(|policy| is_artifact(settings, policy))
}

/// What is wrong with the settings for the artifact's run.
pub fn check(settings: &Settings, found: &mut Vec<(&'static str, String)>) {
    if !is_asked_for(settings) {
        return;
    }
    let tables = &settings.tables;
    let needed = [
        ("trace.file", "the jobs", "--trace", settings.trace.file.is_some()),
        ("profiles.file", "what jobs compute", "--profiles", tables.profiles.is_some()),
        ("pairs.file", "speeds of pairs", "--pairs", tables.pairs.is_some()),
        ("workloads.file", "sharing scores", "--workloads", tables.workloads.is_some()),
        ("forecast.file", "the forecast of arrivals", "--forecast", tables.forecast.is_some()),
        (
            "estimates.from",
            "estimates of a file",
            "--estimates",
            matches!(settings.estimates, EstimatesFrom::File(_)),
        ),
    ];
    for (name, what, flag, _) in needed.into_iter().filter(|needed| !needed.3) {
        let remedy = format!("give them with `{flag} FILE`, or leave out compat=lucid or lucid");
        found.push((name, format!("lucid's artifact needs {what}; {remedy}")));
    }
    if !matches!(settings.capacity, Capacity::Auto | Capacity::Mode(CapacityMode::Partition)) {
        let what = "lucid has virtual clusters of their own nodes; use `partition` or `auto`";
        found.push(("capacity", what.to_owned()));
    }
    let outages = &settings.outages;
    if outages.file.is_some() || outages.mean_up.is_some() {
        let name = if outages.file.is_some() { "outages.file" } else { "outages.mean_up_s" };
        found.push((name, "nodes never fail in lucid's artifact; leave it out".to_owned()));
    }
}

/// When it lets jobs share.
pub fn when_sharing(settings: &Settings) -> Sharing {
    let PolicyConfig::Lucid(own) = &settings.run(POLICY).policy else {
        unreachable!("the run of this name is Lucid's")
    };
    match own.sharing {
        LucidSharing::Forecast => Sharing::Forecast,
        LucidSharing::On => Sharing::On,
        LucidSharing::Off => Sharing::Off,
    }
}

/// Runs it.
///
/// # Errors
/// If a file cannot be used, or the artifact could not run this.
pub fn run(settings: &Settings, inputs: &Inputs, when: Sharing) -> Result<RunRecord, Failure> {
    let file = |path: &Option<std::path::PathBuf>| path.clone().expect("settings were checked");
    let tables = Tables {
        profiles: read_profiles(&file(&settings.tables.profiles))?,
        pairs: sharing::pairs(settings)?.expect("settings were checked"),
        scores: read_scores(&file(&settings.tables.workloads))?,
        forecast: read_forecast(&file(&settings.tables.forecast))?,
    };
    let EstimatesFrom::File(path) = &settings.estimates else {
        unreachable!("settings were checked")
    };
    let estimates = read_estimates(path, &inputs.trace, settings.negative_estimate)?;
    let given = LucidInputs::new(&inputs.trace, &inputs.cluster, tables, &estimates.values)?;
    let own = LucidSettings {
        sharing: when,
        skip_oversize: settings.runs[0].oversize == Oversize::Skip,
        ..LucidSettings::default()
    };
    let outcome = simulate(&given, &own)?;
    Ok(run_record(&inputs.trace, &outcome, name(path)))
}

/// A file's own name, as results show it.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).display().to_string()
}
