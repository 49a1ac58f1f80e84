//! What users of other schedulers complain about, tried with this one on a real API server. Each
//! test is named after what its user would see, and says whose complaint it is. The whole list,
//! with those that other tests show, is docs/kubernetes/complaints.md.

mod booking;
mod gangs;
mod health;
#[cfg(target_os = "linux")]
mod memory;
mod preemption;
mod quotas;
mod resizing;
mod restarts;
mod scene;
mod waiting;
