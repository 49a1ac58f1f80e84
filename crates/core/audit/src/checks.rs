//! What a command must satisfy, by topic. Each check reads the books and changes nothing; only when
//! all of a command's checks pass is it booked.

pub(crate) mod conservation;
mod eviction;
mod pairs;
mod placement;
mod quota;
mod reclaim;
mod refusal;
mod shrink;
mod start;
mod step_end;
mod tolerance;
