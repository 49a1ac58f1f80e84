//! Reads outages from a CSV file; its format is in `docs/formats/outages.md`.

use super::{Outage, OutageKind};
use crate::error::SimError;
use csv::StringRecord;
use deepshare_model::{NodeId, Span, Time};
use deepshare_trace::Cluster;
use std::path::Path;

/// Columns: the first three are required.
const COLUMNS: [&str; 5] = ["node", "from_s", "until_s", "kind", "cordon_s"];
const NODE: usize = 0;
const FROM: usize = 1;
const UNTIL: usize = 2;
const KIND: usize = 3;
const CORDON: usize = 4;

/// Reads a CSV of outages with the columns `node,from_s,until_s` and, if wanted, `kind` and
/// `cordon_s`: the node's name in the cluster, seconds on the trace's clock.
///
/// # Errors
/// If the file cannot be read, names an unknown node, or has times that are not a span.
pub fn read_outages(path: &Path, cluster: &Cluster) -> Result<Vec<Outage>, SimError> {
    let file = path.display().to_string();
    let whole = |line: u64, why: String, remedy: &str| fail(&file, line, None, why, remedy);
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|error| whole(0, error.to_string(), "give a readable CSV file"))?;
    let header = reader.headers();
    let header = header.map_err(|e| whole(1, e.to_string(), "write it as UTF-8"))?.clone();
    let places = places(&header).ok_or_else(|| {
        let found: Vec<&str> = header.iter().collect();
        let why = format!("the columns are {}", found.join(","));
        whole(1, why, "use node,from_s,until_s and, if wanted, kind and cordon_s")
    })?;
    let mut outages: Vec<(Outage, u64)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            whole(line, error.to_string(), "give as many fields of UTF-8 text as the header has")
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let row = Row { file: &file, line, record: &record, places };
        outages.push((row.outage(cluster)?, line));
    }
    outages.sort_by_key(|(outage, line)| (outage.node, outage.begin(), *line));
    for pair in outages.windows(2) {
        let ((before, first), (after, second)) = (pair[0], pair[1]);
        if before.node == after.node && after.begin() <= before.until {
            let name = &cluster.nodes[before.node.index()].name;
            let why = format!("overlaps or touches the outage of {name:?} on line {first}");
            return Err(whole(second, why, "merge the two into one, or move them apart"));
        }
    }
    Ok(outages.into_iter().map(|(outage, _)| outage).collect())
}

/// Where each of [`COLUMNS`] is in this file; `None` if a required one is missing, or there are
/// others or one twice.
fn places(header: &StringRecord) -> Option<[Option<usize>; COLUMNS.len()]> {
    let found = COLUMNS.map(|column| header.iter().position(|name| name == column));
    let all = found.iter().flatten().count() == header.len();
    (all && found[..KIND].iter().all(Option::is_some)).then_some(found)
}

struct Row<'a> {
    file: &'a str,
    line: u64,
    record: &'a StringRecord,
    places: [Option<usize>; COLUMNS.len()],
}

impl Row<'_> {
    fn outage(&self, cluster: &Cluster) -> Result<Outage, SimError> {
        let name = self.text(NODE);
        let node = cluster.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
            let why = format!("no node is called {name:?}");
            self.wrong(NODE, why, "use a name of the cluster")
        })?;
        let (from, until) = (self.time(FROM)?, self.time(UNTIL)?);
        if until <= from {
            let why = format!("{until} is not after {from}");
            return Err(self.wrong(UNTIL, why, "end the outage after it begins"));
        }
        let kind = self.kind(from)?;
        Ok(Outage { node: NodeId::from_index(node), from, until, kind })
    }

    fn kind(&self, from: Time) -> Result<OutageKind, SimError> {
        let cordon = match self.text(CORDON) {
            "" => None,
            _ => Some(self.time(CORDON)?),
        };
        match self.text(KIND) {
            "maintenance" => {
                let cordon = cordon.unwrap_or(from);
                if cordon > from {
                    let why = format!("{cordon} is after the maintenance begins at {from}");
                    return Err(self.wrong(
                        CORDON,
                        why,
                        "close the node before, or leave it empty",
                    ));
                }
                Ok(OutageKind::Maintenance { cordon })
            }
            "" | "failure" | "drain" if cordon.is_some() => {
                let why = "only a maintenance is announced".to_owned();
                Err(self.wrong(CORDON, why, "leave it empty, or set the kind to maintenance"))
            }
            "" | "failure" => Ok(OutageKind::Failure),
            "drain" => Ok(OutageKind::Drain),
            other => {
                let why = format!("{other:?} is not a kind of outage");
                Err(self.wrong(KIND, why, "use failure, drain or maintenance"))
            }
        }
    }

    /// The field of a column; empty if the file does not have it.
    fn text(&self, column: usize) -> &str {
        self.places[column].and_then(|place| self.record.get(place)).unwrap_or("")
    }

    fn time(&self, column: usize) -> Result<Time, SimError> {
        let text = self.text(column);
        let span = text.parse().ok().and_then(Span::from_secs_f64);
        span.map(|span| Time(span.0)).ok_or_else(|| {
            let why = format!("{text:?} is not a time in seconds");
            self.wrong(column, why, "use a number of seconds, 0 or more")
        })
    }

    fn wrong(&self, column: usize, why: String, remedy: &str) -> SimError {
        let place = self.places[column].map(|place| (place, COLUMNS[column]));
        fail(self.file, self.line, place, why, remedy)
    }
}

/// The error at a line, 0 for the whole file, and a column with its name.
fn fail(
    file: &str,
    line: u64,
    column: Option<(usize, &str)>,
    why: String,
    remedy: &str,
) -> SimError {
    SimError::Outages {
        file: file.to_owned(),
        place: match (line, column) {
            (0, _) => String::new(),
            (line, None) => format!(": line {line}"),
            (line, Some((at, name))) => format!(": line {line}, column {} ({name})", at + 1),
        },
        why,
        remedy: remedy.to_owned(),
    }
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
        assert_eq!(
            said(
                "kind,node,from_s,until_s,cordon_s\n,NODE,0,60,\ndrain,NODE,90,95.5,\n\
                  maintenance,NODE,200,300,150\nmaintenance,NODE,400,500,\nfailure,NODE,600,700,\n"
            ),
            "5 outages"
        );
        let header = "node,from_s,until_s,kind,cordon_s\n";
        let odd = said(&format!("{header}NODE,0,60,closed,\n"));
        let expected =
            ": line 2, column 4 (kind): \"closed\" is not a kind of outage; use failure,";
        assert!(odd.starts_with(expected), "{odd}");
        let late = said(&format!("{header}NODE,10,60,maintenance,11\n"));
        let expected = ": line 2, column 5 (cordon_s): 11s is after the maintenance begins at 10s";
        assert!(late.starts_with(expected), "{late}");
        let unannounced = said(&format!("{header}NODE,10,60,drain,5\n"));
        let expected = ": line 2, column 5 (cordon_s): only a maintenance is announced";
        assert!(unannounced.starts_with(expected), "{unannounced}");
        let early = said(&format!("{header}NODE,0,60,,\nNODE,100,200,maintenance,50\n"));
        assert!(early.starts_with(": line 3: overlaps or touches the outage"), "{early}");
        assert!(said("node,from\n").contains(": line 1: the columns are node,from; use"));
    }
}
