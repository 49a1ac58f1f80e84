//! Amounts of resources by name.

use crate::quantity::{Quantity, base_units};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Amounts by resource name, ordered by name: CPU in thousandths of a core, anything else in its
/// own unit (bytes, devices). Fractions are rounded up, as the kubelet does.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceList(Box<[(Box<str>, u64)]>);

impl ResourceList {
    /// The amount of `resource`, where it is named at all.
    pub fn get(&self, resource: &str) -> Option<u64> {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(resource)).ok()?;
        Some(self.0[at].1)
    }

    /// All amounts, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<Box<str>>> FromIterator<(N, u64)> for ResourceList {
    /// The last one counts of several with one name.
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(amounts: I) -> ResourceList {
        let by_name: std::collections::BTreeMap<Box<str>, u64> =
            amounts.into_iter().map(|(name, amount)| (name.into(), amount)).collect();
        ResourceList(by_name.into_iter().collect())
    }
}

impl fmt::Debug for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<ResourceList, D::Error> {
        input.deserialize_map(Amounts)
    }
}

struct Amounts;

impl<'de> Visitor<'de> for Amounts {
    type Value = ResourceList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("quantities by resource name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
        let mut amounts = Vec::new();
        while let Some((name, quantity)) = map.next_entry::<Box<str>, Quantity>()? {
            let amount = base_units(&name, quantity)
                .map_err(|error| A::Error::custom(format!("resource `{name}`: {error}")))?;
            amounts.push((name, amount));
        }
        Ok(amounts.into_iter().collect())
    }
}
