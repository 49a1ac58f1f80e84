//! All figures of a run, and its form in JSON.

use crate::figures::{
    JobFigures, QuotaFigures, RunFigures, SharingFigures, Value, Valued, assured_figures,
};
use crate::{JobRecord, RunRecord, SizeBucket, TenantAssurance, result_hash};
use deepshare_model::{Class, Outcome, TenantId};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeSet;

/// The figures that every script reads, first in the JSON object, after `policy`.
const HEADLINE: [&str; 4] = ["jct_mean_s", "queueing_delay_mean_s", "makespan_s", "preemptions"];

/// All figures of a run.
///
/// Serialises to a flat object: `policy`, the headline figures, `result_hash`, `estimates`,
/// `worst_tenant`, `avoidable_first`, `pairs_refused_by_test`, every other figure under its
/// registered name, then the arrays `by_tenant`, `by_class`, `by_size`, `by_outcome` and `by_gang`.
/// It can be flattened into a larger object.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The policy's name.
    pub policy: String,
    /// Where the policy's run-time estimates came from.
    pub estimates: String,
    /// Equal exactly if two runs did the same to every job.
    pub result_hash: String,
    /// Figures over all jobs.
    pub jobs: JobFigures,
    /// Figures over the cluster.
    pub run: RunFigures,
    /// Figures of quotas.
    pub quota: QuotaFigures,
    /// Figures of sharing.
    pub sharing: SharingFigures,
    /// Name of the tenant with the lowest mean smoothed degree of quota assurance.
    pub worst_tenant: Option<String>,
    /// By tenant, in the order of ids; only tenants with jobs, as in all groups.
    pub by_tenant: Vec<Group>,
    /// By class.
    pub by_class: Vec<Group>,
    /// By number of GPUs.
    pub by_size: Vec<Group>,
    /// By how the job ended in the trace.
    pub by_outcome: Vec<Group>,
    /// Gangs of at least 32 GPUs: all, and by class.
    pub by_gang: Vec<Group>,
}

/// GPUs from which on a gang counts as wide in [`Summary::by_gang`].
const WIDE_GANG: u32 = 32;

/// Figures over the jobs that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What the groups differ in: `tenant`, `class`, `size`, `outcome` or `gang`.
    pub by: &'static str,
    /// Which group this is.
    pub name: String,
    /// Figures over its jobs.
    pub jobs: JobFigures,
    /// Of a tenant: what it was assured, if that was measured.
    pub assurance: Option<TenantAssurance>,
    /// Part of all jobs' GPU time beside another job that is its jobs', 0 to 1; `None` if no job of
    /// the run shared.
    pub shared_of_all_shared: Option<f64>,
}

impl Summary {
    /// The figures of `run`. Tenants are named by position in `tenants`; one beyond its end is
    /// named by its number.
    pub fn of<S: AsRef<str>>(run: &RunRecord, tenants: &[S]) -> Summary {
        let tenant_count = run.jobs.iter().map(|job| job.tenant.index() + 1).max().unwrap_or(0);
        let tenant_name = |at: usize| match tenants.get(at) {
            Some(name) => name.as_ref().to_owned(),
            None => format!("t{at}"),
        };
        let owned = |name: &'static str| name.to_owned();
        let jobs = &run.jobs;
        let classes = [Class::Guaranteed, Class::BestEffort];
        let outcome_at = |outcome| Outcome::ALL.iter().position(|&other| other == outcome);
        let quota = QuotaFigures::of(&run.quota);
        let mut summary = Summary {
            policy: run.policy.clone(),
            estimates: run.estimates.clone(),
            result_hash: result_hash(jobs),
            jobs: JobFigures::of(jobs),
            run: RunFigures::of(run),
            sharing: SharingFigures::of(run),
            worst_tenant: quota.worst_tenant.map(|tenant| tenant_name(tenant.index())),
            quota,
            by_tenant: by_tenant(run, (0..tenant_count).map(tenant_name)),
            by_class: groups("class", classes.map(|class| owned(class.name())), jobs, |job| {
                usize::from(job.class == Class::BestEffort)
            }),
            by_size: groups("size", SizeBucket::ALL.map(|size| owned(size.name())), jobs, |job| {
                SizeBucket::of(job.gpus) as usize
            }),
            by_outcome: groups("outcome", Outcome::ALL.map(|o| owned(o.name())), jobs, |job| {
                outcome_at(job.outcome).expect("every outcome is in the list of all")
            }),
            by_gang: by_gang(jobs),
        };
        summary.share_out();
        summary
    }

    /// Tells each group its part of the GPU time that jobs spent beside another.
    fn share_out(&mut self) {
        let all = self.jobs.sharing.shared_gpu.0;
        let groups = [
            &mut self.by_tenant,
            &mut self.by_class,
            &mut self.by_size,
            &mut self.by_outcome,
            &mut self.by_gang,
        ];
        for group in groups.into_iter().flatten().filter(|_| all > 0) {
            let part = group.jobs.sharing.shared_gpu.0;
            group.shared_of_all_shared = Some(part as f64 / all as f64);
        }
    }

    /// Every figure over the whole run, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        let mut figures = self.jobs.figures();
        figures.extend(self.run.figures());
        figures.extend(self.quota.figures());
        figures.extend(self.sharing.figures());
        figures
    }

    /// The figure of this name over the whole run; missing if there is no such figure.
    pub fn value(&self, name: &str) -> Value {
        let figures = self.figures();
        let found = figures.iter().find(|(figure, _)| figure.name == name);
        found.map_or(Value::Missing, |&(_, value)| value)
    }
}

/// One group for each of `names` that has jobs; `position` says which name is a job's.
fn groups(
    by: &'static str,
    names: impl IntoIterator<Item = String>,
    jobs: &[JobRecord],
    position: impl Fn(&JobRecord) -> usize,
) -> Vec<Group> {
    let names: Vec<String> = names.into_iter().collect();
    let mut members: Vec<Vec<&JobRecord>> = vec![Vec::new(); names.len()];
    for job in jobs {
        members[position(job)].push(job);
    }
    let named = names.into_iter().zip(members).filter(|(_, members)| !members.is_empty());
    named.map(|(name, jobs)| group(by, name, jobs)).collect()
}

fn group<'a>(
    by: &'static str,
    name: String,
    jobs: impl IntoIterator<Item = &'a JobRecord>,
) -> Group {
    Group { by, name, jobs: JobFigures::of(jobs), assurance: None, shared_of_all_shared: None }
}

/// Tenants with their jobs and with what they were assured.
fn by_tenant(run: &RunRecord, names: impl Iterator<Item = String>) -> Vec<Group> {
    let mut groups = groups("tenant", names, &run.jobs, |job| job.tenant.index());
    let with_jobs: BTreeSet<TenantId> = run.jobs.iter().map(|job| job.tenant).collect();
    for (group, tenant) in groups.iter_mut().zip(with_jobs) {
        group.assurance = run.quota.tenants.get(tenant.index()).copied();
    }
    groups
}

/// Gangs that are wide, all together and by class.
fn by_gang(jobs: &[JobRecord]) -> Vec<Group> {
    let wide = jobs.iter().filter(|job| job.gpus >= WIDE_GANG);
    let of = |class: Option<Class>| {
        let jobs = wide.clone().filter(move |job| class.is_none_or(|class| job.class == class));
        let class = class.map_or(String::new(), |class| format!(" {}", class.name()));
        group("gang", format!(">={WIDE_GANG}{class}"), jobs)
    };
    let all = [None, Some(Class::Guaranteed), Some(Class::BestEffort)].map(of);
    all.into_iter().filter(|group| group.jobs.jobs > 0).collect()
}

/// A job to look at, by its number in the trace from 0, and an instant in seconds.
#[derive(serde::Serialize)]
struct First {
    job: u32,
    at_s: f64,
}

/// Counts under the names of the tests, in the order of the tests.
struct RefusedBy<'a>(&'a [(String, u64)]);

impl Serialize for RefusedBy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(test, times)| (test, times)))
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = self.figures();
        let (headline, rest): (Vec<_>, Vec<_>) =
            figures.into_iter().partition(|(figure, _)| HEADLINE.contains(&figure.name.as_str()));
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("policy", &self.policy)?;
        write_figures(&mut object, &headline)?;
        object.serialize_entry("result_hash", &self.result_hash)?;
        object.serialize_entry("estimates", &self.estimates)?;
        object.serialize_entry("worst_tenant", &self.worst_tenant)?;
        let first = self.quota.avoidable.and_then(|avoidable| avoidable.first);
        let first = first.map(|(job, at)| First { job: job.0, at_s: at.as_secs_f64() });
        object.serialize_entry("avoidable_first", &first)?;
        let refused = self.sharing.pairs.as_ref().map(|pairs| RefusedBy(&pairs.refused));
        object.serialize_entry("pairs_refused_by_test", &refused)?;
        write_figures(&mut object, &rest)?;
        object.serialize_entry("by_tenant", &self.by_tenant)?;
        object.serialize_entry("by_class", &self.by_class)?;
        object.serialize_entry("by_size", &self.by_size)?;
        object.serialize_entry("by_outcome", &self.by_outcome)?;
        object.serialize_entry("by_gang", &self.by_gang)?;
        object.end()
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry(self.by, &self.name)?;
        write_figures(&mut object, &self.jobs.figures())?;
        object.serialize_entry("shared_of_all_shared", &self.shared_of_all_shared)?;
        if let Some(assurance) = &self.assurance {
            object.serialize_entry("quota_gpus", &assurance.quota)?;
            write_figures(&mut object, &assured_figures(&assurance.whole))?;
        }
        object.end()
    }
}

fn write_figures<M: SerializeMap>(object: &mut M, figures: &[Valued]) -> Result<(), M::Error> {
    figures.iter().try_for_each(|(figure, value)| object.serialize_entry(&figure.name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run, shared_run};
    use crate::{Assured, Avoidable};
    use deepshare_model::{JobId, Span, Time};
    use serde_json::json;

    #[test]
    fn scripts_find_the_headline_first_and_groups_last() {
        let summary = Summary::of(&run(), &["alpha", "beta"]);
        let text = serde_json::to_string(&summary).unwrap();
        let start = concat!(
            r#"{"policy":"srtf","jct_mean_s":112.75,"queueing_delay_mean_s":12.75,"#,
            r#""makespan_s":135.5,"preemptions":1,"result_hash":"cb8c"#,
        );
        assert!(text.starts_with(start), "{text}");
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["estimates"], json!("oracle"));
        assert_eq!(object["events"], json!(9));
        for figure in crate::registry() {
            assert!(object.get(&figure.name).is_some(), "{} is missing", figure.name);
        }
        let names = |by: &str, key: &str| -> Vec<String> {
            let groups = object[by].as_array().unwrap();
            groups.iter().map(|group| group[key].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("by_tenant", "tenant"), ["alpha", "beta", "t2"]);
        assert_eq!(names("by_class", "class"), ["guaranteed", "best-effort"]);
        assert_eq!(names("by_size", "size"), ["1", "2-4", "5-8", ">32"]);
        assert_eq!(names("by_outcome", "outcome"), ["succeeded", "failed"]);
        assert_eq!(names("by_gang", "gang"), [">=32", ">=32 guaranteed"]);
        assert_eq!(object["by_class"][1]["jct_mean_s"], json!(125.5));
        assert_eq!(object["by_size"][0]["jct_mean_s"], json!(null), "it has not ended");
    }

    #[test]
    fn tenants_say_what_they_were_assured_and_the_worst_is_named() {
        let mut run = run();
        let assured = |smoothed: u128| Assured {
            time: Span::from_secs(10),
            smoothed: smoothed << 32,
            ..Assured::default()
        };
        let tenant = |whole| TenantAssurance { quota: 4, whole, arrivals: whole };
        run.quota.tenants = vec![tenant(assured(9_000_000)), tenant(assured(5_000_000))];
        let first = Some((JobId(2), Time::from_secs(3)));
        run.quota.avoidable = Some(Avoidable { first, ..Avoidable::default() });
        let object = serde_json::to_value(Summary::of(&run, &["alpha", "beta"])).unwrap();
        assert_eq!(object["worst_tenant"], json!("beta"));
        assert_eq!(object["qad_worst_tenant"], json!(0.5));
        assert_eq!(object["by_tenant"][0]["qad_mean"], json!(0.9));
        assert_eq!(object["by_tenant"][1]["quota_gpus"], json!(4));
        assert_eq!(object["by_tenant"][2].get("qad_mean"), None, "it has no account");
        assert_eq!(object["avoidable_first"], json!({"job": 2, "at_s": 3.0}));
    }

    #[test]
    fn sharing_is_told_of_the_run_by_test_and_of_each_group_with_its_part() {
        let object = serde_json::to_value(Summary::of(&shared_run(), &["alpha"])).unwrap();
        assert_eq!(object["pairs_refused_by_test"], json!({"memory": 2, "tolerance": 7}));
        assert_eq!(object["slowdown_while_shared_weighted"], json!(400.0 / 296.0));
        let groups = [("by_class", 0, 0.8, 1.25), ("by_class", 1, 0.2, 2.0)];
        let sizes = [("by_size", 2, 0.8, 1.25), ("by_size", 1, 0.2, 2.0)];
        for (by, at, part, slowdown) in groups.into_iter().chain(sizes) {
            let group = &object[by][at];
            assert_eq!(group["shared_of_all_shared"], json!(part), "{by} {at}");
            assert_eq!(group["slowdown_while_shared_weighted"], json!(slowdown), "{by} {at}");
        }
        assert_eq!(object["by_size"][0]["shared_of_all_shared"], json!(0.0), "it never shared");
        assert_eq!(object["by_size"][0]["slowdown_while_shared_mean"], json!(null));
        assert_eq!(object["by_gang"][0]["shared_of_all_shared"], json!(0.0));
    }

    #[test]
    fn a_run_without_sharing_says_nothing_of_it() {
        let object = serde_json::to_value(Summary::of(&run(), &["alpha"])).unwrap();
        for name in ["pairs_refused_by_test", "pairs_formed", "slowdown_while_shared_max"] {
            assert_eq!(object[name], json!(null), "{name}");
        }
        assert_eq!(object["by_class"][0]["shared_of_all_shared"], json!(null));
        assert_eq!(object["solo_work_per_installed"], json!(0.0), "the sample was never metered");
    }

    #[test]
    fn cluster_figures_are_those_worked_out_by_hand() {
        let summary = Summary::of(&run(), &[""; 0]);
        assert_eq!(summary.value("allocation_ratio"), Value::Real(0.8));
        assert_eq!(summary.value("capacity_gpu_s"), Value::Real(1355.0));
        assert_eq!(summary.value("idle_while_waiting_gpu_s"), Value::Real(211.0));
        // The finished jobs fit beside each other: nothing beats their durations, 100 and 50.
        assert_eq!(summary.value("bound_jct_mean_s"), Value::Real(75.0));
        assert_eq!(summary.value("jct_mean_over_bound"), Value::Real(112.75 / 75.0));
        assert_eq!(summary.value("gpu_utilization"), Value::Missing);
    }
}
