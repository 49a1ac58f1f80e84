//! What a limit of slowdown for each job is worth: TensorShare, its rivals and the two ends, over
//! tables of pairs and limits.

mod bars;
mod cells;
mod queue;
mod rivals;
mod show;
mod worlds;

use crate::ExperimentError;
use cells::{Cell, cells};
use queue::Lengths;
use std::path::Path;
use worlds::World;

/// A table of pairs and its cells, by limit.
struct Table {
    world: World,
    cells: Vec<Cell>,
}

/// The page's tables and judgements, as Markdown.
///
/// # Errors
/// See [`ExperimentError`].
pub fn page(data: &Path, seeds: u64) -> Result<String, ExperimentError> {
    let lengths = Lengths::philly(data)?;
    let mut tables = Vec::new();
    for world in World::all(data)? {
        let cells = cells(&world, &lengths, seeds)?;
        tables.push(Table { world, cells });
    }
    let mut text = bars::judge(&tables);
    show::set_up(&mut text, &lengths, &tables, tables[0].world.own_against_gavel(data)?);
    for table in &tables {
        show::table(&mut text, table);
    }
    show::reactive_by_length(&mut text, &tables);
    show::refusals(&mut text, &tables);
    Ok(text)
}
