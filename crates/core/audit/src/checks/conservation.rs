//! What must add up: devices of a node, GPU time, running time.

use crate::books::Books;
use crate::report::GpuTimeShares;
use crate::violation::Violation;
use deepshare_engine::NodeCondition;
use deepshare_model::{Devices, JobId, NodeId, Span, Time};

impl Books {
    /// On an open node, healthy devices are free (as the engine has it), held or promised, and
    /// never two of these.
    pub fn check_node(&self, id: NodeId, free: Devices) -> Result<(), Violation> {
        let node = &self.nodes[id.index()];
        if node.condition != NodeCondition::Ready {
            return Ok(());
        }
        let shares = node.shares();
        let held = shares.held.intersect(node.healthy).count();
        let (free, promised, healthy) =
            (free.count(), shares.promised.count(), node.healthy.count());
        if free + held + promised != healthy {
            return Err(Violation::NodeNotConserved { node: id, free, held, promised, healthy });
        }
        Ok(())
    }

    /// GPU time up to `end`, counted by device and by attempt.
    pub fn check_gpu_time(&self, end: Time) -> Result<GpuTimeShares, Violation> {
        let shares = self.gpu_times.after(end.saturating_since(self.now));
        let mut attempts = self.attempt_time;
        for (_, attempt) in self.live_attempts() {
            let held = attempt.started_at.map_or(Span::ZERO, |at| end.saturating_since(at));
            attempts += held.on(attempt.gpus);
        }
        let devices = shares.held + shares.shared;
        if attempts != devices {
            return Err(Violation::HeldTimeNotConserved { devices, attempts });
        }
        let sum = shares.held + shares.promised + shares.free + shares.closed;
        if sum != shares.installed {
            let installed = shares.installed;
            return Err(Violation::GpuTimeNotConserved { installed, shares: sum });
        }
        Ok(shares)
    }

    /// Nobody ran longer than it held devices.
    pub fn check_ran(&self, end: Time) -> Result<(), Violation> {
        for (index, job) in self.jobs.iter().enumerate() {
            let Some(ran) = job.ran else { continue };
            let live = job.live.and_then(|attempt| self.attempts[attempt.index()].started_at);
            let held = job.held_time + live.map_or(Span::ZERO, |at| end.saturating_since(at));
            if ran > held {
                return Err(Violation::RanWithoutDevices {
                    job: JobId::from_index(index),
                    ran,
                    held,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_engine::{EngineSettings, Event};
    use deepshare_model::{GpuTime, GpuTypeId, NodeSpec, PoolId, Resources};

    /// One node of 4 GPUs, for 10 seconds.
    fn books() -> Books {
        let mut books = Books::new(EngineSettings::default());
        let spec = NodeSpec {
            pool: PoolId(0),
            gpu_type: GpuTypeId(0),
            gpus: 4,
            gpu_memory_mib: 0,
            capacity: Resources::UNLIMITED,
        };
        books.apply(&Event::NodeAdded { node: NodeId(0), spec }).unwrap();
        books.begin_step(Time::from_secs(10)).unwrap();
        books
    }

    #[test]
    fn gpu_time_that_no_attempt_accounts_for_is_caught() {
        let mut books = books();
        books.check_gpu_time(books.now).unwrap();
        books.attempt_time = GpuTime(1);
        let caught = books.check_gpu_time(books.now);
        assert!(matches!(caught, Err(Violation::HeldTimeNotConserved { .. })), "{caught:?}");
    }

    #[test]
    fn gpu_time_of_devices_that_were_never_installed_is_caught() {
        let mut books = books();
        let shares = books.nodes[0].shares();
        books.gpu_times.add(&shares);
        assert!(books.check_gpu_time(books.now).is_ok(), "nothing passed since");
        let caught = books.check_gpu_time(Time::from_secs(11));
        assert!(matches!(caught, Err(Violation::GpuTimeNotConserved { .. })), "{caught:?}");
    }
}
