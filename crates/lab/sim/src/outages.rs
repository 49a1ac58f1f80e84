//! When nodes are away or closed: from a file, or drawn from a seeded model.

mod file;

pub use file::read_outages;

use crate::queue::Due;
use deepshare_model::{NodeId, Span, Time};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// One node away or closed for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Which node.
    pub node: NodeId,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// In which way.
    pub kind: OutageKind,
}

/// In which way a node is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutageKind {
    /// It is gone, with all that runs on it.
    #[default]
    Failure,
    /// It takes nothing new; what runs there goes on.
    Drain,
    /// It takes nothing new from `cordon` on, is gone from the outage's beginning, and comes back at
    /// its end.
    Maintenance {
        /// Not after the outage's beginning.
        cordon: Time,
    },
}

impl Outage {
    /// When it first shows.
    fn begin(&self) -> Time {
        match self.kind {
            OutageKind::Maintenance { cordon } => cordon,
            OutageKind::Failure | OutageKind::Drain => self.from,
        }
    }

    /// What happens to the node, and when.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Time, Due)> {
        let Outage { node, from, until, kind } = *self;
        let away = [(from, Due::NodeFails(node)), (until, Due::NodeReturns(node))];
        let closed = [(from, Due::Cordons(node, true)), (until, Due::Cordons(node, false))];
        let (first, both) = match kind {
            OutageKind::Failure => (None, away),
            OutageKind::Drain => (None, closed),
            OutageKind::Maintenance { cordon } => (Some((cordon, Due::Cordons(node, true))), away),
        };
        first.into_iter().chain(both)
    }
}

/// Exponentially distributed times between failures and to repair, independently for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageModel {
    /// Mean time a node stays up.
    pub mean_up: Span,
    /// Mean time it then is away.
    pub mean_down: Span,
}

/// Where outages come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outages {
    /// Nodes never fail.
    #[default]
    None,
    /// Just these.
    Listed(Vec<Outage>),
    /// Drawn with the run's seed.
    Drawn(OutageModel),
}

/// An exponentially distributed span, at least a microsecond.
pub(crate) fn exponential(mean: Span, rng: &mut Pcg64Mcg) -> Span {
    let uniform: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    let span = Span::from_secs_f64(-libm::log(uniform) * mean.as_secs_f64());
    span.unwrap_or(Span::MAX).max(Span(1))
}
