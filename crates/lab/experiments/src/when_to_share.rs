//! When sharing GPUs pays: SJF-BSBF beside SJF-FFS, SJF, SRTF and Tiresias, over offered load and over
//! what two jobs do to each other, on jobs of Microsoft Philly's busiest windows.

mod bars;
mod grid;
mod jobs;
mod lines;
mod tables;
mod truth;

use crate::ExperimentError;
use grid::Grid;
use jobs::Windows;
use std::path::Path;

/// Jobs of a run.
const JOBS: [usize; 2] = [240, 480];
/// Offered loads, thousandths of what the GPUs can do while jobs arrive.
const LOADS: [u32; 5] = [1_000, 1_500, 2_000, 3_000, 4_000];
/// The load at which Tiresias is to be beaten, for each number of jobs. Declared before any run: of
/// [`LOADS`], the nearest to what the days offer to as many GPUs.
const DECLARED: [u32; 2] = [2_000, 2_000];
/// Slowdowns of the sweep, the same for whoever shares, thousandths.
const SLOWDOWNS: [u32; 11] =
    [1_000, 1_100, 1_200, 1_300, 1_400, 1_500, 1_600, 1_700, 1_800, 2_000, 2_500];

/// The page's tables and judgements, as Markdown.
///
/// # Errors
/// See [`ExperimentError`].
pub fn page(data: &Path, seeds: u64) -> Result<String, ExperimentError> {
    let windows = Windows::read(data)?;
    let grid = Grid::run(&windows, seeds)?;
    let mut text = bars::judge(&grid);
    tables::setup(&mut text, &windows);
    tables::main(&mut text, &grid);
    tables::surface(&mut text, &grid);
    tables::orders(&mut text, &grid);
    tables::predicted(&mut text, &grid);
    tables::refusals(&mut text, &grid);
    Ok(text)
}
