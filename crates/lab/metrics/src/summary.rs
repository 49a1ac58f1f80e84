//! All figures of a run, and its form in JSON.

use crate::figures::{JobFigures, RunFigures, Value, Valued};
use crate::{JobRecord, RunRecord, SizeBucket, result_hash};
use deepshare_model::{Class, Outcome};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The figures that every script reads, first in the JSON object, after `policy`.
const HEADLINE: [&str; 4] = ["jct_mean_s", "queueing_delay_mean_s", "makespan_s", "preemptions"];

/// All figures of a run.
///
/// Serialises to a flat object: `policy`, the headline figures, `result_hash`, `estimates`, every
/// other figure under its registered name, then the arrays `by_tenant`, `by_class`, `by_size` and
/// `by_outcome`. It can be flattened into a larger object.
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
    /// By tenant, in the order of ids; only tenants with jobs, as in all groups.
    pub by_tenant: Vec<Group>,
    /// By class.
    pub by_class: Vec<Group>,
    /// By number of GPUs.
    pub by_size: Vec<Group>,
    /// By how the job ended in the trace.
    pub by_outcome: Vec<Group>,
}

/// Figures over the jobs that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What the groups differ in: `tenant`, `class`, `size` or `outcome`.
    pub by: &'static str,
    /// Which group this is.
    pub name: String,
    /// Figures over its jobs.
    pub jobs: JobFigures,
}

impl Summary {
    /// The figures of `run`. Tenants are named by position in `tenants`; one beyond its end is
    /// named by its number.
    pub fn of<S: AsRef<str>>(run: &RunRecord, tenants: &[S]) -> Summary {
        let tenant_count = run.jobs.iter().map(|job| job.tenant.index() + 1).max().unwrap_or(0);
        let tenant_names = (0..tenant_count).map(|at| match tenants.get(at) {
            Some(name) => name.as_ref().to_owned(),
            None => format!("t{at}"),
        });
        let owned = |name: &'static str| name.to_owned();
        let jobs = &run.jobs;
        let classes = [Class::Guaranteed, Class::BestEffort];
        let outcome_at = |outcome| Outcome::ALL.iter().position(|&other| other == outcome);
        Summary {
            policy: run.policy.clone(),
            estimates: run.estimates.clone(),
            result_hash: result_hash(jobs),
            jobs: JobFigures::of(jobs),
            run: RunFigures::of(run),
            by_tenant: groups("tenant", tenant_names, jobs, |job| job.tenant.index()),
            by_class: groups("class", classes.map(|class| owned(class.name())), jobs, |job| {
                usize::from(job.class == Class::BestEffort)
            }),
            by_size: groups("size", SizeBucket::ALL.map(|size| owned(size.name())), jobs, |job| {
                SizeBucket::of(job.gpus) as usize
            }),
            by_outcome: groups("outcome", Outcome::ALL.map(|o| owned(o.name())), jobs, |job| {
                outcome_at(job.outcome).expect("every outcome is in the list of all")
            }),
        }
    }

    /// Every figure over the whole run, in the order of the registry.
    pub fn figures(&self) -> Vec<Valued> {
        let mut figures = self.jobs.figures();
        figures.extend(self.run.figures());
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
    named.map(|(name, jobs)| Group { by, name, jobs: JobFigures::of(jobs) }).collect()
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
        write_figures(&mut object, &rest)?;
        object.serialize_entry("by_tenant", &self.by_tenant)?;
        object.serialize_entry("by_class", &self.by_class)?;
        object.serialize_entry("by_size", &self.by_size)?;
        object.serialize_entry("by_outcome", &self.by_outcome)?;
        object.end()
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry(self.by, &self.name)?;
        write_figures(&mut object, &self.jobs.figures())?;
        object.end()
    }
}

fn write_figures<M: SerializeMap>(object: &mut M, figures: &[Valued]) -> Result<(), M::Error> {
    figures.iter().try_for_each(|(figure, value)| object.serialize_entry(&figure.name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::run;
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
        assert_eq!(object["by_class"][1]["jct_mean_s"], json!(125.5));
        assert_eq!(object["by_size"][0]["jct_mean_s"], json!(null), "it has not ended");
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
