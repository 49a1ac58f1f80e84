//! `TenantQuota` objects into tenants: who owns which namespace, and what is wrong with a quota.
//!
//! Outcomes where quotas contradict each other, each said in the `Ready` condition of the one that
//! loses (`docs/kubernetes/quotas.md`):
//!
//! - Two claim one namespace: the older one has it (by creation, then by name).
//! - A parent that is missing, has a parent itself, or is part of a cycle does not count: the tenant
//!   stands for itself.
//! - More is promised than the cluster has: all promises stand, `Satisfiable` says `False`, and the
//!   quota assurance degree shows who goes short.
//! - A quota is deleted: its pods run on as best-effort of a tenant with no quota, and waiting ones are
//!   refused, like those of a namespace that nobody claims.

use crate::interner::Interner;
use crate::selector;
use crate::watched::{LabelSelector, Labels};
use deepshare_engine::Event;
use deepshare_kube_api::{Condition, PodClass, TenantQuota};
use deepshare_model::{GpuTypeId, PoolId, Quota, Span, TenantId, TenantSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for every GPU type that a quota does not name.
const ANY_TYPE: &str = "*";

/// Why a namespace's pods are nobody's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unclaimed;

/// The tenants.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    names: Interner,
    quotas: BTreeMap<String, TenantQuota>,
    namespaces: BTreeMap<String, Labels>,
    owners: BTreeMap<String, TenantId>,
    conditions: BTreeMap<String, Vec<Condition>>,
    told: Vec<Option<TenantSpec>>,
}

impl Tenants {
    /// True if its terms are others than before: what the scheduler wrote into the status is no news.
    pub(crate) fn set_quota(&mut self, quota: TenantQuota) -> bool {
        let name = quota.metadata.name.clone().unwrap_or_default();
        let made = &quota.metadata.creation_timestamp;
        let before = self.quotas.get(&name);
        let news = before
            .is_none_or(|old| old.spec != quota.spec || old.metadata.creation_timestamp != *made);
        self.quotas.insert(name, quota);
        news
    }

    pub(crate) fn drop_quota(&mut self, name: &str) {
        self.quotas.remove(name);
    }

    pub(crate) fn set_namespace(&mut self, name: &str, labels: Labels) {
        self.namespaces.insert(name.to_owned(), labels);
    }

    pub(crate) fn drop_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// The tenant of a namespace, and its terms.
    pub(crate) fn of(&self, namespace: &str) -> Result<(TenantId, &TenantQuota), Unclaimed> {
        let tenant = *self.owners.get(namespace).ok_or(Unclaimed)?;
        let quota = self.quotas.get(self.names.name(tenant.index())).ok_or(Unclaimed)?;
        Ok((tenant, quota))
    }

    pub(crate) fn quota(&self, tenant: TenantId) -> Option<&TenantQuota> {
        self.quotas.get(self.names.name(tenant.index()))
    }

    pub(crate) fn name(&self, tenant: TenantId) -> &str {
        self.names.name(tenant.index())
    }

    /// Tenants that have a quota now.
    pub(crate) fn current(&self) -> impl Iterator<Item = (TenantId, &TenantQuota)> {
        let id = |name: &String| self.names.get(name).map(TenantId);
        self.quotas.iter().filter_map(move |(name, quota)| Some((id(name)?, quota)))
    }

    pub(crate) fn conditions(&self, name: &str) -> &[Condition] {
        self.conditions.get(name).map_or(&[], Vec::as_slice)
    }

    /// Works everything out anew and returns what the engine has to hear. `usable` is the number of
    /// working GPUs by type.
    pub(crate) fn reconcile(&mut self, types: &mut Interner, usable: &[u32]) -> Vec<Event> {
        for name in self.quotas.keys() {
            self.names.intern(name);
        }
        for quota in self.quotas.values() {
            for name in quota.spec.gpus.keys().filter(|name| *name != ANY_TYPE) {
                types.intern(name);
            }
        }
        let conflicts = self.assign_namespaces();
        let (parents, troubles) = self.parents();
        let short = self.overcommitted(types, usable);
        self.conditions.clear();
        for name in self.quotas.keys() {
            let trouble = troubles.get(name).cloned();
            let conflict = conflicts.get(name).map(|(namespace, winner)| {
                let message = format!(
                    "namespace {namespace} belongs to TenantQuota {winner}, which is older: remove \
                     it from one of the two"
                );
                ("NamespaceConflict", message)
            });
            let ready = match trouble.or(conflict) {
                None => condition("Ready", "True", "Served", "the quota is served as specified"),
                Some((reason, message)) => condition("Ready", "False", reason, &message),
            };
            let satisfiable = match short.get(name) {
                None => condition("Satisfiable", "True", "WithinCluster", ""),
                Some(message) => condition("Satisfiable", "False", "QuotaExceedsCluster", message),
            };
            self.conditions.insert(name.clone(), vec![ready, satisfiable]);
        }
        self.tell(types, &parents)
    }

    /// Gives namespaces to tenants; returns who lost which namespace to whom.
    fn assign_namespaces(&mut self) -> BTreeMap<String, (String, String)> {
        let mut by_age: Vec<&TenantQuota> = self.quotas.values().collect();
        let age = |quota: &TenantQuota| {
            let created = quota.metadata.creation_timestamp.as_ref();
            created.map_or(i64::MAX, |time| time.0.as_second())
        };
        // Stable: equal ages stay in order of name.
        by_age.sort_by_key(|quota| age(quota));
        let mut owners: BTreeMap<String, (TenantId, String)> = BTreeMap::new();
        let mut conflicts = BTreeMap::new();
        for quota in by_age {
            let name = quota.metadata.name.clone().unwrap_or_default();
            let Some(id) = self.names.get(&name).map(TenantId) else { continue };
            let mut claimed: BTreeSet<&str> =
                quota.spec.namespaces.iter().flatten().map(String::as_str).collect();
            if let Some(by_label) = quota.spec.namespace_selector.as_ref().and_then(slim) {
                let matching = self.namespaces.iter();
                let matching =
                    matching.filter(|(_, labels)| selector::labels_match(&by_label, labels));
                claimed.extend(matching.map(|(namespace, _)| namespace.as_str()));
            }
            for namespace in claimed {
                match owners.get(namespace) {
                    None => _ = owners.insert(namespace.to_owned(), (id, name.clone())),
                    Some((_, winner)) => {
                        let lost = (namespace.to_owned(), winner.clone());
                        conflicts.entry(name.clone()).or_insert(lost);
                    }
                }
            }
        }
        self.owners = owners.into_iter().map(|(space, (id, _))| (space, id)).collect();
        conflicts
    }

    /// The parent of each tenant that has one that counts, and why others do not.
    #[allow(clippy::type_complexity)]
    fn parents(&self) -> (BTreeMap<String, String>, BTreeMap<String, (&'static str, String)>) {
        let wish = |name: &str| self.quotas.get(name).and_then(|q| q.spec.parent.as_deref());
        let mut parents = BTreeMap::new();
        let mut troubles = BTreeMap::new();
        for name in self.quotas.keys() {
            let Some(parent) = wish(name) else { continue };
            if !self.quotas.contains_key(parent) {
                let message = format!(
                    "there is no TenantQuota {parent}: create it, or remove spec.parent; until then \
                     this tenant stands for itself"
                );
                troubles.insert(name.clone(), ("ParentMissing", message));
                continue;
            }
            let mut seen = BTreeSet::from([name.as_str()]);
            let mut at = Some(parent);
            while let Some(above) = at {
                if !seen.insert(above) {
                    break;
                }
                at = wish(above);
            }
            if let Some(again) = at {
                let message = format!(
                    "its parents lead in a circle at {again}: remove one spec.parent; until then \
                     this tenant stands for itself"
                );
                troubles.insert(name.clone(), ("ParentCycle", message));
            } else if wish(parent).is_some() {
                let message = format!(
                    "its parent {parent} has a parent itself: there is one level of parents; until \
                     that is changed this tenant stands for itself"
                );
                troubles.insert(name.clone(), ("ParentTooDeep", message));
            } else {
                parents.insert(name.clone(), parent.to_owned());
            }
        }
        (parents, troubles)
    }

    /// Tenants whose quotas are part of promising more than there is, and by how much.
    fn overcommitted(&self, types: &Interner, usable: &[u32]) -> BTreeMap<String, String> {
        let mut short = BTreeMap::new();
        for (index, gpu_type) in types.names().enumerate() {
            let have = usable.get(index).copied().unwrap_or(0);
            // A child's quota is part of its parent's.
            let roots = self.quotas.values().filter(|quota| quota.spec.parent.is_none());
            let promised: u64 = roots.map(|quota| u64::from(promise(quota, gpu_type))).sum();
            if promised <= u64::from(have) {
                continue;
            }
            for (name, quota) in &self.quotas {
                // A type that nobody has is the concern of those who name it.
                let named = have > 0 || quota.spec.gpus.contains_key(gpu_type);
                if promise(quota, gpu_type) > 0 && named {
                    let message = format!(
                        "{promised} GPUs of type {gpu_type} are promised in all, and {have} work: \
                         lower quotas or add nodes"
                    );
                    short.insert(name.clone(), message);
                }
            }
        }
        short
    }

    fn tell(&mut self, types: &Interner, parents: &BTreeMap<String, String>) -> Vec<Event> {
        let mut events = Vec::new();
        // A parent has to be known before its children.
        let mut order: Vec<TenantId> = (0..self.names.len()).map(TenantId::from_index).collect();
        self.told.resize(self.names.len(), None);
        order.sort_by_key(|id| self.told[id.index()].is_none());
        for id in order {
            let name = self.names.name(id.index());
            let spec = match self.quotas.get(name) {
                None => TenantSpec { best_effort_milli: 0, ..blank() },
                Some(quota) => TenantSpec {
                    parent: parents.get(name).and_then(|p| self.names.get(p)).map(TenantId),
                    ..terms(quota, types)
                },
            };
            if self.told[id.index()].as_ref() == Some(&spec) {
                continue;
            }
            // Ids are issued in order: one that comes later is announced without terms first.
            let later = spec.parent.filter(|parent| self.told[parent.index()].is_none());
            if later.is_some_and(|parent| parent > id) {
                let alone = TenantSpec { parent: None, ..spec.clone() };
                events.push(Event::TenantSet { tenant: id, spec: alone.clone() });
                self.told[id.index()] = Some(alone);
                continue;
            }
            events.push(Event::TenantSet { tenant: id, spec: spec.clone() });
            self.told[id.index()] = Some(spec);
        }
        let unfinished = (0..self.names.len()).any(|index| {
            let wanted = parents.get(self.names.name(index)).and_then(|p| self.names.get(p));
            let told = self.told[index].as_ref().and_then(|spec| spec.parent);
            wanted.map(TenantId) != told
        });
        if unfinished && !events.is_empty() {
            events.extend(self.tell(types, parents));
        }
        events
    }
}

/// The selector as node checks read it; one that they cannot read selects nothing.
fn slim(
    selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
) -> Option<LabelSelector> {
    let value = serde_json::to_value(selector).ok()?;
    serde_json::from_value(value).ok()
}

fn blank() -> TenantSpec {
    TenantSpec::new(PoolId(0), Quota::default())
}

fn promise(quota: &TenantQuota, gpu_type: &str) -> u32 {
    let gpus = &quota.spec.gpus;
    gpus.get(gpu_type).or_else(|| gpus.get(ANY_TYPE)).copied().unwrap_or(0)
}

fn terms(quota: &TenantQuota, types: &Interner) -> TenantSpec {
    let spec = &quota.spec;
    let mut gpus = Quota::default();
    for (index, gpu_type) in types.names().enumerate() {
        gpus.set(GpuTypeId::from_index(index), promise(quota, gpu_type));
    }
    let multiple = spec.best_effort_multiple.unwrap_or(2.0).clamp(0.0, 1_000.0);
    TenantSpec {
        best_effort_milli: (multiple * 1_000.0).round() as u32,
        lending_limit: spec.lending_limit,
        min_run_time: Span::from_secs(u64::from(spec.min_run_seconds)),
        ..TenantSpec::new(PoolId(0), gpus)
    }
}

/// The class of a pod that asks for `wanted`, or why it may not have it.
pub(crate) fn class_for(
    quota: &TenantQuota,
    wanted: Option<&str>,
) -> Result<deepshare_model::Class, String> {
    use deepshare_model::Class;
    let allowed = quota.spec.allowed_classes.as_deref();
    let may = |class: PodClass| allowed.is_none_or(|allowed| allowed.contains(&class));
    let default = quota.spec.default_class.unwrap_or(match may(PodClass::Guaranteed) {
        true => PodClass::Guaranteed,
        false => PodClass::BestEffort,
    });
    let class = match wanted {
        None => default,
        Some("guaranteed") => PodClass::Guaranteed,
        Some("best-effort") => PodClass::BestEffort,
        Some(other) => {
            return Err(format!(
                "annotation deepshare.io/class is {other:?}: write guaranteed or best-effort"
            ));
        }
    };
    if !may(class) {
        let name = quota.metadata.name.as_deref().unwrap_or_default();
        let word = match class {
            PodClass::Guaranteed => "guaranteed",
            PodClass::BestEffort => "best-effort",
        };
        return Err(format!("tenant {name} may not run {word} pods (spec.allowedClasses)"));
    }
    Ok(match class {
        PodClass::Guaranteed => Class::Guaranteed,
        PodClass::BestEffort => Class::BestEffort,
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: None,
    }
}
