//! Each rule, broken by hand and caught; and lawful sequences, let pass.

mod conservation;
mod elastic;
mod evictions;
mod hand;
mod placements;
mod quotas;
mod reclaim;
mod refusals;
mod sharing;
mod sharing_engine;
mod sharing_in_part;
mod stale_events;
mod starts;
mod stream;
