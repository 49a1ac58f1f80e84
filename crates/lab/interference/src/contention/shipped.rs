//! Coefficients fitted by `cargo xtask contention --write`, which writes this file.

use super::Coefficients;

/// Fitted on measurements under MPS.
pub(super) const MPS: Coefficients =
    Coefficients { compute: 1.0, bandwidth: 0.5, own: 0.5, other: 1.0 };
