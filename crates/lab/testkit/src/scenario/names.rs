//! What scripts call things, and the ids behind the names.

use super::error::Fault;
use super::words::Word;
use deepshare_model::{
    GpuTypeId, JobId, NodeId, ProfileClassId, SiteId, TenantId, TrustDomainId, UserId,
};

/// Names by id.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) jobs: Vec<String>,
    pub(crate) tenants: Vec<String>,
    users: Vec<String>,
    gpu_types: Vec<String>,
    pub(crate) profiles: Vec<String>,
    domains: Vec<String>,
    sites: Vec<String>,
    pub(crate) nodes: u32,
}

fn position(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|known| known == name)
}

fn known(names: &[String], kind: &str) -> String {
    match names {
        [] => format!("there is no {kind} yet"),
        _ => format!("the {kind}s so far are {}", names.join(", ")),
    }
}

fn find_or_add(names: &mut Vec<String>, name: &str) -> usize {
    position(names, name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

impl Names {
    pub(crate) fn new_job(&mut self, word: Word<'_>) -> Result<JobId, Fault> {
        if position(&self.jobs, word.text).is_some() {
            return Err(word.wrong("was submitted before", "give every job its own name"));
        }
        self.jobs.push(word.text.to_owned());
        Ok(JobId::from_index(self.jobs.len() - 1))
    }

    pub(crate) fn job(&self, word: Word<'_>) -> Result<JobId, Fault> {
        let job = position(&self.jobs, word.text).map(JobId::from_index);
        job.ok_or_else(|| word.wrong("is no job", known(&self.jobs, "job")))
    }

    pub(crate) fn tenant(&self, word: Word<'_>) -> Result<TenantId, Fault> {
        let tenant = position(&self.tenants, word.text).map(TenantId::from_index);
        tenant.ok_or_else(|| word.wrong("is no tenant", known(&self.tenants, "tenant")))
    }

    pub(crate) fn user(&mut self, name: &str) -> UserId {
        UserId::from_index(find_or_add(&mut self.users, name))
    }

    pub(crate) fn gpu_type(&mut self, name: &str) -> GpuTypeId {
        GpuTypeId::from_index(find_or_add(&mut self.gpu_types, name))
    }

    pub(crate) fn profile(&mut self, name: &str) -> ProfileClassId {
        ProfileClassId::from_index(find_or_add(&mut self.profiles, name))
    }

    /// Jobs that name none are of a domain of their own kind.
    pub(crate) fn trust_domain(&mut self, name: &str) -> TrustDomainId {
        TrustDomainId::from_index(find_or_add(&mut self.domains, name) + 1)
    }

    pub(crate) fn site(&mut self, name: &str) -> SiteId {
        SiteId::from_index(find_or_add(&mut self.sites, name))
    }

    pub(crate) fn gpu_types(&self) -> usize {
        self.gpu_types.len().max(1)
    }

    /// `n3`.
    pub(crate) fn node(&self, word: Word<'_>) -> Result<NodeId, Fault> {
        let number = word.text.strip_prefix('n').and_then(|number| number.parse().ok());
        let node = number.filter(|&number| number < self.nodes).map(NodeId);
        let last = self.nodes.saturating_sub(1);
        node.ok_or_else(|| word.wrong("is no node", format!("nodes are n0 to n{last}")))
    }

    /// `n3.1`: the second device of node 3.
    pub(crate) fn device(&self, word: Word<'_>) -> Result<(NodeId, u32), Fault> {
        let remedy = "write node.device, such as n0.3";
        let (node, device) =
            word.text.split_once('.').ok_or_else(|| word.wrong("is no device", remedy))?;
        let node = self.node(Word { column: word.column, text: node })?;
        let number = device.parse().map_err(|_| word.wrong("is no device", remedy))?;
        Ok((node, number))
    }

    pub(crate) fn job_name(&self, job: JobId) -> &str {
        &self.jobs[job.index()]
    }

    pub(crate) fn tenant_name(&self, tenant: TenantId) -> &str {
        &self.tenants[tenant.index()]
    }
}
