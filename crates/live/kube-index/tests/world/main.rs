//! The index, the engine and the policy against a small cluster in memory: an API server's objects,
//! kubelets, controllers, and everything that goes wrong between them. No clock and no chance but the
//! seed's. Read `cluster.rs` first.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod api;
mod audit;
mod borrowing;
mod chance;
mod check;
mod cluster;
mod complaints;
mod gangs;
mod kubelet;
mod long_life;
mod nodes;
mod objects;
mod quotas;
mod random;
mod refusals;
mod restarts;
mod sharing;
mod storage;
mod volumes;
