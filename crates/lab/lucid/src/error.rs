//! Why there is no result.

use deepshare_trace::TraceError;

/// Why a run was not begun or not finished.
#[derive(Debug, thiserror::Error)]
pub enum LucidError {
    /// A file cannot be used, or does not fit the trace.
    #[error("{0}")]
    Input(#[from] TraceError),
    /// The cluster is not one that the artifact can have.
    #[error("the Lucid artifact knows only virtual clusters of nodes with 8 GPUs, and {0}")]
    Cluster(String),
    /// These jobs can never run.
    #[error(
        "{count} jobs can never run on this cluster, first {first} (line {line}): it asks for \
         {gpus} GPUs, and {vc} has {nodes} nodes of 8{lent}; enlarge the cluster, or leave such \
         jobs out with `--set oversize=skip`"
    )]
    Oversize {
        /// How many.
        count: usize,
        /// The first one's name in the trace.
        first: String,
        /// Its line in the trace.
        line: u64,
        /// Its GPUs.
        gpus: u32,
        /// Its virtual cluster.
        vc: String,
        /// Nodes of that.
        nodes: u32,
        /// Says where a node went, if one did.
        lent: &'static str,
    },
    /// Two jobs would share GPUs, and their workloads were not measured together.
    #[error(
        "{file}: there is no row for {new} beside {old}, which jobs {new_job} and {old_job} would \
         share a GPU as; add one, or use `--set lucid.sharing=off`"
    )]
    NoPair {
        /// The file of pairs.
        file: String,
        /// Name of the job that would join.
        new_job: String,
        /// What it computes.
        new: String,
        /// Name of the job that it would join.
        old_job: String,
        /// What that computes.
        old: String,
    },
    /// Jobs wait and nothing will ever happen.
    #[error("stuck at {at_s} s: nothing will ever free the way of job {job} in {vc}")]
    Stuck {
        /// When, seconds on the trace's clock.
        at_s: u64,
        /// A job that waits.
        job: String,
        /// Its virtual cluster.
        vc: String,
    },
}
