//! What nodes admit, as the driver said, and what was placed there since.

use super::Books;
use deepshare_engine::Placement;
use deepshare_model::{Demand, JobId, Layout, NodeId, SiteId};
use std::collections::BTreeMap;

/// Members of one site on one node.
#[derive(Clone, Copy, Debug, Default)]
struct Admission {
    said: u32,
    started: u32,
    promised: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sites {
    at: BTreeMap<(SiteId, NodeId), Admission>,
}

impl Sites {
    pub fn say(&mut self, site: SiteId, node: NodeId, members: u32) {
        let promised = self.at.get(&(site, node)).map_or(0, |at| at.promised);
        self.at.insert((site, node), Admission { said: members, started: 0, promised });
    }

    /// Members that a node takes as the driver last said.
    pub fn said(&self, demand: &Demand, node: NodeId) -> u32 {
        let Some(site) = demand.site else { return u32::MAX };
        self.at.get(&(site, node)).map_or(0, |at| at.said)
    }

    /// Members that a node takes beside those placed since.
    pub fn left(&self, demand: &Demand, node: NodeId) -> u32 {
        let said = self.said(demand, node);
        let placed = demand.site.and_then(|site| self.at.get(&(site, node)));
        let placed = placed.map_or(0, |at| at.started.saturating_add(at.promised));
        if said == u32::MAX { said } else { said.saturating_sub(placed) }
    }

    /// True if a node takes fewer members than are promised there.
    pub fn overpromised(&self, site: SiteId, node: NodeId) -> bool {
        self.at.get(&(site, node)).is_some_and(|at| {
            at.promised > 0 && at.said < u32::MAX && at.started + at.promised > at.said
        })
    }
}

/// Members of a gang on so many devices of a node; a job that has none counts as one there.
pub(crate) fn members_on(demand: &Demand, devices: u32) -> u32 {
    match demand.layout {
        Layout::Consolidated => 1,
        Layout::Members(each) => devices.div_ceil(each.max(1)),
    }
}

/// Devices that so many members have at most.
pub(crate) fn devices_of(demand: &Demand, members: u32) -> u32 {
    match demand.layout {
        _ if members == 0 => 0,
        Layout::Consolidated => u32::MAX,
        Layout::Members(each) => members.saturating_mul(each.max(1)),
    }
}

impl Books {
    /// Counts what a placement takes: more or less of what is promised, and of what has started.
    pub fn count_members(&mut self, job: JobId, placement: &Placement, change: (i64, i64)) {
        let demand = self.jobs[job.index()].spec.demand;
        let Some(site) = demand.site else { return };
        for slice in placement {
            let members = i64::from(members_on(&demand, slice.devices.count()));
            let at = self.sites.at.entry((site, slice.node)).or_default();
            let add = |count: u32, sign: i64| (i64::from(count) + sign * members) as u32;
            at.promised = add(at.promised, change.0);
            at.started = add(at.started, change.1);
        }
    }
}
