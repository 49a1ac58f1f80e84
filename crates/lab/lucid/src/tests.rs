//! Rules of the artifact one by one, on clusters small enough to work out by hand; the same with
//! every second looked at; and damaged files.

mod damage;
mod pairs;
mod profiling;
mod record;
mod seconds;
mod world;
