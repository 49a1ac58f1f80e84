//! Which objects are watched, and how each kind's news becomes a change of the index.

use crate::api::Api;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::watch::{Delta, Key, Source, Watch};
use deepshare_kube_api::{GpuNode, TenantQuota};
use deepshare_kube_index::watched::{
    CsiNode, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PodGroup, StorageClass,
};
use deepshare_kube_index::{Change, GroupSource};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a watch tells the engine loop.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "all but a dozen are changes")]
pub enum News {
    /// Something changed.
    Change(Change),
    /// A list has been delivered; the first of each feed counts.
    Listed(usize),
}

/// Number of feeds.
pub const FEEDS: usize = 13;

/// Starts every watch. All send to `news`.
pub fn start(
    api: &Api,
    leadership: &Leadership,
    metrics: &Arc<Metrics>,
    news: &mpsc::Sender<News>,
) {
    let start = Start { api, leadership, metrics, news };
    // Pods that have ended hold nothing. Those that end later are seen to, without a selector.
    let unfinished = "status.phase!=Succeeded,status.phase!=Failed";
    let core = |path| Source { path, list_selector: "", optional: false };
    let optional = |path| Source { path, list_selector: "", optional: true };
    start.feed::<Pod, 0>(
        Source { list_selector: unfinished, ..core("/api/v1/pods") },
        |pod| Change::Pod(Box::new(pod)),
        |key| Change::PodGone { uid: key.uid.into() },
    );
    start.feed::<Node, 1>(
        core("/api/v1/nodes"),
        |node| Change::Node(Box::new(node)),
        |key| Change::NodeGone { name: key.name.into() },
    );
    start.feed::<GpuNode, 2>(
        core("/apis/deepshare.io/v1alpha1/gpunodes"),
        |gpus| Change::Gpus(Box::new(gpus)),
        |key| Change::GpusGone { name: key.name.into() },
    );
    start.feed::<TenantQuota, 3>(
        core("/apis/deepshare.io/v1alpha1/tenantquotas"),
        |quota| Change::Quota(Box::new(quota)),
        |key| Change::QuotaGone { name: key.name.into() },
    );
    start.feed::<Namespace, 4>(core("/api/v1/namespaces"), Change::Namespace, |key| {
        Change::NamespaceGone { name: key.name.into() }
    });
    start.feed::<PodDisruptionBudget, 5>(
        core("/apis/policy/v1/poddisruptionbudgets"),
        Change::Budget,
        |key| Change::BudgetGone { namespace: key.namespace.into(), name: key.name.into() },
    );
    start.feed::<PersistentVolumeClaim, 6>(
        core("/api/v1/persistentvolumeclaims"),
        Change::Claim,
        |key| Change::ClaimGone { namespace: key.namespace.into(), name: key.name.into() },
    );
    start.feed::<PersistentVolume, 7>(core("/api/v1/persistentvolumes"), Change::Volume, |key| {
        Change::VolumeGone { name: key.name.into() }
    });
    start.feed::<StorageClass, 8>(
        core("/apis/storage.k8s.io/v1/storageclasses"),
        Change::StorageClass,
        |key| Change::StorageClassGone { name: key.name.into() },
    );
    start.feed::<CsiNode, 9>(core("/apis/storage.k8s.io/v1/csinodes"), Change::CsiNode, |key| {
        Change::CsiNodeGone { name: key.name.into() }
    });
    start.feed::<PodGroup, 10>(
        optional("/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
        |group| Change::Group(GroupSource::Coscheduling, group),
        |key| group_gone(GroupSource::Coscheduling, key),
    );
    start.feed::<PodGroup, 11>(
        optional("/apis/scheduling.volcano.sh/v1beta1/podgroups"),
        |group| Change::Group(GroupSource::Volcano, group),
        |key| group_gone(GroupSource::Volcano, key),
    );
    start.feed::<PodGroup, 12>(
        optional("/apis/scheduling.k8s.io/v1alpha2/podgroups"),
        |group| Change::Group(GroupSource::Core, group),
        |key| group_gone(GroupSource::Core, key),
    );
}

fn group_gone(source: GroupSource, key: Key) -> Change {
    Change::GroupGone { source, namespace: key.namespace.into(), name: key.name.into() }
}

struct Start<'a> {
    api: &'a Api,
    leadership: &'a Leadership,
    metrics: &'a Arc<Metrics>,
    news: &'a mpsc::Sender<News>,
}

impl Start<'_> {
    /// Starts feed number `FEED`.
    fn feed<T: DeserializeOwned + Send + 'static, const FEED: usize>(
        &self,
        source: Source,
        applied: fn(T) -> Change,
        gone: fn(Key) -> Change,
    ) {
        let wrap = move |delta| match delta {
            Delta::Applied(object) => News::Change(applied(object)),
            Delta::Gone(key) => News::Change(gone(key)),
            Delta::Synced => News::Listed(FEED),
        };
        let watch = Watch::new(self.api.clone(), source, self.news.clone(), wrap);
        tokio::spawn(watch.run(self.leadership.clone(), self.metrics.clone()));
    }
}
