//! The mean run time of the jobs a user has finished so far.

use deepshare_model::{Span, TenantId, UserId};

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum_micros: u128,
    jobs: u64,
}

impl Mean {
    fn learn(&mut self, run_time: Span) {
        self.sum_micros += u128::from(run_time.0);
        self.jobs += 1;
    }

    fn value(self) -> Option<Span> {
        let mean = self.sum_micros.checked_div(u128::from(self.jobs))?;
        Some(Span(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// The user's mean; for a user without history the tenant's, then everybody's. `None` until
/// anything has ended. Counts every ended job, however it ended: failed and cancelled jobs are
/// a large part of real histories and end early for a reason that repeats.
#[derive(Clone, Debug, Default)]
pub struct RunningMean {
    users: Vec<Mean>,
    tenants: Vec<Mean>,
    all: Mean,
}

impl RunningMean {
    /// Predicted solo run time of a job that arrives now.
    pub fn estimate(&self, user: UserId, tenant: TenantId) -> Option<Span> {
        let of = |means: &[Mean], index: usize| means.get(index).and_then(|mean| mean.value());
        of(&self.users, user.index())
            .or_else(|| of(&self.tenants, tenant.index()))
            .or_else(|| self.all.value())
    }

    /// A job ended after running for `run_time` in all.
    pub fn learn(&mut self, user: UserId, tenant: TenantId, run_time: Span) {
        for (means, index) in [(&mut self.users, user.index()), (&mut self.tenants, tenant.index())]
        {
            if means.len() <= index {
                means.resize(index + 1, Mean::default());
            }
            means[index].learn(run_time);
        }
        self.all.learn(run_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_history_gets_the_tenants_mean_then_everybodys() {
        let mut means = RunningMean::default();
        let (ann, bob, red, blue) = (UserId(0), UserId(1), TenantId(0), TenantId(1));
        assert_eq!(means.estimate(ann, red), None);
        means.learn(ann, red, Span::from_secs(10));
        means.learn(ann, red, Span::from_secs(30));
        means.learn(bob, blue, Span::from_secs(80));
        assert_eq!(means.estimate(ann, blue), Some(Span::from_secs(20)));
        assert_eq!(means.estimate(UserId(7), red), Some(Span::from_secs(20)));
        assert_eq!(means.estimate(UserId(7), TenantId(5)), Some(Span::from_secs(40)));
    }
}
