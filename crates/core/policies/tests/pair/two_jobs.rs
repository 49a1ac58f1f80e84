//! Two jobs on the same devices, from event to event. Knows no closed formula.

/// A job of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Solo work, s.
    pub work: f64,
    /// Work a second beside the other.
    pub beside: f64,
    /// When it starts, s.
    pub start: f64,
}

/// When each of the two ends. A job runs at 1 while it is alone.
pub fn ends(jobs: [Job; 2]) -> [f64; 2] {
    let mut left = jobs.map(|job| job.work);
    let mut ends: [Option<f64>; 2] = [None; 2];
    let mut now = 0.0;
    loop {
        let runs = [0, 1].map(|at| jobs[at].start <= now && ends[at].is_none());
        let together = runs == [true, true];
        let speed = [0, 1].map(|at| match (runs[at], together) {
            (false, _) => 0.0,
            (true, true) => jobs[at].beside,
            (true, false) => 1.0,
        });
        let until_end = |at: usize| if runs[at] { left[at] / speed[at] } else { f64::INFINITY };
        let until_start =
            |at: usize| if jobs[at].start > now { jobs[at].start - now } else { f64::INFINITY };
        let candidates = [until_end(0), until_end(1), until_start(0), until_start(1)];
        let (event, step) = (0..4)
            .map(|event| (event, candidates[event]))
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .expect("there are four");
        if step.is_infinite() {
            return ends.map(|end| end.expect("a job that started ends"));
        }
        // A start is met exactly: sums of steps may miss it.
        now = if event >= 2 { jobs[event - 2].start } else { now + step };
        for at in 0..2 {
            left[at] -= speed[at] * step;
        }
        if event < 2 {
            ends[event] = Some(now);
        }
    }
}
