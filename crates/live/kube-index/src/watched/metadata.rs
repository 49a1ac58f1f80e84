//! What every object has: names, labels, owners.

use super::or_default;
use deepshare_kube_api::names;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Metadata of any object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Unique in its namespace.
    #[serde(default)]
    pub name: Box<str>,
    /// Empty for objects of the cluster.
    #[serde(default)]
    pub namespace: Box<str>,
    /// Unique for ever.
    #[serde(default)]
    pub uid: Box<str>,
    /// When it was created.
    #[serde(default, deserialize_with = "instant")]
    pub creation_timestamp: Option<jiff::Timestamp>,
    /// It is being deleted, and will be gone by then if all goes well.
    #[serde(default, deserialize_with = "instant")]
    pub deletion_timestamp: Option<jiff::Timestamp>,
    /// All labels.
    #[serde(default, deserialize_with = "or_default")]
    pub labels: Labels,
    /// Those annotations that DeepShare reads, see `is_read`.
    #[serde(default, deserialize_with = "read_annotations")]
    pub annotations: Labels,
    /// Who it belongs to.
    #[serde(default, deserialize_with = "or_default")]
    pub owner_references: Box<[OwnerReference]>,
}

impl Metadata {
    /// The owner that manages it, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// As in `Job`.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its UID.
    pub uid: Box<str>,
    /// It manages the object; at most one does.
    #[serde(default)]
    pub controller: bool,
}

/// A namespace: what matters of it is its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Namespace {
    /// Name and labels.
    pub metadata: Metadata,
}

/// Labels or annotations, ordered by key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All pairs, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    /// The last one counts of several with one key.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Labels {
        let by_key: std::collections::BTreeMap<Box<str>, Box<str>> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Labels(by_key.into_iter().collect())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Labels, D::Error> {
        input.deserialize_map(Pairs { keep: |_| true })
    }
}

/// Annotations that DeepShare reads; all others are dropped. Annotations hold whole manifests
/// (`kubectl.kubernetes.io/last-applied-configuration`) and would be most of the memory.
pub fn is_read(annotation: &str) -> bool {
    const ONES: [&str; 5] = [
        "batch.kubernetes.io/job-completion-index",
        "kubernetes.io/config.mirror",
        "scheduling.k8s.io/group-name",
        names::SELECTED_NODE,
        "volume.kubernetes.io/storage-provisioner",
    ];
    const GROUPS: [&str; 4] =
        ["deepshare.io/", "jobset.sigs.k8s.io/", "scheduling.volcano.sh/", "volcano.sh/"];
    ONES.contains(&annotation) || GROUPS.iter().any(|group| annotation.starts_with(group))
}

fn read_annotations<'de, D: Deserializer<'de>>(input: D) -> Result<Labels, D::Error> {
    struct Read(Labels);
    impl<'de> Deserialize<'de> for Read {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Read, D::Error> {
            input.deserialize_map(Pairs { keep: is_read }).map(Read)
        }
    }
    Ok(Option::<Read>::deserialize(input)?.map_or_else(Labels::default, |read| read.0))
}

/// Reads a map of texts, without what is not to be kept.
struct Pairs {
    keep: fn(&str) -> bool,
}

impl<'de> Visitor<'de> for Pairs {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from text to text")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
        while let Some(key) = map.next_key::<Box<str>>()? {
            if (self.keep)(&key) {
                pairs.push((key, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(pairs.into_iter().collect())
    }
}

/// Reads an RFC 3339 instant; `null` and absent: none.
pub(super) fn instant<'de, D>(input: D) -> Result<Option<jiff::Timestamp>, D::Error>
where
    D: Deserializer<'de>,
{
    let Some(text) = Option::<Box<str>>::deserialize(input)? else { return Ok(None) };
    let parsed = text.parse::<jiff::Timestamp>();
    parsed
        .map(Some)
        .map_err(|error| D::Error::custom(format!("`{text}` is not an RFC 3339 instant: {error}")))
}
