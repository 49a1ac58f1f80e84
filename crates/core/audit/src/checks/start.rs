//! Who may be reserved for, and who may start.

use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::books::pairs::Joining;
use crate::violation::Violation;
use deepshare_engine::{NodeCondition, Placement};
use deepshare_model::{AttemptId, Class, Epoch, JobId};

impl Books {
    pub fn check_reserve(
        &self,
        id: AttemptId,
        job: JobId,
        charged: Class,
        placement: &Placement,
    ) -> Result<Vec<Joining>, Violation> {
        self.check_new(id, job, charged, placement, true)?;
        let joins = self.check_joins((id, job, charged), placement, None)?;
        // What stays and what is promised must fit; what is leaving makes room.
        self.check_host(id, job, placement, Attempt::stays)?;
        Ok(joins)
    }

    /// Without a reservation: everything is decided and done at once.
    pub fn check_direct_start(
        &self,
        id: AttemptId,
        epoch: Epoch,
        (job, charged): (JobId, Class),
        (placement, steps): (&Placement, u32),
    ) -> Result<Vec<Joining>, Violation> {
        self.check_new(id, job, charged, placement, false)?;
        if epoch != self.epoch {
            return Err(Violation::WrongEpoch { attempt: id, given: epoch, current: self.epoch });
        }
        let joins = self.check_joins((id, job, charged), placement, Some(steps))?;
        self.check_promises(id, placement)?;
        self.check_host(id, job, placement, Attempt::stays)?;
        self.check_host(id, job, placement, Attempt::uses)?;
        Ok(joins)
    }

    /// The pairs that a new attempt becomes part of, if its devices are not empty: a start in so many
    /// steps, or a reservation, which is for iterations as configured.
    fn check_joins(
        &self,
        (id, job, charged): (AttemptId, JobId, Class),
        placement: &Placement,
        steps: Option<u32>,
    ) -> Result<Vec<Joining>, Violation> {
        let hosts = self.check_company(id, placement, steps.is_none())?;
        let steps = steps.unwrap_or(1);
        self.check_steps(id, job, steps, hosts.is_empty())?;
        let pair = |host| self.check_pair((id, job, charged), placement, steps, host);
        hosts.into_iter().map(pair).collect()
    }

    /// A reservation's turn has come.
    pub fn check_reserved_start(
        &self,
        id: AttemptId,
        epoch: Epoch,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        let attempt = self.attempt(id)?;
        if !attempt.is_reserved() {
            return Err(Violation::StartedTwice { attempt: id, state: attempt.state() });
        }
        if attempt.job != job || attempt.placement != *placement {
            return Err(Violation::ReservationChanged { attempt: id });
        }
        // The term that placed it, or that of whoever confirms it now.
        if epoch < attempt.epoch || epoch > self.epoch {
            let current = attempt.epoch;
            return Err(Violation::WrongEpoch { attempt: id, given: epoch, current });
        }
        self.check_startable(id, job)?;
        for slice in placement {
            let condition = self.node(slice.node)?.condition;
            if condition == NodeCondition::Lost {
                let node = slice.node;
                return Err(Violation::NodeClosed { attempt: id, node, condition });
            }
        }
        // Beside whom it was promised a place, and nobody else.
        self.check_vacant(id, placement, &attempt.joins)?;
        self.check_host(id, job, placement, Attempt::uses)
    }

    fn check_new(
        &self,
        id: AttemptId,
        job: JobId,
        charged: Class,
        placement: &Placement,
        waits: bool,
    ) -> Result<(), Violation> {
        let expected = AttemptId::from_index(self.attempts.len());
        if id != expected {
            return Err(Violation::AttemptIdOutOfOrder { attempt: id, expected });
        }
        self.check_startable(id, job)?;
        self.check_gang(id, job, placement)?;
        self.check_nodes(id, job, placement)?;
        self.check_shape(id, job, placement)?;
        self.check_admitted(id, job, placement)?;
        self.check_promises(id, placement)?;
        self.check_charge(id, job, charged)?;
        let gpu_type = self.node(placement[0].node)?.spec.gpu_type;
        self.check_quota(id, job, charged, gpu_type, waits)
    }

    fn check_startable(&self, id: AttemptId, job: JobId) -> Result<(), Violation> {
        let entry = self.job(job)?;
        if let Some(why) = entry.unstartable(self.now) {
            return Err(Violation::NotStartable { attempt: id, job, why });
        }
        match entry.live {
            Some(live) if live != id => Err(Violation::TwoLiveAttempts { job, live, second: id }),
            _ => Ok(()),
        }
    }
}
