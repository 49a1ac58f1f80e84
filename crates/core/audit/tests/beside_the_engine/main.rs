//! The auditor beside the real engine: silent while the engine is right, and loud when the two were
//! told different stories.

mod comparison;
mod pair;
mod random_world;
mod restless;
mod short_stories;
