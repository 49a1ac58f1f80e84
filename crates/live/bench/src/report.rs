//! The tables, with each bar beside what was measured.

use crate::fill::Fill;
use crate::ground::Contender;
use crate::reclaim::Reclaim;
use crate::restart::Restart;
use std::fmt::Write;

/// All that was measured.
#[derive(Default)]
pub struct Report {
    /// Version of Kubernetes.
    pub kubernetes: String,
    /// Every fill, as it came.
    pub fills: Vec<Fill>,
    /// Milliseconds that single pods waited, of each run.
    pub singles: Vec<(Contender, Vec<f64>)>,
    /// Every reclaim.
    pub reclaims: Vec<Reclaim>,
    /// The restart, unless it was left out.
    pub restart: Option<Restart>,
    /// Commands that came out again when the event log was replayed.
    pub replayed: u64,
}

impl Report {
    /// The tables.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}.\n", self.kubernetes);
        // Writing to a string cannot fail.
        let _ = self.fill(&mut text);
        let _ = self.single(&mut text);
        let _ = self.reclaim(&mut text);
        let _ = self.restarted(&mut text);
        let _ = writeln!(
            text,
            "\nThe event log of all of it, replayed: {} commands, the same.",
            self.replayed
        );
        text
    }

    fn fill(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n### Filling an empty cluster\n")?;
        writeln!(
            text,
            "| scheduler | pods | pods/s | first to last binding, s | start to last binding, s | its \
             CPU s | its peak MiB | API server and etcd CPU s |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        )?;
        for fill in &self.fills {
            writeln!(
                text,
                "| {} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {:.2} |",
                fill.by.program(),
                fill.pods,
                fill.per_second(),
                fill.binding_s,
                fill.in_all_s,
                fill.cost.cpu_s,
                fill.cost.peak_mib,
                fill.server_cpu_s,
            )?;
        }
        let rate = |by| {
            let fills = self.fills.iter().filter(|fill| fill.by == by);
            quantile(&fills.map(Fill::per_second).collect::<Vec<_>>(), 0.5)
        };
        let ratio = rate(Contender::DeepShare) / rate(Contender::Kube);
        writeln!(text, "\nMedians: {ratio:.2} times kube-scheduler's pods/s; bar: 1.5.")
    }

    fn single(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n### One pod at a time on an idle cluster, created to bound\n")?;
        writeln!(
            text,
            "| scheduler | pods | P50, ms | P90, ms | P99, ms |\n\
             | --- | ---: | ---: | ---: | ---: |"
        )?;
        for by in Contender::ALL {
            let of = self.singles.iter().filter(|(who, _)| *who == by);
            let waits: Vec<f64> = of.flat_map(|(_, waits)| waits).copied().collect();
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| quantile(&waits, q));
            let (name, count) = (by.program(), waits.len());
            writeln!(text, "| {name} | {count} | {p50:.1} | {p90:.1} | {p99:.1} |")?;
        }
        writeln!(text, "\nBar: both below kube-scheduler's.")
    }

    fn reclaim(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n### Reclaim for a gang of 8 pods of 8 GPUs\n")?;
        writeln!(
            text,
            "| reclaim | victims | created to last binding, ms | of that after the last victim's \
             end, ms |\n| ---: | ---: | ---: | ---: |"
        )?;
        for (index, reclaim) in self.reclaims.iter().enumerate() {
            let Reclaim { victims, waited_ms, after_release_ms } = reclaim;
            let round = index + 1;
            writeln!(text, "| {round} | {victims} | {waited_ms:.0} | {after_release_ms:.1} |")?;
        }
        let after: Vec<f64> =
            self.reclaims.iter().map(|reclaim| reclaim.after_release_ms).collect();
        let median = quantile(&after, 0.5);
        writeln!(
            text,
            "\nAfter the last victim's end: median {median:.1} ms. Bars: 64 victims, less than 100 ms."
        )
    }

    fn restarted(&self, text: &mut String) -> std::fmt::Result {
        let Some(restart) = &self.restart else { return Ok(()) };
        let Restart { nodes, bound, waiting, .. } = restart;
        writeln!(text, "\n### Restart: {nodes} nodes, {bound} pods bound, {waiting} waiting\n")?;
        let rows = [
            ("bindings in a second while it was filled", restart.filled_per_second, ""),
            ("start to Lease, s (the dead one's has to expire)", restart.lease_s, ""),
            ("Lease to the last list, s", restart.lists_s, ""),
            ("last list to first binding, s", restart.first_bind_s, "< 5"),
            ("kube-scheduler: start to first binding, s", restart.kube_first_bind_s, ""),
            ("memory, MiB", restart.cost.memory_mib, "< 300"),
            ("peak memory, MiB", restart.cost.peak_mib, "< 300"),
            ("kube-scheduler: peak memory, MiB", restart.kube_cost.peak_mib, ""),
            ("CPU while nothing happens, % of a core", restart.idle_percent, "< 1"),
        ];
        writeln!(text, "| | measured | bar |\n| --- | ---: | ---: |")?;
        for (what, value, bar) in rows {
            writeln!(text, "| {what} | {value:.2} | {bar} |")?;
        }
        Ok(())
    }
}

/// The value below which a share `q` of the values are: the nearest of them.
fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!([0.5, 0.75, 0.99, 0.0].map(|q| quantile(&values, q)), [2.0, 3.0, 4.0, 1.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
