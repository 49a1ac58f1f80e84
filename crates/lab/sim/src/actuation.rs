//! How the world carries out commands: at once and without fail by default, or late, refused,
//! lost, doubled and out of order.

use deepshare_model::Span;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// A uniformly distributed delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// At least this long.
    pub min: Span,
    /// At most this long.
    pub max: Span,
}

impl Delay {
    /// Always this long.
    pub fn exactly(span: Span) -> Delay {
        Delay { min: span, max: span }
    }

    fn draw(self, rng: &mut Pcg64Mcg) -> Span {
        if self.min >= self.max {
            self.min
        } else {
            Span(rng.random_range(self.min.0..=self.max.0))
        }
    }
}

/// How the world carries out commands. Chances are in thousandths. The default is an ideal world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actuation {
    /// From the command to the binding.
    pub bind: Delay,
    /// From the binding to running.
    pub start: Delay,
    /// From an eviction to the release of the devices.
    pub stop: Delay,
    /// From something happening to the engine hearing of it. A range reorders news.
    pub news: Delay,
    /// Bindings that fail.
    pub bind_failure_milli: u32,
    /// Bound attempts that their node rejects.
    pub rejection_milli: u32,
    /// Evictions of preempted jobs that are refused.
    pub refusal_milli: u32,
    /// News that is lost, and heard only after the next resync.
    pub loss_milli: u32,
    /// News that is heard twice.
    pub doubling_milli: u32,
    /// From the loss of news to the resync that brings it.
    pub resync: Span,
}

impl Actuation {
    /// True if commands take effect, and are known to have, at the instant they are given.
    pub fn is_ideal(&self) -> bool {
        *self == Actuation { resync: self.resync, ..Actuation::default() }
    }
}

/// The model at work: one random stream for each kind of chance, so that turning one on does not
/// reshuffle the others.
pub(crate) struct Chance {
    model: Actuation,
    binding: Pcg64Mcg,
    starting: Pcg64Mcg,
    stopping: Pcg64Mcg,
    news: Pcg64Mcg,
}

impl Chance {
    pub(crate) fn new(model: Actuation, seed: u64) -> Chance {
        let stream = |purpose: u64| crate::world::stream(seed, purpose);
        Chance {
            model,
            binding: stream(1),
            starting: stream(2),
            stopping: stream(3),
            news: stream(4),
        }
    }

    pub(crate) fn bind_delay(&mut self) -> Span {
        self.model.bind.draw(&mut self.binding)
    }

    pub(crate) fn bind_fails(&mut self) -> bool {
        happens(self.model.bind_failure_milli, &mut self.binding)
    }

    pub(crate) fn start_delay(&mut self) -> Span {
        self.model.start.draw(&mut self.starting)
    }

    pub(crate) fn rejected(&mut self) -> bool {
        happens(self.model.rejection_milli, &mut self.starting)
    }

    pub(crate) fn stop_delay(&mut self) -> Span {
        self.model.stop.draw(&mut self.stopping)
    }

    pub(crate) fn refused(&mut self) -> bool {
        happens(self.model.refusal_milli, &mut self.stopping)
    }

    /// When news travels: how long it takes, and how long its double takes if it has one.
    pub(crate) fn news_delays(&mut self) -> (Span, Option<Span>) {
        let mut delay = self.model.news.draw(&mut self.news);
        if happens(self.model.loss_milli, &mut self.news) {
            delay += self.model.resync;
        }
        let doubled = happens(self.model.doubling_milli, &mut self.news);
        let double = doubled.then(|| delay + self.model.news.draw(&mut self.news));
        (delay, double)
    }
}

fn happens(milli: u32, rng: &mut Pcg64Mcg) -> bool {
    milli > 0 && rng.random_range(0..1_000u32) < milli
}
