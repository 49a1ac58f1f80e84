//! The pair theorem: a newcomer either joins a running job at once or waits for its end; nothing in
//! between is ever better.
//!
//! Source: "SJF-BSBF" (scheduling with job sharing and batch size scaling), IWQoS '24, Theorem 1,
//! derived anew (research/seed-systems.md §3.4, §3.5); restated. With T seconds of solo work left,
//! ξ the slowdown beside the other, *a* the newcomer and *b* the resident:
//!
//! ```text
//! together = T_a/2 + (1 − 1/(2 ξ_a)) · ξ_b T_b    if ξ_a T_a ≥ ξ_b T_b: the resident ends first
//!            T_b/2 + (1 − 1/(2 ξ_b)) · ξ_a T_a    otherwise
//! apart    = T_b + T_a/2
//! ```
//!
//! both being the mean of the two completion times from now on. Why: with the newcomer starting at
//! κ that mean is continuous in κ, rises while the newcomer ends first and is a straight line after
//! that, so it is least at one of the ends.
//!
//! A newcomer that needs gradient accumulation to fit runs at pace p < 1 beside the resident and
//! goes back to 1 once alone. The paper takes T_a/p for the whole run; see [`t_together_split`].
//!
//! Deviations: slowdowns are taken to be those of the whole batch whatever the steps, as nothing
//! measures them by step; going back happens at once, not at the end of an iteration.

use deepshare_model::{Retention, Span, Training};

/// One of two jobs on the same devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Work left, as seconds alone on its devices at full pace; 0 or more.
    pub solo_s: f64,
    /// Time of an iteration beside the other over that alone (ξ); 1 or more.
    pub slowdown: f64,
}

impl Member {
    /// With so much solo work left, and what it keeps of its speed beside the other.
    pub fn new(left: Span, beside: Retention) -> Member {
        Member { solo_s: left.as_secs_f64(), slowdown: beside.as_f64().recip() }
    }

    /// Seconds that the work takes if the other never ends.
    pub(super) fn shared_s(self) -> f64 {
        self.slowdown * self.solo_s
    }

    /// The same work done at a pace.
    fn stretched(self, pace: Retention) -> Member {
        Member { solo_s: self.solo_s / pace.as_f64(), ..self }
    }
}

/// Mean completion time of the two from now on if the newcomer joins now, s (t_con, §3.4).
pub fn t_together(newcomer: Member, resident: Member) -> f64 {
    let (first, last) = if newcomer.shared_s() >= resident.shared_s() {
        (resident, newcomer)
    } else {
        (newcomer, resident)
    };
    last.solo_s / 2.0 + (1.0 - 0.5 / last.slowdown) * first.shared_s()
}

/// Mean completion time of the two from now on if the newcomer waits for the resident's end, s
/// (t_seq, §3.4).
pub fn t_apart(newcomer: Member, resident: Member) -> f64 {
    resident.solo_s + newcomer.solo_s / 2.0
}

/// Whether joining now gives the lower mean completion time. Not if both are equal, nor if a figure
/// is not a number.
pub fn sharing_pays(newcomer: Member, resident: Member) -> bool {
    t_together(newcomer, resident) < t_apart(newcomer, resident)
}

/// [`t_together`] for a newcomer whose iterations are done in steps, at `pace` to the end of its
/// run, s: the paper's form (§3.5).
///
/// Never less than [`t_together_until_alone`], so a pair that it accepts is a good one. Where the
/// newcomer ends first both are the same. Where the resident ends first, at h_b = ξ_b T_b, the
/// newcomer ends at T_a/p + h_b (1 − 1/ξ_a) here and at T_a + h_b (1 − p/ξ_a) there; the difference
/// is (1 − p) (T_a/p − h_b/ξ_a), which is not negative just where ξ_a T_a/p ≥ h_b: in this case.
pub fn t_together_split(newcomer: Member, pace: Retention, resident: Member) -> f64 {
    t_together(newcomer.stretched(pace), resident)
}

/// [`t_together`] for a newcomer whose iterations are done in steps, at `pace`, until the resident
/// ends, and at full pace from then on, s: exact.
///
/// Beside the resident a slowdown of ξ at a pace of p is one of ξ/p.
pub fn t_together_until_alone(newcomer: Member, pace: Retention, resident: Member) -> f64 {
    t_together(Member { slowdown: newcomer.slowdown / pace.as_f64(), ..newcomer }, resident)
}

/// How a newcomer best fits beside a resident.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Steps of each of its iterations; 1: its whole batch at once.
    pub steps: u32,
    /// Mean completion time if it joins now, in the paper's form, s.
    pub together_s: f64,
    /// Mean completion time if it waits and then runs with its whole batch, s (reading B1).
    pub apart_s: f64,
}

/// The steps with the least time together among those that fit `memory_left_mib` on each device and
/// pay, the fewest on ties; `None` if there are none (§3.5).
///
/// Only the newcomer is split. Its `solo_s` is at full pace.
pub fn best_split(
    newcomer: Member,
    training: &Training,
    memory_left_mib: u32,
    resident: Member,
) -> Option<Split> {
    let apart_s = t_apart(newcomer, resident);
    let fitting = training.steps().filter(|&steps| training.memory_mib(steps) <= memory_left_mib);
    let splits = fitting.map(|steps| {
        let together_s = t_together_split(newcomer, training.pace(steps), resident);
        Split { steps, together_s, apart_s }
    });
    splits
        .filter(|split| split.together_s < apart_s)
        .min_by(|one, other| one.together_s.total_cmp(&other.together_s))
}
