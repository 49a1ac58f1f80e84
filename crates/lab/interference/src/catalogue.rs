//! The profiles of a run, each with the id by which policies know it.

use crate::workload::{Profile, Workload};
use deepshare_model::ProfileClassId;

/// Profiles in order of their workload. The position is the [`ProfileClassId`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    profiles: Vec<Profile>,
}

impl Catalogue {
    /// The catalogue of these profiles; of several for one workload the first counts.
    pub fn new(mut profiles: Vec<Profile>) -> Catalogue {
        profiles.sort_by(|a, b| a.workload.cmp(&b.workload));
        profiles.dedup_by(|later, first| later.workload == first.workload);
        Catalogue { profiles }
    }

    /// All profiles, by id.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The profile with this id.
    ///
    /// # Panics
    /// If the id is not of this catalogue.
    pub fn get(&self, class: ProfileClassId) -> &Profile {
        &self.profiles[class.index()]
    }

    /// The id of a workload.
    pub fn find(&self, workload: &Workload) -> Option<ProfileClassId> {
        let found = self.profiles.binary_search_by(|p| p.workload.cmp(workload));
        found.ok().map(ProfileClassId::from_index)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.profiles.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Ids of all profiles, in order.
    pub fn ids(&self) -> impl Iterator<Item = ProfileClassId> + use<> {
        (0..self.profiles.len()).map(ProfileClassId::from_index)
    }

    /// Whether both fit together into a device's memory. Retention says nothing of that.
    ///
    /// # Panics
    /// If an id is not of this catalogue.
    pub fn fits(&self, one: ProfileClassId, other: ProfileClassId, device_mib: u32) -> bool {
        let held = |class: ProfileClassId| u64::from(self.get(class).memory_mib);
        held(one) + held(other) <= u64::from(device_mib)
    }
}
