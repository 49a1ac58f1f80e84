//! Whether two jobs should share devices, and which pairs to make: pure functions for policies that
//! pair.
//!
//! * `theorem`: does sharing now beat waiting for the resident's end (SJF-BSBF);
//! * `limits`: do both stay within the slowdown they accept, and what is saved (TensorShare);
//! * `matching`: the pairs that are worth most together.

mod limits;
mod matching;
mod theorem;

pub use limits::{Past, SlowdownCheck, extra_s, gain, is_within, overlap_s, ratio, span_s};
pub use matching::{EXACT_UP_TO, Edge, max_weight_matching};
pub use theorem::{
    Member, Split, best_split, sharing_pays, t_apart, t_together, t_together_split,
    t_together_until_alone,
};
