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
pub mod waiting;

use deepshare_e2e::Beds;
use libtest_mimic::Trial;
use std::sync::Arc;

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    let tests = [
        booking::tests(beds),
        gangs::tests(beds),
        health::tests(beds),
        #[cfg(target_os = "linux")]
        memory::tests(beds),
        preemption::tests(beds),
        quotas::tests(beds),
        resizing::tests(beds),
        restarts::tests(beds),
        waiting::tests(beds),
    ];
    tests.into_iter().flatten().collect()
}
