//! How much a job's running time depends on whom it runs beside.

use crate::JobRecord;
use deepshare_model::{JobId, ProfileClassId};
use std::collections::{BTreeMap, BTreeSet};

/// How far running times differ by partner, which TensorShare calls JCT inconsistency (Future
/// Generation Computer Systems 181, 108413). Smaller is more consistent.
///
/// A job counts if it finished, ran beside another, and all that it ran beside were of one profile
/// class: the ratio of one that had several kinds of partners belongs to none of them. Jobs of one
/// class make a group if they had partners of two classes or more between them. In a group, `r(c)`
/// is the mean execution ratio of its jobs beside class `c`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Consistency {
    /// Groups.
    pub groups: u64,
    /// Jobs in them.
    pub jobs: u64,
    /// Mean over groups, each weighing the same, of the largest `r(c)` over the smallest.
    pub max_over_min: f64,
    /// Mean over groups of the standard deviation of `r(c)` (of these classes, not of a sample)
    /// over its mean.
    pub variation: f64,
}

/// Execution ratios of a group: their number and sum, by partner class.
type Group = BTreeMap<ProfileClassId, (u64, f64)>;

impl Consistency {
    /// Of all jobs of a run, in trace order. `None` if there is no group.
    pub fn of(jobs: &[JobRecord]) -> Option<Consistency> {
        let mut groups: BTreeMap<ProfileClassId, Group> = BTreeMap::new();
        for job in jobs {
            let (Some(class), Some(ratio)) = (job.profile, job.execution_ratio()) else { continue };
            if let Some(partner) = only_partner_class(job, jobs) {
                let (count, sum) = groups.entry(class).or_default().entry(partner).or_default();
                *count += 1;
                *sum += ratio;
            }
        }
        let groups: Vec<Group> = groups.into_values().filter(|group| group.len() > 1).collect();
        let count = groups.len() as f64;
        let mean = |of: fn(&Group) -> f64| groups.iter().map(of).sum::<f64>() / count;
        (!groups.is_empty()).then(|| Consistency {
            groups: groups.len() as u64,
            jobs: groups.iter().flat_map(Group::values).map(|&(count, _)| count).sum(),
            max_over_min: mean(max_over_min),
            variation: mean(variation),
        })
    }
}

/// The class of all that a job shared with, if it shared and they are of one.
fn only_partner_class(job: &JobRecord, jobs: &[JobRecord]) -> Option<ProfileClassId> {
    let class = |partner: &JobId| jobs.get(partner.index()).and_then(|job| job.profile);
    let classes: BTreeSet<Option<ProfileClassId>> = job.beside.iter().map(class).collect();
    let only = classes.first().copied().flatten();
    only.filter(|_| classes.len() == 1 && !job.shared.is_zero())
}

fn means(group: &Group) -> impl Iterator<Item = f64> + Clone {
    group.values().map(|&(count, sum)| sum / count as f64)
}

fn max_over_min(group: &Group) -> f64 {
    let means = means(group);
    means.clone().fold(0.0, f64::max) / means.fold(f64::MAX, f64::min)
}

fn variation(group: &Group) -> f64 {
    let count = group.len() as f64;
    let mean = means(group).sum::<f64>() / count;
    let variance = means(group).map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;
    use deepshare_model::{Span, Time};

    /// A job of a class that shared with these and took so many per cent of its duration.
    fn job(number: u32, class: u32, beside: &[u32], percent: u64) -> JobRecord {
        JobRecord {
            profile: Some(ProfileClassId(class)),
            beside: beside.iter().copied().map(JobId).collect(),
            first_start: Some(Time::ZERO),
            end: Some(Time::from_secs(percent)),
            shared: Span::from_secs(percent),
            slowed: Span::from_secs(percent - 100),
            ..record(number)
        }
    }

    #[test]
    fn a_group_is_as_inconsistent_as_its_means_by_partner() {
        let mut jobs = vec![
            // Class 0 beside class 1: 1.1 and 1.3. Beside class 2: 1.8. Max over min 1.8 / 1.2;
            // mean 1.5, deviation 0.3.
            job(0, 0, &[3], 110),
            job(1, 0, &[3], 130),
            job(2, 0, &[4], 180),
            // Class 1 had partners of class 0 only.
            job(3, 1, &[0, 1], 150),
            // Class 2 beside class 0: 1.0. Beside itself: 2.0. Mean 1.5, deviation 0.5.
            job(4, 2, &[2], 100),
            job(5, 2, &[4], 200),
            // Several kinds of partners, none at all, and one that is not known.
            job(6, 0, &[3, 4], 900),
            JobRecord { shared: Span::ZERO, ..job(7, 0, &[], 900) },
            job(8, 0, &[9], 900),
        ];
        let of = Consistency::of(&jobs).unwrap();
        assert_eq!((of.groups, of.jobs), (2, 5));
        assert!((of.max_over_min - (1.5 + 2.0) / 2.0).abs() < 1e-12, "{of:?}");
        assert!((of.variation - (0.2 + 1.0 / 3.0) / 2.0).abs() < 1e-12, "{of:?}");
        // Without the end of the only one beside class 2, class 0 makes no group any more.
        jobs[2].end = None;
        let of = Consistency::of(&jobs).unwrap();
        assert_eq!((of.groups, of.jobs, of.max_over_min), (1, 2, 2.0));
        jobs[4].end = None;
        assert_eq!(Consistency::of(&jobs), None);
    }

    #[test]
    fn without_profiles_or_sharing_there_is_no_group() {
        assert_eq!(Consistency::of(&[]), None);
        let mut jobs = vec![job(0, 0, &[1], 110), job(1, 1, &[0], 120), job(2, 0, &[3], 130)];
        jobs.push(job(3, 2, &[2], 100));
        assert!(Consistency::of(&jobs).is_some());
        jobs.iter_mut().for_each(|job| job.profile = None);
        assert_eq!(Consistency::of(&jobs), None);
    }
}
