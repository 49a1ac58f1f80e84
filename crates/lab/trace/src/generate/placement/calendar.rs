//! What is planned on the nodes of a virtual cluster, over time.

use super::nodes::{NODE_GPUS, Part};
use crate::trace::TraceJob;
use deepshare_model::Time;
use std::cmp::Reverse;
use std::ops::Range;

/// GPUs planned on each node, step by step.
pub(super) struct Calendar {
    nodes: usize,
    /// Those of the first step, node by node; those of the second; and on.
    used: Vec<u8>,
}

/// A place for a job at some time.
pub(super) struct Place {
    /// How bad it is: 0 if its GPUs are free.
    pub crowd: u64,
    pub parts: Vec<Part>,
}

impl Calendar {
    /// Seconds a step.
    pub(super) const STEP_S: u64 = 300;
    /// Steps after a job that finds no room. It is better if there is some soon.
    const SOON: usize = 48;
    /// Weight of the steps in which it runs beside those.
    const NOW: u64 = 50;

    pub(super) fn new(nodes: usize) -> Calendar {
        Calendar { nodes, used: Vec::new() }
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The best place for `job` if it starts at `start`.
    pub(super) fn find(&self, job: &TraceJob, start: Time) -> Place {
        self.find_below(u64::MAX, job, start)
    }

    /// The same; of places as bad as `limit` or worse only that much is found out.
    pub(super) fn find_below(&self, limit: u64, job: &TraceJob, start: Time) -> Place {
        let during = steps(job, start);
        let mut place = self.least_used(job.gpus, during.clone());
        place.crowd *= Self::NOW;
        if place.crowd > 0 && place.crowd < limit {
            let soon = self.least_used(job.gpus, during.start..during.end + Self::SOON);
            place.crowd += soon.crowd;
        }
        place
    }

    /// Whole nodes with the fewest GPUs planned and, on the fullest with room, the rest.
    fn least_used(&self, gpus: u32, steps: Range<usize>) -> Place {
        let (peak, sum) = self.planned(steps);
        let whole = (gpus / u32::from(NODE_GPUS)) as usize;
        let rest = (gpus % u32::from(NODE_GPUS)) as u8;
        let mut order: Vec<(u32, usize)> = Vec::new();
        if whole > 0 {
            order.extend(sum.iter().copied().zip(0..));
            order.sort_unstable();
            order.truncate(whole);
        }
        let mut crowd: u64 = order.iter().map(|&(planned, _)| u64::from(planned)).sum();
        crowd *= u64::from(NODE_GPUS);
        let mut parts: Vec<Part> = order.iter().map(|&(_, node)| (node, NODE_GPUS)).collect();
        if rest > 0 {
            let others = (0..self.nodes).filter(|&node| !parts.contains(&(node, NODE_GPUS)));
            let roomy = others.clone().filter(|&n| peak[n].saturating_add(rest) <= NODE_GPUS);
            if let Some(node) = roomy.max_by_key(|&node| (peak[node], Reverse(node))) {
                parts.push((node, rest));
            } else if let Some(node) = others.min_by_key(|&node| (sum[node], node)) {
                crowd += u64::from(sum[node]) * u64::from(rest);
                parts.push((node, rest));
            }
        }
        Place { crowd, parts }
    }

    /// The most and the sum of what is planned on each node in these steps.
    fn planned(&self, steps: Range<usize>) -> (Vec<u8>, Vec<u32>) {
        let mut peak = vec![0; self.nodes];
        let mut sum = vec![0; self.nodes];
        let end = self.used.len().min(steps.end * self.nodes);
        let within = self.used.get(steps.start * self.nodes..end).unwrap_or_default();
        for step in within.chunks_exact(self.nodes) {
            for ((peak, sum), &used) in peak.iter_mut().zip(&mut sum).zip(step) {
                *peak = used.max(*peak);
                *sum += u32::from(used);
            }
        }
        (peak, sum)
    }

    /// Plans `job` there, from its submission on.
    pub(super) fn add(&mut self, job: &TraceJob, parts: &[Part]) {
        let steps = steps(job, job.submit);
        let (start, end) = (steps.start * self.nodes, steps.end * self.nodes);
        if self.used.len() < end {
            self.used.resize(end, 0);
        }
        for step in self.used[start..end].chunks_exact_mut(self.nodes) {
            for &(node, part) in parts {
                step[node] = step[node].saturating_add(part);
            }
        }
    }

    /// When the first step after `job` begins.
    pub(super) fn after(job: &TraceJob) -> Time {
        Time::from_secs(steps(job, job.submit).end as u64 * Self::STEP_S)
    }
}

/// The steps in which the job runs.
fn steps(job: &TraceJob, start: Time) -> Range<usize> {
    let step = |micros: u64| (micros / (Calendar::STEP_S * 1_000_000)) as usize;
    step(start.0)..step(start.0 + job.duration.0) + 1
}
