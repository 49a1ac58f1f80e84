//! Which job has which profile.

use crate::catalogue::Catalogue;
use crate::drawn;
use crate::profiles::ProfilesFile;
use crate::workload::{Profile, Workload};
use deepshare_model::ProfileClassId;
use deepshare_trace::tables::quote;
use deepshare_trace::{Problem, Problems, Trace, TraceError};
use std::collections::BTreeMap;

/// Where profiles come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileSource {
    /// A file.
    File(String),
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
            source: ProfileSource::File(file.file.clone()),
            averaged,
        })
    }

    /// Profiles drawn from the built-in catalogue ([`crate::built_in_profiles`]): the larger a
    /// gang, the heavier its profile tends to be.
    pub fn drawn(trace: &Trace, seed: u64) -> Assignment {
        let (catalogue, of_job) = drawn::draw(trace, seed);
        Assignment { catalogue, of_job, source: ProfileSource::Drawn { seed }, averaged: 0 }
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
    }
}
