//! How much of a job is left, second by second, without a loop over seconds where none is needed.

/// Work left of a running job, counted down once a second by its rate.
///
/// The artifact subtracts the rate from a double every second, and a closed form is off by a second
/// where the quotient is nearly whole. At rate 1 every difference is exact, so there one
/// subtraction does; at other rates they are all made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    left: f64,
    rate: f64,
    /// The last second whose subtraction is in `left`.
    at: u64,
}

impl Progress {
    /// A job starts alone; the first subtraction is in the next second.
    pub(crate) fn start(duration_s: u64, now: u64) -> Progress {
        Progress { left: duration_s as f64, rate: 1.0, at: now }
    }

    /// From the next second on it goes by `rate`.
    pub(crate) fn set_rate(&mut self, now: u64, rate: f64) {
        let seconds = now - self.at;
        if self.rate == 1.0 {
            self.left -= seconds as f64;
        } else {
            for _ in 0..seconds {
                self.left -= self.rate;
            }
        }
        self.at = now;
        self.rate = rate;
    }

    /// The second in which its end is noticed if the rate stays: the one after nothing is left.
    pub(crate) fn end(&self) -> u64 {
        if self.rate == 1.0 {
            return self.at + self.left.max(0.0).ceil() as u64 + 1;
        }
        let (mut left, mut seconds) = (self.left, 0);
        while left > 0.0 {
            left -= self.rate;
            seconds += 1;
        }
        self.at + seconds + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undisturbed_job_ends_a_second_late() {
        assert_eq!(Progress::start(97, 1_000).end(), 1_098);
    }

    #[test]
    fn a_slow_job_takes_as_many_subtractions_as_doubles_need() {
        let mut progress = Progress::start(1, 0);
        progress.set_rate(0, 0.1);
        // Ten times 0.1 leave a little of 1, so there is an eleventh.
        assert_eq!(progress.end(), 12);
        progress.set_rate(10, 1.0);
        assert_eq!(progress.end(), 12);
    }

    #[test]
    fn a_change_of_rate_counts_from_the_next_second() {
        let mut progress = Progress::start(100, 0);
        progress.set_rate(50, 0.5);
        assert_eq!(progress.end(), 50 + 100 + 1);
        progress.set_rate(149, 1.0);
        assert_eq!(progress.end(), 149 + 1 + 1, "half a second's work is left");
    }
}
