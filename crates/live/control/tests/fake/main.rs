//! What happens when the API server misbehaves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod server;
mod volumes;
mod watches;
mod writes;
