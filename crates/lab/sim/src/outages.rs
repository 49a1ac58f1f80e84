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
    let want = ["node", "from_s", "until_s"];
    let fail = |line: u64, column: Option<usize>, why: String, remedy: &str| SimError::Outages {
        file: path.display().to_string(),
        place: match (line, column) {
            (0, _) => String::new(),
            (line, None) => format!(": line {line}"),
            (line, Some(at)) => format!(": line {line}, column {} ({})", at + 1, want[at]),
        },
        why,
        remedy: remedy.to_owned(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|error| fail(0, None, error.to_string(), "give a readable CSV file"))?;
    let header = reader.headers();
    let header = header.map_err(|e| fail(1, None, e.to_string(), "write it as UTF-8"))?;
    if header.iter().ne(want) {
        let found: Vec<&str> = header.iter().collect();
        let why = format!("the columns are {}", found.join(","));
        return Err(fail(1, None, why, "use node,from_s,until_s"));
    }
    let mut outages: Vec<(Outage, u64)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            fail(line, None, error.to_string(), "give three columns of UTF-8 text")
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let name = &record[0];
        let node = cluster.nodes.iter().position(|node| node.name == *name).ok_or_else(|| {
            let why = format!("no node is called {name:?}");
            fail(line, Some(0), why, "use a name of the cluster")
        })?;
        let seconds = |column: usize| {
            let text = &record[column];
            let span = text.parse().ok().and_then(Span::from_secs_f64);
            span.map(|span| Time(span.0)).ok_or_else(|| {
                let why = format!("{text:?} is not a time in seconds");
                fail(line, Some(column), why, "use a number of seconds, 0 or more")
            })
        };
        let (from, until) = (seconds(1)?, seconds(2)?);
        if until <= from {
            let why = format!("{until} is not after {from}");
            return Err(fail(line, Some(2), why, "end the outage after it begins"));
        }
        outages.push((Outage { node: NodeId::from_index(node), from, until }, line));
    }
    outages.sort_by_key(|(outage, line)| (outage.node, outage.from, *line));
    for pair in outages.windows(2) {
        let ((before, first), (after, second)) = (pair[0], pair[1]);
        if before.node == after.node && after.from <= before.until {
            let name = &cluster.nodes[before.node.index()].name;
            let why = format!("overlaps or touches the outage of {name:?} on line {first}");
            return Err(fail(second, None, why, "merge the two into one"));
        }
    }
    Ok(outages.into_iter().map(|(outage, _)| outage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let cluster = Cluster::partitions(&[("red".to_owned(), 2)], 8);
        let name = format!("deepshare-outages-{}-{}.csv", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text.replace("NODE", &cluster.nodes[0].name)).unwrap();
        let read = read_outages(&path, &cluster);
        std::fs::remove_file(&path).unwrap();
        match read {
            Ok(outages) => format!("{} outages", outages.len()),
            Err(error) => error.to_string().split_once(".csv").unwrap().1.to_owned(),
        }
    }

    #[test]
    fn a_file_of_outages_says_where_it_is_wrong_and_what_to_do() {
        assert_eq!(said("node,from_s,until_s\nNODE,0,60\nNODE,90,95.5\n"), "2 outages");
        let late = said("node,from_s,until_s\nNODE,60,0\n");
        assert!(late.starts_with(": line 2, column 3 (until_s): 0s is not after 60s; "), "{late}");
        let odd = said("node,from_s,until_s\nNODE,nan,1\n");
        assert!(odd.starts_with(": line 2, column 2 (from_s): \"nan\" is not a time"), "{odd}");
        let unknown = said("node,from_s,until_s\nghost,0,1\n");
        assert!(unknown.starts_with(": line 2, column 1 (node): no node is called"), "{unknown}");
        let twice = said("node,from_s,until_s\nNODE,0,60\nNODE,30,90\n");
        assert!(twice.starts_with(": line 3: overlaps or touches the outage of"), "{twice}");
        assert!(said("node,from\n").contains(": line 1: the columns are node,from; use"));
    }
}
