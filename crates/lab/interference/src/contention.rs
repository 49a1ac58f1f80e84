//! Two jobs on one device when nobody has measured them: what each keeps of its speed.
//!
//! A job advances at `1 / (1 + s)` of its solo speed, and
//!
//! ```text
//! s = (own compute)^own · (  k_compute   · (other's compute)^other
//!                          + k_bandwidth · (other's bandwidth)^other )
//! ```
//!
//! A job can only be stretched while it wants the device, which its compute share says; what its
//! partner does to it then depends on how much the partner computes and moves. So a partner that
//! asks for nothing is not felt, a heavier one is never felt less, and either is asked with the
//! same rule. The two mechanisms differ in their coefficients:
//!
//! - **MPS**: kernels of both run at once. Coefficients are fitted on published measurements (see
//!   `docs/results/contention.md`, written by `cargo xtask contention`).
//! - **Time slicing**: kernels of the two take turns, so memory bandwidth is not contended. While
//!   a job wants the device, its partner wants it too for the share of time that it computes, and
//!   then each advances at half speed: `k_compute`, `own` and `other` are 1, `k_bandwidth` is 0.
//!   Switching contexts is taken to be free, and the two not to fall into step. No measurement is
//!   behind this.

mod shipped;

use crate::workload::Profile;
use serde::{Deserialize, Serialize};

/// How two jobs share a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// NVIDIA's Multi-Process Service: kernels of both run at once.
    Mps,
    /// The driver's default: they take turns.
    TimeSlicing,
}

/// Coefficients of one mechanism. All are finite and none is negative; exponents are positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficients {
    /// Slowdown by a partner that computes all the time.
    pub compute: f64,
    /// Slowdown, on top, by a partner that uses memory all the time.
    pub bandwidth: f64,
    /// Exponent of a job's own compute share.
    pub own: f64,
    /// Exponent of its partner's shares.
    pub other: f64,
}

impl Coefficients {
    /// Slowdown beyond 1 of a job with the first (compute, bandwidth) beside one with the second.
    pub fn slowdown(&self, own: (f64, f64), other: (f64, f64)) -> f64 {
        let power = |share: f64, exponent| libm::pow(share.clamp(0.0, 1.0), exponent);
        let pressure =
            self.compute * power(other.0, self.other) + self.bandwidth * power(other.1, self.other);
        power(own.0, self.own) * pressure
    }

    /// What a job with the first (compute, bandwidth) keeps of its speed beside the second: above
    /// 0, at most 1.
    pub fn retention(&self, own: (f64, f64), other: (f64, f64)) -> f64 {
        1.0 / (1.0 + self.slowdown(own, other))
    }
}

/// The contention model: coefficients of both mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentionModel {
    /// For [`Mechanism::Mps`].
    pub mps: Coefficients,
    /// For [`Mechanism::TimeSlicing`].
    pub time_slicing: Coefficients,
}

impl Default for ContentionModel {
    /// The shipped coefficients.
    fn default() -> ContentionModel {
        ContentionModel {
            mps: shipped::MPS,
            time_slicing: Coefficients { compute: 1.0, bandwidth: 0.0, own: 1.0, other: 1.0 },
        }
    }
}

impl ContentionModel {
    /// The coefficients of a mechanism.
    pub fn of(&self, mechanism: Mechanism) -> &Coefficients {
        match mechanism {
            Mechanism::Mps => &self.mps,
            Mechanism::TimeSlicing => &self.time_slicing,
        }
    }

    /// What `own` keeps of its solo speed beside `other`: above 0, at most 1.
    pub fn retention(&self, own: &Profile, other: &Profile, mechanism: Mechanism) -> f64 {
        let demand = |profile: &Profile| (profile.compute, profile.bandwidth);
        self.of(mechanism).retention(demand(own), demand(other))
    }

    /// What both keep, the first one's share first.
    pub fn pair(&self, one: &Profile, other: &Profile, mechanism: Mechanism) -> (f64, f64) {
        (self.retention(one, other, mechanism), self.retention(other, one, mechanism))
    }
}
