//! The sharing switch: off in quiet hours, as the forecast has it.

use crate::forecast::Outlook;
use crate::settings::{LucidSettings, Sharing};

/// It is looked at at multiples of this, seconds.
const EVERY_S: u64 = 100;
/// What the artifact takes for the forecast of jobs where there is none.
pub(crate) const NO_FORECAST_JOBS: f64 = 10.0;

/// When sharing is switched on or off, in order of time; the first is at `start_s`, a multiple of
/// 100.
pub(crate) fn switches(
    settings: &LucidSettings,
    mut outlook: Outlook<'_>,
    start_s: u64,
) -> Vec<(u64, bool)> {
    match settings.sharing {
        Sharing::On => return vec![(start_s, true)],
        Sharing::Off => return vec![(start_s, false)],
        Sharing::Forecast => {}
    }
    // The answer changes only where a row has gone, and once more after the last has.
    let seen = |at: u64| at.div_ceil(EVERY_S) * EVERY_S;
    let mut instants = vec![start_s];
    instants.extend(outlook.passings().map(seen).filter(|&at| at > start_s));
    instants.push(instants[instants.len() - 1] + EVERY_S);
    let mut switches: Vec<(u64, bool)> = Vec::new();
    for at in instants {
        let jobs = outlook.ask(at);
        // Not a number is not few.
        let on = jobs.is_nan() || jobs > settings.share_above_jobs;
        if switches.last().is_none_or(|last| last.1 != on) {
            switches.push((at, on));
        }
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::ForecastRow;

    fn of(jobs: &[f64], sharing: Sharing) -> Vec<(u64, bool)> {
        let rows: Vec<_> = jobs.iter().map(|&jobs| ForecastRow { jobs, gpus: 0.0 }).collect();
        let outlook = Outlook::new(&rows, 0, |row| row.jobs, NO_FORECAST_JOBS);
        switches(&LucidSettings { sharing, ..LucidSettings::default() }, outlook, 0)
    }

    #[test]
    fn sharing_is_off_while_few_jobs_are_forecast() {
        let quiet = [9.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0];
        // From row 3 on the mean of the next five is above 2.
        assert_eq!(of(&quiet, Sharing::Forecast), [(0, false), (1_200, true)]);
        assert_eq!(of(&quiet, Sharing::On), [(0, true)]);
        assert_eq!(of(&quiet, Sharing::Off), [(0, false)]);
    }

    #[test]
    fn without_a_forecast_jobs_share() {
        assert_eq!(of(&[], Sharing::Forecast), [(0, true)]);
        // The last row goes at 600 s.
        assert_eq!(of(&[1.0, 1.0], Sharing::Forecast), [(0, false), (600, true)]);
    }
}
