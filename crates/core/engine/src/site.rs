//! What nodes admit: requirements of jobs that are not GPUs, CPU or memory.
//!
//! The driver says how many more members of jobs with certain requirements each node takes, beside
//! whoever is there, and says so again whenever that changes. Between two such words the engine counts
//! what it has placed itself, so that a round does not give one place twice.

use crate::attempt::{Placement, Slice};
use crate::reason::Reason;
use crate::state::State;
use deepshare_model::{Demand, JobId, Layout, NodeId, PoolId, SiteId};
use serde::{Deserialize, Serialize};

/// What one node admits of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Admission {
    /// Members that it takes, as the driver last said; `u32::MAX`: any number.
    said: u32,
    /// Members placed since and started.
    started: u32,
    /// Members of reserved attempts, which the driver does not know of.
    promised: u32,
}

impl Admission {
    fn left(self) -> u32 {
        match self.said {
            u32::MAX => u32::MAX,
            said => said.saturating_sub(self.started.saturating_add(self.promised)),
        }
    }
}

/// What every node admits, by site and node; nothing said: nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sites {
    by_site: Vec<Vec<Admission>>,
}

impl Sites {
    fn at(&self, site: SiteId, node: NodeId) -> Admission {
        let nodes = self.by_site.get(site.index());
        nodes.and_then(|nodes| nodes.get(node.index())).copied().unwrap_or_default()
    }

    fn at_mut(&mut self, site: SiteId, node: NodeId) -> &mut Admission {
        if self.by_site.len() <= site.index() {
            self.by_site.resize_with(site.index() + 1, Vec::new);
        }
        let nodes = &mut self.by_site[site.index()];
        if nodes.len() <= node.index() {
            nodes.resize(node.index() + 1, Admission::default());
        }
        &mut nodes[node.index()]
    }

    /// Members of a site that a node takes now; of an `empty` pool: as the driver last said.
    fn members(&self, site: SiteId, node: NodeId, empty: bool) -> u32 {
        let admission = self.at(site, node);
        if empty { admission.said } else { admission.left() }
    }

    /// How many of a demand's GPUs a node takes as its requirements go; any number of those of a
    /// job that is not in members, if it takes any.
    #[inline]
    pub(crate) fn gpus(&self, node: NodeId, demand: &Demand, empty: bool) -> u32 {
        match demand.site {
            None => u32::MAX,
            Some(site) => match (self.members(site, node, empty), demand.layout) {
                (0, _) => 0,
                (_, Layout::Consolidated) => u32::MAX,
                (members, Layout::Members(each)) => members.saturating_mul(each),
            },
        }
    }
}

/// Members that so many GPUs of a demand on one node count as.
fn members_of(demand: &Demand, gpus: u32) -> u32 {
    match demand.layout {
        Layout::Consolidated => 1,
        Layout::Members(each) => gpus.div_ceil(each.max(1)),
    }
}

impl State {
    /// How many of a demand's GPUs a node takes now as its requirements go (labels, taints, ports,
    /// other resources); `u32::MAX`: those do not limit it.
    #[inline]
    pub fn admitted_gpus(&self, node: NodeId, demand: &Demand) -> u32 {
        self.sites.gpus(node, demand, false)
    }

    /// True if the nodes of a placement take a job with this demand as its requirements go.
    pub fn admits_on(&self, placement: &Placement, demand: &Demand) -> bool {
        let takes = |slice: &Slice| slice.devices.count() <= self.admitted_gpus(slice.node, demand);
        demand.site.is_none() || placement.iter().all(takes)
    }

    /// What to say of a demand that nodes do not admit.
    pub(crate) fn not_admitted(&self, pool: PoolId, demand: &Demand, empty: bool) -> Reason {
        let wanted = |node: &&NodeId| {
            let gpu_type = self.nodes[node.index()].spec.gpu_type;
            demand.gpu_type.is_none_or(|wanted| wanted == gpu_type)
        };
        let nodes = self.pools[pool.index()].nodes.iter();
        let takes = |node: &&NodeId| self.sites.gpus(**node, demand, empty) > 0;
        Reason::NotAdmitted {
            need: demand.gpus,
            nodes: nodes.clone().filter(wanted).count() as u32,
            admitting: nodes.filter(wanted).filter(takes).count() as u32,
        }
    }

    /// Counts what a placed attempt takes of its site, while it is promised or once it starts.
    #[inline]
    pub(crate) fn count_members(&mut self, job: JobId, placement: &Placement, change: Members) {
        if let Some(site) = self.job(job).spec.demand.site {
            self.count_members_of(site, job, placement, change);
        }
    }

    fn count_members_of(
        &mut self,
        site: SiteId,
        job: JobId,
        placement: &Placement,
        change: Members,
    ) {
        let demand = self.job(job).spec.demand;
        for slice in placement {
            let members = members_of(&demand, slice.devices.count());
            let admission = self.sites.at_mut(site, slice.node);
            // Plans made before are for other nodes than these now.
            self.generation += u64::from(admission.said < u32::MAX);
            match change {
                Members::Promised => admission.promised += members,
                Members::Started => {
                    admission.promised -= members;
                    admission.started = admission.started.saturating_add(members);
                }
                Members::Returned => {
                    admission.promised -= members;
                    self.unblock(slice.node);
                }
            }
        }
    }

    /// The driver's word on what nodes take of a site. The nodes for which it is news.
    pub(crate) fn admit_members(
        &mut self,
        site: SiteId,
        nodes: &[NodeId],
        members: u32,
    ) -> Vec<NodeId> {
        let mut news = Vec::new();
        for &node in nodes.iter().filter(|node| node.index() < self.nodes.len()) {
            let admission = self.sites.at_mut(site, node);
            if (admission.said, admission.started) != (members, 0) {
                (admission.said, admission.started) = (members, 0);
                news.push(node);
            }
        }
        news
    }

    /// True if more members of a site are promised on a node than it takes.
    pub(crate) fn is_overpromised(&self, site: SiteId, node: NodeId) -> bool {
        let Admission { said, started, promised } = self.sites.at(site, node);
        said < u32::MAX && promised > 0 && started.saturating_add(promised) > said
    }
}

/// What becomes of an attempt's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// It is promised devices.
    Promised,
    /// It starts on them.
    Started,
    /// It is promised them no more.
    Returned,
}
