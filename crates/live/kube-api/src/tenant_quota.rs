//! `TenantQuota`: what a team is promised, and how it is doing.

use crate::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a team is promised. Cluster-scoped: a tenant is a set of namespaces.
#[derive(
    kube::CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize,
)]
#[kube(
    group = "deepshare.io",
    version = "v1alpha1",
    kind = "TenantQuota",
    plural = "tenantquotas",
    shortname = "tq",
    status = "TenantQuotaStatus",
    category = "deepshare",
    doc = "What a team is promised of the cluster's GPUs, and how it is doing.",
    validation = Rule::new("!has(self.spec.parent) || self.spec.parent != self.metadata.name")
        .message("a tenant cannot be its own parent"),
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.quota"),
    printcolumn(name = "Guaranteed", type_ = "integer", json_path = ".status.guaranteed"),
    printcolumn(name = "Best-effort", type_ = "integer", json_path = ".status.bestEffort"),
    printcolumn(name = "Demand", type_ = "integer", json_path = ".status.demand"),
    printcolumn(name = "Assurance", type_ = "string", json_path = ".status.assurance"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.namespaces) || has(self.namespaceSelector)")
        .message("name its namespaces: set namespaceSelector, or namespaces ([] for a mere parent)"),
    validation = Rule::new(
        "!has(self.namespaceSelector) \
         || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 \
         || has(self.namespaceSelector.matchExpressions) \
         && size(self.namespaceSelector.matchExpressions) > 0"
    )
        .message("an empty namespaceSelector would select every namespace: name a label"),
    validation = Rule::new(
        "!has(self.allowedClasses) || !has(self.defaultClass) \
         || self.defaultClass in self.allowedClasses"
    )
        .message("defaultClass must be one of allowedClasses")
)]
pub struct TenantQuotaSpec {
    /// Guaranteed GPUs by GPU type; `*` stands for a type that is not named.
    #[serde(default)]
    #[x_kube(
        validation = Rule::new("self.all(type, self[type] >= 0 && self[type] <= 1000000)")
            .message("a number of GPUs is from 0 to 1000000"),
        validation = Rule::new("self.all(type, type != '')")
            .message("name the GPU type; * stands for a type that is not named")
    )]
    #[schemars(extend("maxProperties" = 64))]
    pub gpus: BTreeMap<String, u32>,
    /// Namespaces whose pods are this tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxItems" = 1024, "x-kubernetes-list-type" = "set"))]
    #[schemars(inner(length(max = 63)))]
    pub namespaces: Option<Vec<String>>,
    /// Namespaces by label, beside those listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// A tenant whose quota caps the sum of its children's use. One level: a parent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub parent: Option<String>,
    /// Best-effort use is capped at this multiple of the quota, as in `2` or `1.5`. Default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 0.0 && self <= 1000.0")
        .message("a multiple is from 0 to 1000"))]
    pub best_effort_multiple: Option<f64>,
    /// Most GPUs of its idle quota that others may borrow. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub lending_limit: Option<u32>,
    /// Classes that its pods may ask for. Default: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1, "maxItems" = 2, "x-kubernetes-list-type" = "set"))]
    pub allowed_classes: Option<Vec<PodClass>>,
    /// Class of pods that ask for none. Default: guaranteed, or the only one allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PodClass")]
    pub default_class: Option<PodClass>,
    /// Sharing GPUs with others.
    #[serde(default)]
    pub colocation: Colocation,
    /// A job runs at least this many seconds before it may be preempted. Default 0.
    #[serde(default)]
    #[schemars(range(max = 31_536_000))]
    pub min_run_seconds: u32,
    /// Reclaiming what is lent.
    #[serde(default)]
    pub reclaim: Reclaim,
}

/// Class of a pod.
#[derive(
    JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum PodClass {
    /// Covered by the quota; never preempted.
    Guaranteed,
    /// Borrows what idles; may be reclaimed.
    BestEffort,
}

/// Whether pods of a tenant may share a GPU, and with whom.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!self.guaranteed || self.allowed")
        .message("guaranteed pods share only where colocation.allowed is true"),
    validation = Rule::new("!has(self.trustDomain) || self.allowed")
        .message("a trust domain is for tenants that share: set colocation.allowed or leave it out")
)]
pub struct Colocation {
    /// Best-effort pods that ask for a slot may share. Default false: a fault of one of the two
    /// ends both.
    #[serde(default)]
    pub allowed: bool,
    /// Guaranteed pods that ask for a slot may share, too. Default false.
    #[serde(default)]
    pub guaranteed: bool,
    /// Pods share only with pods of tenants of the same domain. Default: the tenant itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub trust_domain: Option<String>,
}

/// How this tenant's quota is reclaimed from whoever borrows it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.pdbWaitSeconds) || self.overridePdb")
    .message("pdbWaitSeconds counts only where overridePdb is true"))]
pub struct Reclaim {
    /// A victim that its PodDisruptionBudget protects is deleted all the same, once
    /// `pdbWaitSeconds` have passed. Default false.
    #[serde(default)]
    pub override_pdb: bool,
    /// How long the budget is asked again before. Default 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400))]
    pub pdb_wait_seconds: Option<u32>,
}

/// How a tenant is doing. Written by the scheduler, only when it changes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantQuotaStatus {
    /// Guaranteed GPUs promised, over all types.
    #[serde(default)]
    pub quota: u32,
    /// GPUs that its guaranteed pods hold.
    #[serde(default)]
    pub guaranteed: u32,
    /// GPUs that its best-effort pods, and guaranteed ones beyond the quota, hold.
    #[serde(default)]
    pub best_effort: u32,
    /// GPUs that its guaranteed pods hold or wait for.
    #[serde(default)]
    pub demand: u32,
    /// Quota assurance degree now, 0 to 1, as in `0.75`: of the type that is worst off.
    #[serde(default)]
    pub assurance: String,
    /// The same, smoothed, by GPU type: what decides, and what a restarted scheduler goes on from.
    #[serde(default)]
    pub smoothed: BTreeMap<String, String>,
    /// Waiting jobs by reason.
    #[serde(default)]
    pub waiting: BTreeMap<String, u32>,
    /// `Ready`: false where the specification cannot be served as it stands, with the reason.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Generation of the specification that the status is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
