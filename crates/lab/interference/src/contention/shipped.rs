//! Coefficients fitted by `cargo xtask contention --write`, which writes this file.

use super::Coefficients;

/// Fitted on measurements under MPS.
pub(super) const MPS: Coefficients =
    Coefficients { compute: 0.03, bandwidth: 1.655, own: 1.0, other: 0.834 };
