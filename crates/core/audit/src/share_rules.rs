//! What a policy promises about sharing devices.

/// What DeepShare's admission of pairs promises, to be checked beside what holds of every pair:
/// exactly the same devices, consent, one trust domain, memory and host resources for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRules {
    /// Two jobs submitted as guaranteed may be a pair.
    pub both_guaranteed: bool,
    /// Least predicted retention of a guaranteed job, parts per million.
    pub floor_ppm: u32,
    /// Widest job that shares, GPUs; 0: any.
    pub most_gpus: u32,
    /// Predictions decide who shares; else everybody counts as keeping its whole speed.
    pub by_prediction: bool,
    /// A job may share some of its devices, with several partners.
    pub in_part: bool,
    /// A pair may be parted because one of the two has been slowed down as much as it accepts.
    pub by_limit: bool,
    /// How tolerance follows from pressure and assurance; `None`: any tolerance will do.
    pub tolerance: Option<ToleranceRules>,
}

/// ρ_tol (spec §5): `min(1, [ρ_min + P·(1 − ρ_min)] · (2 − min(Q̃)))` with
/// `P = (G_p / (G_f + ε))^γ`.
///
/// Worked out anew for every pair where quotas are elastic and the auditor checks assurance; else a
/// tolerance is only held to be within ρ_min and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToleranceRules {
    /// ρ_min, thousandths.
    pub rho_min_milli: u32,
    /// γ, thousandths.
    pub gamma_milli: u32,
    /// ε as a share of all GPUs, thousandths.
    pub eps_share_milli: u32,
    /// Whose demand is G_p.
    pub demand: PressureOf,
    /// Q̃ counts; else it is taken for 1.
    pub by_qad: bool,
    /// Guaranteed jobs beyond their quota are promoted as best-effort.
    pub spill: bool,
    /// Nodes may be set aside for a gang, which the stream does not say: they are not free then,
    /// and a tolerance is only bounded.
    pub guards: bool,
}

/// Whose demand makes pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressureOf {
    /// Jobs that a round promoted and has not placed.
    Promoted,
    /// Guaranteed ones among them.
    GuaranteedOnly,
    /// All that wait.
    AllPending,
}
