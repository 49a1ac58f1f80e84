//! Where an attempt may be: a whole gang, on devices that exist, work, fit and are not another's.

use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::books::pairs::Joining;
use crate::books::sites::members_on;
use crate::violation::Violation;
use deepshare_engine::{NodeCondition, Placement, Placer};
use deepshare_model::{AttemptId, JobId, Layout, NodeId, Resources};

impl Books {
    /// The whole gang, one slice a node, on devices that exist.
    pub fn check_gang(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        for (index, slice) in placement.iter().enumerate() {
            let repeated = placement[..index].iter().any(|other| other.node == slice.node);
            if repeated || slice.devices.is_empty() {
                return Err(Violation::MalformedPlacement { attempt: id, node: slice.node });
            }
            let node = self.node(slice.node)?;
            if !slice.devices.minus(node.all()).is_empty() {
                return Err(Violation::DeviceMissing {
                    attempt: id,
                    node: slice.node,
                    devices: slice.devices,
                    gpus: node.spec.gpus,
                });
            }
        }
        let given = placement.iter().map(|slice| slice.devices.count()).sum();
        let asked = self.job(job)?.gpus();
        if given != asked {
            return Err(Violation::NotWhole { attempt: id, job, given, asked });
        }
        Ok(())
    }

    /// Open nodes of the job's pool, with healthy GPUs of the right model and memory.
    pub fn check_nodes(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        let entry = self.job(job)?;
        let demand = &entry.spec.demand;
        let first = self.node(placement[0].node)?.spec.gpu_type;
        let wanted = demand.gpu_type.unwrap_or(first);
        for slice in placement {
            let node = self.node(slice.node)?;
            let (attempt, spec) = (id, &node.spec);
            if node.condition != NodeCondition::Ready {
                let condition = node.condition;
                return Err(Violation::NodeClosed { attempt, node: slice.node, condition });
            }
            let failed = slice.devices.minus(node.healthy);
            if !failed.is_empty() {
                return Err(Violation::DeviceFailed { attempt, node: slice.node, devices: failed });
            }
            if spec.pool != entry.pool {
                let (pool, wanted) = (spec.pool, entry.pool);
                return Err(Violation::OtherPool { attempt, node: slice.node, pool, wanted });
            }
            if spec.gpu_type != wanted {
                let given = spec.gpu_type;
                return Err(Violation::WrongGpuType { attempt, node: slice.node, given, wanted });
            }
            let (need, has) = (demand.gpu_memory_mib, spec.gpu_memory_mib);
            if has != 0 && need > has {
                return Err(Violation::GpuMemoryShort { attempt, node: slice.node, need, has });
            }
        }
        Ok(())
    }

    /// Nodes admit what is placed there, beside what was placed since they were last asked.
    pub fn check_admitted(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        let demand = &self.job(job)?.spec.demand;
        for slice in placement {
            let members = members_on(demand, slice.devices.count());
            let left = self.sites.left(demand, slice.node);
            if members > left {
                let (attempt, node) = (id, slice.node);
                return Err(Violation::NotAdmitted { attempt, node, members, left });
            }
        }
        Ok(())
    }

    /// Members whole; a consolidated job no wider than it must be, where the placer promises that.
    pub fn check_shape(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        let demand = &self.job(job)?.spec.demand;
        if let Layout::Members(member) = demand.layout {
            // Packed node by node, the parts need no more members than the gang has.
            let each = member.max(1);
            let packed: u32 = placement.iter().map(|s| s.devices.count().div_ceil(each)).sum();
            if packed != demand.gpus.div_ceil(each) {
                return Err(Violation::MemberSplit { attempt: id, job, member });
            }
            return Ok(());
        }
        let free = self.settings.placer == Placer::NodeOrder || placement.len() == 1;
        if free || self.is_shape_of_another(placement) {
            return Ok(());
        }
        let first = &self.node(placement[0].node)?.spec;
        let size = self.node_size.get(&(first.pool, first.gpu_type)).copied().unwrap_or(0);
        let partial = |node: usize, taken: u32| taken < self.nodes[node].spec.gpus;
        let parts =
            placement.iter().filter(|s| partial(s.node.index(), s.devices.count())).count() as u32;
        if demand.gpus <= size || parts > 1 {
            return Err(Violation::Spread {
                attempt: id,
                job,
                gpus: demand.gpus,
                node_size: size,
                nodes: placement.len(),
                parts,
            });
        }
        Ok(())
    }

    /// True if somebody holds exactly these devices: who joins takes its shape, which is as the world
    /// made it if it was found there.
    fn is_shape_of_another(&self, placement: &Placement) -> bool {
        let slice = placement[0];
        let Some(device) = slice.devices.iter().next() else { return false };
        let mut holders = self.nodes[slice.node.index()].holders[device as usize].iter();
        holders.any(|holder| {
            let theirs = &self.attempts[holder.index()].placement;
            theirs.len() == placement.len() && placement.iter().all(|slice| theirs.contains(slice))
        })
    }

    /// No device is promised to anyone else.
    pub fn check_promises(&self, id: AttemptId, placement: &Placement) -> Result<(), Violation> {
        self.first_on(placement, |books, node, device| {
            books.nodes[node.index()].claimant[device as usize].filter(|&other| other != id)
        })
        .map_or(Ok(()), |(node, device, claimant)| {
            Err(Violation::DevicePromised { attempt: id, node, device, claimant })
        })
    }

    /// No device has a holder, those it joins apart, and none is promised to anyone else.
    pub fn check_vacant(
        &self,
        id: AttemptId,
        placement: &Placement,
        joins: &[Joining],
    ) -> Result<(), Violation> {
        let held = self.first_on(placement, |books, node, device| {
            let holders = &books.nodes[node.index()].holders[device as usize];
            let known = |holder: AttemptId| joins.iter().any(|joins| joins.host == holder);
            holders.iter().copied().find(|&holder| !known(holder))
        });
        match held {
            None => self.check_promises(id, placement),
            Some((node, device, holder)) => {
                Err(Violation::DeviceHeld { attempt: id, node, device, holder })
            }
        }
    }

    fn first_on(
        &self,
        placement: &Placement,
        who: impl Fn(&Books, NodeId, u32) -> Option<AttemptId>,
    ) -> Option<(NodeId, u32, AttemptId)> {
        placement.iter().find_map(|slice| {
            let node = slice.node;
            slice.devices.iter().find_map(|device| Some((node, device, who(self, node, device)?)))
        })
    }

    /// CPU and memory of each node cover this attempt beside those that count.
    pub fn check_host(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
        counted: impl Fn(&Attempt) -> Option<Resources>,
    ) -> Result<(), Violation> {
        let per_gpu = self.job(job)?.spec.demand.per_gpu;
        let this = self.attempts.get(id.index());
        for slice in placement {
            let others = |attempt: &Attempt| {
                let own = this.is_some_and(|this| std::ptr::eq(this, attempt));
                counted(attempt).filter(|_| !own)
            };
            let mut used = self.host_use(slice.node, others);
            used.add(per_gpu, slice.devices.count());
            let capacity = self.node(slice.node)?.spec.capacity;
            if used.is_short_of(capacity, per_gpu) {
                let node = slice.node;
                return Err(Violation::HostShort { attempt: id, node, used, capacity });
            }
        }
        Ok(())
    }
}
