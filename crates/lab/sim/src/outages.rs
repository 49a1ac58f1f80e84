//! When nodes are away: from a file, or drawn from a seeded model.

use crate::error::SimError;
use deepshare_model::{NodeId, Span, Time};
use deepshare_trace::Cluster;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::path::Path;

/// One node away for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Which node.
    pub node: NodeId,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// Exponentially distributed times between failures and to repair, independently for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageModel {
    /// Mean time a node stays up.
    pub mean_up: Span,
    /// Mean time it then is away.
    pub mean_down: Span,
}

/// Where outages come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outages {
    /// Nodes never fail.
    #[default]
    None,
    /// Just these.
    Listed(Vec<Outage>),
    /// Drawn with the run's seed.
    Drawn(OutageModel),
}

/// An exponentially distributed span, at least a microsecond.
pub(crate) fn exponential(mean: Span, rng: &mut Pcg64Mcg) -> Span {
    let uniform: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    let span = Span::from_secs_f64(-libm::log(uniform) * mean.as_secs_f64());
    span.unwrap_or(Span::MAX).max(Span(1))
}

/// Reads a CSV of outages with the columns `node,from_s,until_s`: the node's name in the cluster,
/// seconds on the trace's clock.
///
/// # Errors
/// If the file cannot be read, names an unknown node, or has times that are not a span.
pub fn read_outages(path: &Path, cluster: &Cluster) -> Result<Vec<Outage>, SimError> {
    let file = path.display().to_string();
    let fail = |line: u64, why: String, remedy: &str| SimError::Outages {
        file: file.clone(),
        line,
        why,
        remedy: remedy.to_owned(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|error| fail(0, error.to_string(), "give a readable CSV file"))?;
    let want = ["node", "from_s", "until_s"];
    let header = reader.headers().map_err(|e| fail(1, e.to_string(), "write it as UTF-8"))?.clone();
    if header.iter().ne(want) {
        return Err(fail(1, format!("columns are {header:?}"), "use node,from_s,until_s"));
    }
    let mut outages = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            fail(line, error.to_string(), "give three columns of UTF-8 text")
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let name = &record[0];
        let node = cluster.nodes.iter().position(|node| node.name == *name).ok_or_else(|| {
            fail(
                line,
                format!("column node: no node is called {name:?}"),
                "use a name of the cluster",
            )
        })?;
        let seconds = |column: usize| {
            let text = &record[column];
            let span = text.parse().ok().and_then(Span::from_secs_f64);
            span.map(|span| Time(span.0)).ok_or_else(|| {
                let why = format!("column {}: {text:?} is not a time in seconds", want[column]);
                fail(line, why, "use a number of seconds, 0 or more")
            })
        };
        let (from, until) = (seconds(1)?, seconds(2)?);
        if until <= from {
            let why = format!("column until_s: {until} is not after {from}");
            return Err(fail(line, why, "end the outage after it begins"));
        }
        outages.push(Outage { node: NodeId::from_index(node), from, until });
    }
    outages.sort_by_key(|outage| (outage.node, outage.from));
    for pair in outages.windows(2) {
        if pair[0].node == pair[1].node && pair[1].from <= pair[0].until {
            let name = &cluster.nodes[pair[0].node.index()].name;
            let why = format!("two outages of {name:?} overlap or touch");
            return Err(fail(0, why, "merge them into one"));
        }
    }
    Ok(outages)
}
