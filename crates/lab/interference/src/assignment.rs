//! Which job has which profile.

use crate::catalogue::Catalogue;
use crate::configurations::ConfigurationsFile;
use crate::drawn;
use crate::pool::{self, Machines};
use crate::profiles::ProfilesFile;
use crate::workload::{Profile, Workload};
use deepshare_model::{ProfileClassId, Training};
use deepshare_trace::tables::quote;
use deepshare_trace::{Cluster, Problem, Problems, Trace, TraceError};
use std::collections::BTreeMap;

/// Where profiles come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileSource {
    /// A file.
    File(String),
    /// Drawn from a pool of training configurations.
    Pool {
        /// The file as it was named.
        file: String,
        /// Seed of the draw.
        seed: u64,
    },
    /// Drawn from the built-in catalogue.
    Drawn {
        /// Seed of the draw.
        seed: u64,
    },
}

/// Which job of a trace has which profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The profiles.
    pub catalogue: Catalogue,
    /// The profile of each job, in trace order.
    pub of_job: Vec<ProfileClassId>,
    /// What each job trains, in trace order, where the source says so.
    pub training: Vec<Option<Training>>,
    /// Where they come from.
    pub source: ProfileSource,
    /// Workloads whose rows do not all say the same; their profile is the mean (the maximum of
    /// memory).
    pub averaged: usize,
}

impl Assignment {
    /// The profiles that `file` gives the jobs of `trace`. Rows of other jobs are left out, and so
    /// are workloads that no job of the trace has.
    ///
    /// # Errors
    /// If a job has no row.
    pub fn from_file(file: &ProfilesFile, trace: &Trace) -> Result<Assignment, TraceError> {
        let found: Vec<Option<&Profile>> =
            trace.jobs.iter().map(|job| file.of_job.get(&job.id)).collect();
        let absent: Vec<String> = (trace.jobs.iter().zip(&found))
            .filter(|(_, profile)| profile.is_none())
            .map(|(job, _)| quote(&job.id))
            .collect();
        if !absent.is_empty() {
            let first = absent[..absent.len().min(5)].join(", ");
            let dots = if absent.len() > 5 { ", …" } else { "" };
            let what = format!("no profile for {} jobs of the trace: {first}{dots}", absent.len());
            let remedy = "add a row for each, or draw all profiles with a seed";
            return Err(Problems::of(&file.file).fatal(Problem::of_file(what, remedy)));
        }
        let mut groups: BTreeMap<&Workload, Vec<&Profile>> = BTreeMap::new();
        for profile in found.iter().flatten() {
            groups.entry(&profile.workload).or_default().push(profile);
        }
        let averaged = groups.values().filter(|g| g.iter().any(|p| *p != g[0])).count();
        let catalogue = Catalogue::new(groups.values().map(|group| mean(group)).collect());
        let class = |profile: &&Profile| {
            catalogue.find(&profile.workload).expect("the catalogue is made of these")
        };
        let of_job = found.iter().flatten().map(class).collect();
        Ok(Assignment {
            catalogue,
            of_job,
            training: vec![None; trace.jobs.len()],
            source: ProfileSource::File(file.file.clone()),
            averaged,
        })
    }

    /// Profiles drawn from the built-in catalogue ([`crate::built_in_profiles`]): the larger a
    /// gang, the heavier its profile tends to be.
    pub fn drawn(trace: &Trace, seed: u64) -> Assignment {
        let (catalogue, of_job) = drawn::draw(trace, seed);
        let training = vec![None; trace.jobs.len()];
        Assignment {
            catalogue,
            of_job,
            training,
            source: ProfileSource::Drawn { seed },
            averaged: 0,
        }
    }

    /// Configurations drawn from a pool by weight, each job's among those for its number of GPUs, and
    /// its training on `cluster`. GPUs of nodes that do not say have `device_mib` of memory.
    ///
    /// # Errors
    /// If the pool has nothing for a job, or what it drew does not fit onto any GPU it may use.
    pub fn from_pool(
        pool: &ConfigurationsFile,
        trace: &Trace,
        cluster: &Cluster,
        device_mib: u32,
        seed: u64,
    ) -> Result<Assignment, TraceError> {
        let drawn = pool::draw(pool, trace, seed)?;
        let training = pool::train(pool, &drawn, trace, &Machines::of(cluster, device_mib))?;
        // Configurations that nobody drew are classes all the same, as policies know the pool.
        let profiles = pool.configurations.iter().map(|one| one.profile.clone());
        let catalogue = Catalogue::new(profiles.collect());
        let class = |&at: &usize| {
            let workload = &pool.configurations[at].profile.workload;
            catalogue.find(workload).expect("the catalogue is made of these")
        };
        let of_job = drawn.iter().map(class).collect();
        let source = ProfileSource::Pool { file: pool.file.clone(), seed };
        let training = training.into_iter().map(Some).collect();
        Ok(Assignment { catalogue, of_job, training, source, averaged: 0 })
    }
}

/// The mean of profiles of one workload.
fn mean(group: &[&Profile]) -> Profile {
    let of = |value: fn(&Profile) -> f64| {
        // Sums of equal figures would be off by rounding.
        if group.iter().all(|p| value(p) == value(group[0])) {
            return value(group[0]);
        }
        group.iter().map(|p| value(p)).sum::<f64>() / group.len() as f64
    };
    let speeds: Vec<f64> = group.iter().filter_map(|p| p.throughput).collect();
    Profile {
        workload: group[0].workload.clone(),
        compute: of(|p| p.compute),
        bandwidth: of(|p| p.bandwidth),
        memory_mib: group.iter().map(|p| p.memory_mib).max().unwrap_or(0),
        throughput: match speeds.first() {
            Some(&first) if speeds.iter().all(|&speed| speed == first) => Some(first),
            Some(_) => Some(speeds.iter().sum::<f64>() / speeds.len() as f64),
            None => None,
        },
        training: group[0].training,
    }
}
