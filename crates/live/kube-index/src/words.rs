//! Names and sentences, where the engine has numbers.

use crate::action::Action;
use crate::index::Index;
use deepshare_engine::{EvictReason, Preemption};
use deepshare_model::{JobId, NodeId, Time};

impl Index {
    pub(crate) fn node_name(&self, node: NodeId) -> &str {
        self.nodes_by_id.get(node.index()).map_or("?", |name| name)
    }

    pub(crate) fn job_name(&self, job: JobId) -> String {
        let entry = self.jobs.get(job);
        format!("{}/{}", entry.namespace, entry.name)
    }

    /// An instant as RFC 3339.
    pub(crate) fn text_of(&self, at: Time) -> String {
        let micros = i64::try_from(at.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_microsecond(micros).map_or_else(|_| String::new(), |t| t.to_string())
    }

    pub(crate) fn announce(&mut self, uid: &str, reason: &str, message: &str, warning: bool) {
        let Some(pod) = self.pods.get(uid) else { return };
        self.actions.push(Action::Announce {
            pod: pod.pod_ref(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            warning,
        });
    }

    pub(crate) fn eviction_message(
        &self,
        job: JobId,
        reason: EvictReason,
        preemption: Option<Preemption>,
    ) -> String {
        let name = self.job_name(job);
        let whom = preemption.map(|preemption| {
            let tenant = self.jobs.get(preemption.beneficiary).tenant;
            let tenant = self.tenants.name(tenant);
            format!(" for {} of tenant {tenant}", self.job_name(preemption.beneficiary))
        });
        let whom = whom.unwrap_or_default();
        match reason {
            EvictReason::Preempted => format!("{name} is preempted{whom}"),
            EvictReason::Degraded => format!("{name} shares a GPU, and the pair runs too slowly"),
            EvictReason::SlowdownLimit => format!(
                "{name} shares a GPU, and one of the pair is slowed down as much as it accepts"
            ),
            EvictReason::Broken => format!(
                "a pod of {name} is gone and did not come back: the gang starts again as a whole"
            ),
            EvictReason::StartOverdue => format!("{name} was bound and did not start"),
            EvictReason::NodeLost => format!("a node of {name} is lost"),
            EvictReason::Cancelled => format!("{name} was deleted"),
        }
    }
}
