//! Lucid: as its artifact publishes it, and inside the engine under the same truth.

use crate::ExperimentError;
use crate::cases::Case;
use crate::month::Month;
use deepshare_engine::CapacityMode;
use deepshare_interference::{PairOptions, read_pairs, read_profiles};
use deepshare_lucid::{
    LucidInputs, Tables, place_forecast, read_forecast, read_scores, run_record, simulate,
};
use deepshare_metrics::Summary;
use deepshare_model::{Span, Time};
use deepshare_policies::{LucidSettings, LucidSharing, PolicyConfig};
use deepshare_sim::{Estimator, compat};
use deepshare_trace::read_estimates;
use std::path::Path;
use std::sync::Arc;

/// Lucid's own estimates and forecast.
pub struct Files {
    estimates: Estimator,
    settings: LucidSettings,
}

const ESTIMATES: &str = "Venus_Sept_ebm_weekly_updated.csv";

fn estimates(data: &Path, month: &Month) -> Result<Arc<[Span]>, ExperimentError> {
    let path = data.join("lucid_venus").join(ESTIMATES);
    let read = read_estimates(&path, &month.trace, Some(compat::LUCID_NEGATIVE_ESTIMATE))?;
    Ok(read.values.into())
}

impl Files {
    /// Reads them.
    ///
    /// # Errors
    /// If a file of the data folder cannot be used.
    pub fn read(data: &Path, month: &Month) -> Result<Files, ExperimentError> {
        let values = estimates(data, month)?;
        let forecast = read_forecast(&data.join("lucid_venus/Venus_throughput_pred.csv"))?;
        let start_s = month.trace.jobs.first().map_or(0, |job| job.submit.0 / 1_000_000);
        let from_s = place_forecast(&forecast, &month.trace, start_s)?;
        let settings = LucidSettings {
            forecast_milli: forecast.rows.iter().map(|r| (r.jobs * 1e3).max(0.0) as u64).collect(),
            forecast_from: Time::from_secs(u64::try_from(from_s).unwrap_or(0)),
            ..LucidSettings::default()
        };
        Ok(Files { estimates: Estimator::Given { name: "Lucid's".to_owned(), values }, settings })
    }

    fn case(&self, name: &str, capacity: CapacityMode, turn: fn(&mut LucidSettings)) -> Case {
        let mut settings = self.settings.clone();
        turn(&mut settings);
        let case = Case::new(name, PolicyConfig::Lucid(settings), capacity);
        Case { estimates: self.estimates.clone(), draws_nothing: true, ..case }
    }

    /// Lucid in the tenants' own nodes, if the month has those.
    pub fn partitioned(&self, month: &Month) -> Vec<Case> {
        match month.cluster.nodes.iter().all(|node| node.tenant.is_some()) {
            true => vec![self.case("Lucid, partitions", CapacityMode::Partition, |_| {})],
            false => Vec::new(),
        }
    }

    /// Lucid on one pool.
    pub fn pooled(&self) -> Vec<Case> {
        let pool = CapacityMode::Pool;
        let on_the_fly = |settings: &mut LucidSettings| settings.forecast_milli = Vec::new();
        vec![
            self.case("Lucid, pool", pool, |_| {}),
            self.case("Lucid, pool, profiler", pool, |settings| settings.profiler_nodes = 2),
            self.case("Lucid, pool, forecast from arrivals", pool, on_the_fly),
            self.case("Lucid, pool, no sharing", pool, |s| s.sharing = LucidSharing::Off),
        ]
    }
}

/// Lucid as its artifact's simulator has it, in its partitions.
///
/// # Errors
/// If a file of the data folder cannot be used.
pub fn published(data: &Path, month: &Month) -> Result<Summary, ExperimentError> {
    let folder = data.join("lucid_venus");
    let tables = Tables {
        profiles: read_profiles(&folder.join("venus_sept2020_profiles.csv.zst"))?,
        pairs: read_pairs(&folder.join("colocate_info.csv"), &PairOptions::default())?,
        scores: read_scores(&folder.join("single_data.csv"))?,
        forecast: read_forecast(&folder.join("Venus_throughput_pred.csv"))?,
    };
    let values = estimates(data, month)?;
    let inputs = LucidInputs::new(&month.trace, &month.cluster, tables, &values)?;
    let outcome = simulate(&inputs, &deepshare_lucid::LucidSettings::default())?;
    let record = run_record(&month.trace, &outcome, ESTIMATES.to_owned());
    Ok(Summary::of(&record, &month.trace.tenants))
}
