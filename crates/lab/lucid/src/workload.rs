//! What a job computes, as far as the artifact's tables tell jobs apart.

use std::fmt;

/// Models whose pairs were not measured; the artifact lets such a pair run as fast as alone.
const UNMEASURED: [&str; 4] = ["NeuMF", "ResNet50", "BERT", "Transformer"];

/// A configuration of a model: the key of every table of the artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// The model.
    pub model: String,
    /// What it is trained on.
    pub dataset: String,
    /// Samples in a batch.
    pub batch: u64,
    /// 1 with mixed precision, else 0.
    pub amp: u64,
}

impl Workload {
    /// True if the artifact takes any pair with it for free of interference.
    pub fn is_unmeasured(&self) -> bool {
        UNMEASURED.contains(&self.model.as_str())
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = if self.amp == 1 { ", mixed precision" } else { "" };
        write!(f, "{} on {}, batch {}{precision}", self.model, self.dataset, self.batch)
    }
}
