//! What a log says of jobs, nodes and tenants, for a simulation of what might have been.
//!
//! Nothing here steps an engine through the log: it is read as it happened, so that a log of
//! another release, whose policy decided otherwise, is as good a history.

mod books;

use crate::error::LogError;
use crate::reader::{Ended, Log};
use crate::record::{Begins, Named, Record};
use books::Books;
use deepshare_engine::CapacityMode;
use deepshare_model::{
    GpuTypeId, JobSpec, NodeSpec, Outcome, Quota, Span, TenantId, TenantSpec, Time, UserId,
};
use std::collections::BTreeMap;
use std::path::Path;

/// A log as a history. Ids are its own: where a scheduler was restarted they were issued anew, and
/// what has one name is one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Tenants by id, each with the terms it had last.
    pub tenants: Vec<PastTenant>,
    /// Nodes that were there at the end, in the order in which they joined.
    pub nodes: Vec<PastNode>,
    /// Nodes that had been lost by then.
    pub lost_nodes: u64,
    /// Names of GPU types by id.
    pub gpu_types: Vec<String>,
    /// Names of users by id.
    pub users: Vec<String>,
    /// Jobs in order of submission. Jobs that had ended before the log begins are not among them.
    pub jobs: Vec<PastJob>,
    /// How quotas were bound at the end.
    pub capacity: CapacityMode,
    /// Wall-clock time of [`Time::ZERO`] here, the first submission: microseconds since 1970 UTC.
    pub time_zero_unix_us: i64,
    /// How the log ends.
    pub ended: Ended,
}

/// A tenant of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastTenant {
    /// Its name.
    pub name: String,
    /// Its terms; the pool is that of the last run.
    pub spec: TenantSpec,
}

/// A node of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastNode {
    /// Its name.
    pub name: String,
    /// What it had at the end.
    pub spec: NodeSpec,
}

/// A job of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastJob {
    /// Its name.
    pub name: String,
    /// What it asked for. `submit` counts from the history's zero.
    pub spec: JobSpec,
    /// Solo run time seen: all of it if the job succeeded or failed, else the time it ran until it
    /// was withdrawn or the log ended. `None`: it never ran.
    ///
    /// Time beside others counts as far as telemetry said that the job kept its speed. What a
    /// preempted job had done counts once, unless a checkpoint report says that less survived.
    pub run_time: Option<Span>,
    /// How it ended; `None`: it had not, as far as the log knows.
    pub outcome: Option<Outcome>,
}

impl History {
    /// Reads the log in `dir`.
    ///
    /// # Errors
    /// If it cannot be read, or begins with a snapshot of another release.
    pub fn read(dir: &Path) -> Result<History, LogError> {
        let log = Log::open(dir)?;
        let mut tables = Tables::default();
        let mut books = Books::default();
        let ended = log.read(|segment| {
            match segment.header.begins {
                Begins::Empty => {
                    tables.merge(std::mem::take(&mut books));
                    books = Books::starting(segment.header.time_zero_unix_us);
                }
                Begins::Continued if !books.is_empty() => {}
                Begins::Continued | Begins::AfterGap { .. } => {
                    books.zero_us = segment.header.time_zero_unix_us;
                    let engine = segment.engine()?;
                    books.restore(engine.state());
                }
            }
            books.capacity = segment.header.settings.capacity;
            while let Some(record) = segment.next_record()? {
                match record {
                    Record::Name(name) => _ = books.names.insert(name.of, name.name),
                    Record::Step(step) => {
                        let commands = step.commands().map_err(|error| segment.fault(error))?;
                        books.step(step.at, &step.event, &commands);
                    }
                }
            }
            Ok(())
        })?;
        tables.merge(books);
        Ok(tables.finish(ended))
    }
}

/// A history in the making, across restarts.
#[derive(Default)]
struct Tables {
    tenants: Vec<PastTenant>,
    nodes: Vec<PastNode>,
    lost_nodes: u64,
    gpu_types: Vec<String>,
    users: Vec<String>,
    /// With the wall-clock time of each submission.
    jobs: Vec<(i64, PastJob)>,
    capacity: CapacityMode,
    /// Jobs that have not ended, by name.
    open: BTreeMap<String, usize>,
}

/// The position of `name`, added if it is new.
fn intern(names: &mut Vec<String>, name: String) -> usize {
    if let Some(at) = names.iter().position(|known| *known == name) {
        return at;
    }
    names.push(name);
    names.len() - 1
}

impl Tables {
    /// Adds what one run of a scheduler knew at its end.
    fn merge(&mut self, mut books: Books) {
        if books.is_empty() {
            return;
        }
        self.capacity = books.capacity;
        let names = std::mem::take(&mut books.names);
        let name = |of: Named, id: String| names.get(&of).cloned().unwrap_or(id);
        let types = (0..books.gpu_types()).map(GpuTypeId::from_index);
        let types = types.map(|id| name(Named::GpuType(id), id.to_string()));
        let types: Vec<GpuTypeId> =
            types.map(|name| GpuTypeId::from_index(intern(&mut self.gpu_types, name))).collect();
        let mut tenant_names: Vec<String> =
            self.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let ids = (0..books.tenants.len()).map(TenantId::from_index);
        let ids = ids.map(|id| name(Named::Tenant(id), id.to_string()));
        let tenants: Vec<TenantId> =
            ids.map(|name| TenantId::from_index(intern(&mut tenant_names, name))).collect();
        for (id, spec) in tenants.iter().zip(&books.tenants) {
            let mut quota = Quota::default();
            for (of, &to) in (0..).map(GpuTypeId).zip(&types) {
                quota.set(to, spec.quota.of(of));
            }
            let parent = spec.parent.and_then(|parent| tenants.get(parent.index()).copied());
            let spec = TenantSpec { parent, quota, ..spec.clone() };
            let name = tenant_names[id.index()].clone();
            match self.tenants.get_mut(id.index()) {
                Some(known) => known.spec = spec,
                None => self.tenants.push(PastTenant { name, spec }),
            }
        }
        let there = books.nodes.iter().enumerate().filter(|(_, node)| !node.lost);
        self.nodes = there
            .map(|(index, node)| {
                let id = deepshare_model::NodeId::from_index(index);
                let gpu_type = types[node.spec.gpu_type.index()];
                let spec = NodeSpec { gpu_type, ..node.spec.clone() };
                PastNode { name: name(Named::Node(id), id.to_string()), spec }
            })
            .collect();
        self.lost_nodes = books.nodes.iter().filter(|node| node.lost).count() as u64;
        let zero_us = books.zero_us;
        for (id, job, run_time) in books.into_jobs() {
            let at = wall_clock(zero_us, job.spec.submit);
            let demand = &job.spec.demand;
            let gpu_type = demand.gpu_type.and_then(|of| types.get(of.index()).copied());
            let user = name(Named::User(job.spec.user), job.spec.user.to_string());
            let user = UserId::from_index(intern(&mut self.users, user));
            let tenant = tenants.get(job.spec.tenant.index()).copied().unwrap_or_default();
            let mut spec = JobSpec { user, tenant, ..job.spec.clone() };
            spec.demand.gpu_type = gpu_type;
            let name = name(Named::Job(id), format!("{id}"));
            self.job(at, PastJob { name, spec, run_time, outcome: job.outcome });
        }
    }

    /// Adds a job, or what became of it after a restart.
    fn job(&mut self, at: i64, job: PastJob) {
        let index = match self.open.get(&job.name) {
            Some(&index) => {
                let (submit, known) = &mut self.jobs[index];
                *submit = at.min(*submit);
                known.run_time = known.run_time.max(job.run_time);
                known.outcome = job.outcome;
                known.spec = job.spec;
                index
            }
            None => {
                self.jobs.push((at, job));
                self.jobs.len() - 1
            }
        };
        let job = &self.jobs[index].1;
        match job.outcome {
            Some(_) => self.open.remove(&job.name),
            None => self.open.insert(job.name.clone(), index),
        };
    }

    fn finish(mut self, ended: Ended) -> History {
        self.jobs.sort_by_key(|&(at, _)| at);
        let zero = self.jobs.first().map_or(0, |&(at, _)| at);
        let jobs = self.jobs.into_iter().map(|(at, mut job)| {
            job.spec.submit = Time(u64::try_from(at.saturating_sub(zero)).unwrap_or(0));
            job
        });
        History {
            jobs: jobs.collect(),
            tenants: self.tenants,
            nodes: self.nodes,
            lost_nodes: self.lost_nodes,
            gpu_types: self.gpu_types,
            users: self.users,
            capacity: self.capacity,
            time_zero_unix_us: zero,
            ended,
        }
    }
}

/// An instant of a run as microseconds since 1970 UTC.
fn wall_clock(zero_us: i64, at: Time) -> i64 {
    zero_us.saturating_add_unsigned(at.0)
}
