//! What the lines of a segment say.

use deepshare_engine::{Command, EngineSettings, Event, Snapshot};
use deepshare_model::{GpuTypeId, JobId, NodeId, ProfileClassId, TenantId, Time, UserId};
use deepshare_policies::PolicyConfig;
use serde::{Deserialize, Serialize};

/// What the first line of a segment calls its format.
pub(crate) const FORMAT: &str = "deepshare-event-log";

/// The version this release writes and reads. Raised when a reader of the version before could not
/// read, or would misread, what is written.
pub const VERSION: u32 = 1;

/// First line of a segment: all that an engine is made of, beside what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    pub(crate) format: String,
    /// [`VERSION`].
    pub(crate) version: u32,
    /// Name and version of the program that wrote it.
    pub written_by: String,
    /// The policy and its settings.
    pub policy: PolicyConfig,
    /// The engine's settings.
    pub settings: EngineSettings,
    /// Wall-clock time of [`Time::ZERO`], microseconds since 1970-01-01 UTC.
    pub time_zero_unix_us: i64,
    /// What comes before the first step.
    pub begins: Begins,
}

impl Header {
    /// The header of a log that begins with an empty engine.
    pub fn new(
        written_by: String,
        policy: PolicyConfig,
        settings: EngineSettings,
        time_zero_unix_us: i64,
    ) -> Header {
        let format = FORMAT.to_owned();
        let begins = Begins::Empty;
        Header { format, version: VERSION, written_by, policy, settings, time_zero_unix_us, begins }
    }
}

/// What a segment begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begins {
    /// An engine that knows nothing yet: a scheduler started.
    Empty,
    /// A snapshot, taken after the last step of the segment before.
    Continued,
    /// A snapshot; steps before it are not in the log, since it could not be written.
    AfterGap {
        /// Steps lost.
        lost: u64,
    },
}

/// What an id stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// The id.
    pub of: Named,
    /// Its name for people. A job's identifies it after a restart, too, when ids are issued anew:
    /// name it so that no two jobs of a log share one, also where one has the name of another that is
    /// over.
    pub name: String,
}

/// An id that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// A tenant.
    Tenant(TenantId),
    /// A node.
    Node(NodeId),
    /// A job.
    Job(JobId),
    /// A user.
    User(UserId),
    /// A GPU model.
    GpuType(GpuTypeId),
    /// A class of hardware profiles.
    Profile(ProfileClassId),
}

/// One step of the engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When.
    pub at: Time,
    /// What it was told.
    pub event: Event,
    /// What the policy proposed against a rule, in words.
    #[serde(default)]
    pub illegal: Option<String>,
    /// What it asked for: the line after, if that is a list.
    #[serde(skip)]
    pub(crate) commands: Option<String>,
}

impl Step {
    /// What the engine asked for, in the bytes of the log.
    pub fn commands_text(&self) -> &str {
        self.commands.as_deref().unwrap_or("[]")
    }

    /// What the engine asked for.
    ///
    /// # Errors
    /// If these are not commands that this release knows.
    pub fn commands(&self) -> Result<Vec<Command>, serde_json::Error> {
        serde_json::from_str(self.commands_text())
    }
}

/// What a reader gets of a segment after its header and snapshot.
#[derive(Clone, Debug)]
pub enum Record {
    /// What an id stands for.
    Name(Name),
    /// A step.
    Step(Box<Step>),
}

/// A line as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Header(Header),
    Snapshot(Box<Snapshot>),
    Name(Name),
    Step(Box<Step>),
}

/// A line as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LineRef<'a> {
    Header(&'a Header),
    Snapshot(&'a Snapshot),
    Name(&'a Name),
    Step(StepRef<'a>),
}

/// A step as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct StepRef<'a> {
    pub(crate) at: Time,
    pub(crate) event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) illegal: Option<&'a str>,
}

/// The part of a header that every version has.
#[derive(Debug, Deserialize)]
pub(crate) struct AnyHeader {
    pub(crate) header: AnyVersion,
}

/// See [`AnyHeader`].
#[derive(Debug, Deserialize)]
pub(crate) struct AnyVersion {
    pub(crate) format: String,
    pub(crate) version: u32,
}
