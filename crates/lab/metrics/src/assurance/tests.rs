//! The integrator against numbers worked out by hand and against ticking slot by slot.

use super::*;
use proptest::prelude::*;

const CYCLE: Span = Span(50_000);
const T: TenantId = TenantId(0);

fn standing(owed: bool, now: f64, smoothed: f64) -> Standing {
    let fixed = |degree: f64| (degree * ONE as f64).round() as u64;
    Standing { owed, now: fixed(now), smoothed: fixed(smoothed) }
}

fn millis(ms: u64) -> Time {
    Time(ms * 1_000)
}

/// A tenant with a quota of 8 that asks for 8 at 0, gets them after 10 s and keeps them for 10 s.
fn ten_seconds_of_waiting(arrivals_end: Time) -> (TenantAssurance, Vec<Span>) {
    let mut meter = AssuranceMeter::new(CYCLE, 300, arrivals_end);
    meter.set(Time::ZERO, T, &[standing(true, 0.0, 1.0)]);
    // After 200 slots nothing is left of the average.
    meter.set(millis(10_000), T, &[standing(true, 1.0, 0.0)]);
    meter.set(millis(20_000), T, &[standing(false, 1.0, 1.0)]);
    let (tenants, recoveries) = meter.finish(millis(500_000));
    (tenants[0], recoveries)
}

#[test]
fn ten_seconds_of_waiting_are_counted_as_worked_out_by_hand() {
    let (tenant, recoveries) = ten_seconds_of_waiting(Time::MAX);
    let sums = tenant.whole;
    assert_eq!(sums.time, Span::from_secs(20), "time without demand does not count");
    assert_eq!(sums.mean_now(), Some(0.5));
    // Falling, 0.7 of slot 1 is below all but one half, which slot 2 (0.49) is below. Rising,
    // 1 - 0.7^n passes 0.95 in slot 9, 0.9 in slot 7, 0.85 in slot 6 and 0.5 in slot 2.
    let below = [10_450 - 50, 10_350 - 50, 10_300 - 50, 10_100 - 100];
    assert_eq!(sums.below, below.map(|ms| Span(ms * 1_000)));
    assert_eq!(sums.share_below(COMPLIANCE), Some(0.52));
    // What the average lags behind on the way down it lags behind on the way up: 50 ms / 0.3.
    assert!((sums.mean_smoothed().unwrap() - 0.5).abs() < 1e-8);
    assert_eq!(recoveries, [Span(10_400_000)]);
}

#[test]
fn the_window_of_arrivals_ends_in_the_middle_of_a_piece() {
    let (tenant, _) = ten_seconds_of_waiting(millis(1_000));
    let sums = tenant.arrivals;
    assert_eq!((sums.time, sums.now), (Span::SECOND, 0));
    assert_eq!(sums.below[COMPLIANCE], Span(950_000));
    // 20 slots of 50 ms: the sum of 0.7^n is (1 - 0.7^20) / 0.3.
    let expected = (1.0 - 0.7f64.powi(20)) / 0.3 * 0.05;
    assert!((sums.mean_smoothed().unwrap() - expected).abs() < 1e-8);
    assert_eq!(tenant.whole.time, Span::from_secs(20));
}

#[test]
fn an_event_within_a_slot_counts_from_there_and_the_average_steps_with_the_next() {
    let mut meter = AssuranceMeter::new(CYCLE, 300, Time::MAX);
    meter.set(millis(20), T, &[standing(true, 0.5, 1.0)]);
    let (tenants, recoveries) = meter.finish(millis(60));
    let sums = tenants[0].whole;
    assert_eq!(sums.time, Span(40_000));
    // 30 ms at 1, then 10 ms at 0.85, which is not below 0.85 but below 0.9.
    let mean = sums.mean_smoothed().unwrap();
    assert!((mean - (30.0 + 10.0 * 0.85) / 40.0).abs() < 1e-8);
    assert_eq!(sums.below[1], Span(10_000));
    assert_eq!(recoveries, [Span(10_000)], "counted up to the end of the run");
}

#[test]
fn a_tenant_that_is_owed_nothing_has_no_mean_rather_than_a_perfect_one() {
    let (tenants, recoveries) = {
        let mut meter = AssuranceMeter::new(CYCLE, 300, Time::MAX);
        meter.set(millis(1), T, &[standing(false, 1.0, 1.0)]);
        meter.finish(millis(1_000))
    };
    assert_eq!(tenants[0].whole, Assured::default());
    assert_eq!(tenants[0].whole.mean_smoothed(), None);
    assert_eq!(recoveries, []);
}

/// Every millisecond looked at one by one, in floating point.
struct Ticking {
    now: Vec<f64>,
    smoothed: Vec<f64>,
    owed: bool,
    time_ms: u64,
    smoothed_ms: f64,
    below_ms: [u64; ASSURANCE_LEVELS.len()],
    below_since: Option<u64>,
    recoveries: Vec<u64>,
}

impl Ticking {
    fn tick(&mut self, ms: u64) {
        if ms.is_multiple_of(50) {
            for (smoothed, now) in self.smoothed.iter_mut().zip(&self.now) {
                *smoothed = 0.3 * now + 0.7 * *smoothed;
            }
        }
    }

    fn look(&mut self, ms: u64) {
        let lowest = self.smoothed.iter().copied().fold(1.0, f64::min);
        match (lowest < 0.95, self.below_since) {
            (true, None) => self.below_since = Some(ms),
            (false, Some(since)) => {
                self.recoveries.push(ms - since);
                self.below_since = None;
            }
            _ => {}
        }
        if !self.owed {
            return;
        }
        self.time_ms += 1;
        self.smoothed_ms += lowest;
        for (below, level) in self.below_ms.iter_mut().zip(ASSURANCE_LEVELS) {
            *below += u64::from(lowest < f64::from(level) / 1_000.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Degrees in sevenths are never at a level, where rounding would decide.
    #[test]
    fn the_closed_form_counts_what_ticking_counts(
        changes in prop::collection::vec((1u64..700, 0u32..=7, 0u32..=7, any::<bool>()), 1..12),
    ) {
        let mut meter = AssuranceMeter::new(CYCLE, 300, Time::MAX);
        let mut ticking = Ticking {
            now: vec![1.0; 2],
            smoothed: vec![1.0; 2],
            owed: false,
            time_ms: 0,
            smoothed_ms: 0.0,
            below_ms: [0; ASSURANCE_LEVELS.len()],
            below_since: None,
            recoveries: Vec::new(),
        };
        let mut ms = 0;
        for (wait, one, two, owed) in changes {
            for _ in 0..wait {
                ticking.look(ms);
                ms += 1;
                ticking.tick(ms);
            }
            ticking.now = vec![f64::from(one) / 7.0, f64::from(two) / 7.0];
            ticking.owed = owed;
            let standings = [0, 1].map(|i| standing(owed, ticking.now[i], ticking.smoothed[i]));
            meter.set(millis(ms), T, &standings);
        }
        for _ in 0..500 {
            ticking.look(ms);
            ms += 1;
            ticking.tick(ms);
        }
        ticking.recoveries.extend(ticking.below_since.map(|since| ms - since));
        let (tenants, recoveries) = meter.finish(millis(ms));
        let sums = tenants[0].whole;
        prop_assert_eq!(sums.time.0, ticking.time_ms * 1_000);
        prop_assert_eq!(sums.below.map(|span| span.0 / 1_000), ticking.below_ms);
        let mean = ticking.smoothed_ms / ticking.time_ms as f64;
        prop_assert!(ticking.time_ms == 0 || (sums.mean_smoothed().unwrap() - mean).abs() < 1e-6);
        let spans: Vec<u64> = recoveries.iter().map(|span| span.0 / 1_000).collect();
        prop_assert_eq!(spans, ticking.recoveries);
    }
}
