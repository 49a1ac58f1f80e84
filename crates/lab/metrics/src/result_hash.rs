//! One short string that is equal exactly when two runs did the same to every job.

use crate::JobRecord;
use deepshare_model::{Outcome, Time};
use xxhash_rust::xxh3::Xxh3Default;

/// Stands for an instant that never came.
const NEVER: u64 = u64::MAX;

/// The 128-bit XXH3 digest of what happened to each job, as 32 lower-case hexadecimal digits.
///
/// Hashed are six unsigned 64-bit little-endian integers for each record, in the order given:
/// the job's number, first start, end, time waited (times in microseconds; `2^64 - 1` for an
/// instant that never came), preemptions, and the outcome (its position in [`Outcome::ALL`]).
/// After those of all jobs follow three more for each job that ran beside another: its number, that
/// time, and the time it lost to the other. A run without sharing has none of these, so its digest
/// is what it was before jobs could share.
/// The form is fixed: published hashes stay comparable.
pub fn result_hash(jobs: &[JobRecord]) -> String {
    let mut hasher = Xxh3Default::new();
    let instant = |time: Option<Time>| time.map_or(NEVER, |time| time.0);
    let mut hash = |fields: &[u64]| {
        for field in fields {
            hasher.update(&field.to_le_bytes());
        }
    };
    for job in jobs {
        hash(&[
            u64::from(job.job.0),
            instant(job.first_start),
            instant(job.end),
            job.waited.0,
            u64::from(job.preemptions),
            outcome_code(job.outcome),
        ]);
    }
    let sharers = jobs.iter().filter(|job| !job.shared.is_zero() || !job.slowed.is_zero());
    for job in sharers {
        hash(&[u64::from(job.job.0), job.shared.0, job.slowed.0]);
    }
    format!("{:032x}", hasher.digest128())
}

/// Written out, so that a new outcome cannot renumber the old ones.
fn outcome_code(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Failed => 1,
        Outcome::OutOfMemory => 2,
        Outcome::Cancelled => 3,
        Outcome::Timeout => 4,
        Outcome::NodeFail => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::records;
    use deepshare_model::Span;

    #[test]
    fn the_digest_of_a_known_set_never_changes() {
        assert_eq!(result_hash(&records()), "cb8c7456873795badb92306c58c6703b");
    }

    #[test]
    fn the_digest_of_no_jobs_is_the_published_one_of_the_empty_input() {
        assert_eq!(result_hash(&[]), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn every_hashed_field_changes_the_digest_and_the_order_does_too() {
        let jobs = records();
        let known = result_hash(&jobs);
        let edits: [fn(&mut JobRecord); 7] = [
            |job| job.first_start = None,
            |job| job.end = job.end.map(|end| end + Span(1)),
            |job| job.waited.0 += 1,
            |job| job.preemptions += 1,
            |job| job.outcome = Outcome::Timeout,
            |job| job.shared.0 += 1,
            |job| job.slowed.0 += 1,
        ];
        for edit in edits {
            let mut changed = jobs.clone();
            edit(&mut changed[1]);
            assert_ne!(result_hash(&changed), known);
        }
        let mut swapped = jobs.clone();
        swapped.swap(0, 1);
        assert_ne!(result_hash(&swapped), known);
    }

    #[test]
    fn the_digest_of_jobs_that_shared_tells_apart_who_and_how_long() {
        let mut jobs = records();
        (jobs[0].shared, jobs[0].slowed) = (Span(7), Span(3));
        let digest = result_hash(&jobs);
        assert_eq!(digest, "6208a1833fb43e0038b262455688c3c0");
        (jobs[0].shared, jobs[0].slowed) = (Span::ZERO, Span::ZERO);
        (jobs[1].shared, jobs[1].slowed) = (Span(7), Span(3));
        assert_ne!(result_hash(&jobs), digest);
    }

    #[test]
    fn codes_are_positions_in_the_list_of_outcomes() {
        for (position, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome_code(outcome), position as u64);
        }
    }
}
