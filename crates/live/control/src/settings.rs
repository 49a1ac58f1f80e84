//! The scheduler's settings file.
//!
//! Policy and engine settings have the names and units that they have in the lab (`deepshare
//! settings`), so that a file that was tried there can be carried over. [`KEYS`] is the only list of
//! keys: reading, suggestions and the reference in `docs/kubernetes/settings.md` come from it. What
//! is wrong with a file is reported all at once.

mod field;
mod keys;
mod reference;
mod source;
#[cfg(test)]
mod tests;

pub use deepshare_settings_file::Problem;
pub use field::{Field, Key};
pub use keys::KEYS;
pub use reference::reference;

use crate::lease::Timing;
use crate::writes::Kind;
use deepshare_engine::{CapacityMode, EngineSettings};
use deepshare_kube_api::names;
use deepshare_kube_index::Patience;
use deepshare_model::Span;
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that an operator chooses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `spec.schedulerName` of the pods that are scheduled.
    pub scheduler: String,
    /// The policy's name.
    pub policy: &'static str,
    /// DeepShare's own settings, if that is the policy.
    pub deepshare: DeepShareSettings,
    /// The engine's settings.
    pub engine: EngineSettings,
    /// What pods of each profile class keep beside others.
    pub retentions: Option<PathBuf>,
    /// How long volumes may take to be made for a pod that has a node.
    pub volumes: Span,
    /// The Lease.
    pub lease: LeaseSettings,
    /// The event log.
    pub log: LogSettings,
    /// Requests in flight, by [`Kind`].
    pub in_flight: [u32; Kind::ALL.len()],
    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    pub listen: SocketAddr,
}

/// The Lease.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// After how long without renewal another process takes over.
    pub duration: Span,
    /// After how long without renewal the leader stops.
    pub renew_deadline: Span,
    /// Time between two tries.
    pub retry: Span,
}

/// The event log.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// Its folder; `None`: nothing is recorded.
    pub folder: Option<PathBuf>,
    /// Most MiB of all files together.
    pub max_mib: u32,
    /// MiB after which a new file is begun.
    pub file_mib: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings::with_policy("deepshare")
    }
}

impl Settings {
    /// The defaults under this policy, one of [`PolicyConfig::NAMES`].
    fn with_policy(policy: &'static str) -> Settings {
        let config = PolicyConfig::by_name(policy).expect("it is in the list of names");
        // Borrowing needs a policy that reclaims; others keep tenants within their quotas.
        let capacity = match policy {
            "deepshare" | "elastic-quota" => CapacityMode::Elastic,
            _ => CapacityMode::Hard,
        };
        let timing = Timing::default();
        let span = |time: Duration| Span(time.as_micros() as u64);
        Settings {
            scheduler: names::SCHEDULER.to_owned(),
            policy,
            // What the lab leaves off for the sake of its older results.
            deepshare: DeepShareSettings { grow: true, ..DeepShareSettings::default() },
            engine: EngineSettings { capacity, ..config.engine_settings() },
            retentions: None,
            volumes: Patience::default().volumes,
            lease: LeaseSettings {
                namespace: "deepshare-system".to_owned(),
                name: "deepshare-scheduler".to_owned(),
                duration: span(timing.duration),
                renew_deadline: span(timing.renew_deadline),
                retry: span(timing.retry),
            },
            log: LogSettings { folder: None, max_mib: 1_024, file_mib: 64 },
            in_flight: Kind::ALL.map(|kind| match kind {
                Kind::Bind => 64,
                Kind::Evict | Kind::Status => 16,
                Kind::Resize => 8,
                Kind::Tenant | Kind::Announce => 4,
            }),
            listen: SocketAddr::from(([127, 0, 0, 1], 10_459)),
        }
    }

    /// Reads a settings file.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with file, line and column.
    pub fn from_file(path: &Path) -> Result<Settings, Vec<Problem>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("cannot read the settings file: {error}; check the path");
            vec![Problem { place: name.clone(), what }]
        })?;
        Settings::from_text(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a settings file called `name`. Paths in it start from `folder`.
    ///
    /// # Errors
    /// As [`Settings::from_file`].
    pub fn from_text(name: &str, text: &str, folder: &Path) -> Result<Settings, Vec<Problem>> {
        let mut problems = Vec::new();
        let assignments = source::read(name, text, &mut problems);
        // What is wrong with the policy's name is reported below.
        let policy = assignments.iter().find(|one| one.key.name == "policy");
        let policy = policy.and_then(|one| one.value.as_str());
        let policy = PolicyConfig::NAMES.into_iter().find(|name| Some(*name) == policy);
        let mut settings = policy.map_or_else(Settings::default, Settings::with_policy);
        for source::Assignment { key, value, place } in &assignments {
            if !key.field.set(&mut settings, value, folder) {
                let (name, kind) = (key.name, key.field.in_words());
                let what = format!("{name} = {}: expected {kind}", value.to_string().trim());
                problems.push(Problem { place: place.clone(), what });
            }
        }
        if problems.is_empty() {
            for (key, what) in settings.contradictions() {
                let place = assignments.iter().find(|one| one.key.name == key);
                let place = place.map_or(name, |one| one.place.as_str()).to_owned();
                problems.push(Problem { place, what: format!("{key}: {what}") });
            }
        }
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// What does not go together: the key, and what to do.
    fn contradictions(&self) -> Vec<(&'static str, &'static str)> {
        let Settings { lease, engine, deepshare, log, .. } = self;
        let rules = [
            (
                self.volumes.is_zero(),
                "volumes_s",
                "no volume is made in no time: give it some, as in 600",
            ),
            (
                lease.duration < Span::SECOND || !lease.duration.0.is_multiple_of(1_000_000),
                "lease.duration_s",
                "a Lease counts whole seconds, at least 1",
            ),
            (
                lease.renew_deadline >= lease.duration,
                "lease.renew_deadline_s",
                "must be below lease.duration_s, or two processes could lead at once",
            ),
            (
                lease.retry >= lease.renew_deadline || lease.retry.is_zero(),
                "lease.retry_s",
                "must be above 0 and below lease.renew_deadline_s",
            ),
            (
                engine.backoff_max < engine.backoff_first,
                "backoff.max_s",
                "is less than backoff.first_s",
            ),
            (
                !(10..=1_000).contains(&engine.qad_lambda_milli),
                "qad.lambda",
                "is not between 0.01 and 1",
            ),
            (
                !(1..=2).contains(&deepshare.colocation.residents),
                "deepshare.k",
                "is neither 1 nor 2",
            ),
            (
                log.file_mib == 0 || log.file_mib > log.max_mib,
                "log.file_mib",
                "must be at least 1 and at most log.max_mib",
            ),
            (
                self.in_flight.contains(&0),
                "in_flight",
                "0 requests in flight: nothing would be written",
            ),
        ];
        rules.into_iter().filter(|rule| rule.0).map(|(_, key, what)| (key, what)).collect()
    }

    /// The policy with its settings.
    pub fn policy_config(&self) -> PolicyConfig {
        match self.policy {
            "deepshare" => PolicyConfig::DeepShare(self.deepshare.clone()),
            name => PolicyConfig::by_name(name).expect("only known names are read"),
        }
    }

    /// The Lease's timing.
    pub fn timing(&self) -> Timing {
        let time = |span: Span| Duration::from_micros(span.0);
        let LeaseSettings { duration, renew_deadline, retry, .. } = &self.lease;
        Timing {
            duration: time(*duration),
            renew_deadline: time(*renew_deadline),
            retry: time(*retry),
        }
    }
}
