//! `deepshare generate`.

use crate::args::GenerateArgs;
use crate::failure::Failure;
use crate::history;
use crate::inputs::generated;
use crate::interrupt::{Interrupt, Stoppable};
use crate::settings::{GenerateSettings, Kind, PresetWord, Raw, problems_of_generated};
use crate::terminal;
use deepshare_trace::{cluster_toml, write_trace};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Runs the command.
///
/// # Errors
/// If a file is there already or cannot be written.
pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let files = [Some(&args.out), args.cluster_out.as_ref()];
    for path in files.into_iter().flatten() {
        refuse(path, args.force)?;
    }
    let interrupt = Interrupt::listen();
    let (trace, cluster) = match &args.history {
        Some(log) => history::read(log, None)?,
        None => generated(&options, args.seed),
    };
    if args.history.is_some() {
        terminal::say(&trace.report.to_string());
    }
    interrupt.gentle();
    write(&args.out, args.force, &interrupt, |out| write_trace(&trace, out))?;
    terminal::say(&format!("wrote {} jobs to {}", trace.jobs.len(), args.out.display()));
    if let Some(path) = &args.cluster_out {
        let (preset, seed) = (options.preset.name(), args.seed);
        let command = match &args.history {
            Some(log) => format!("deepshare generate --history {}", log.display()),
            None => format!("deepshare generate --preset {preset} --seed {seed}"),
        };
        let text = format!("# The cluster of `{command}`.\n{}", cluster_toml(&cluster));
        write(path, args.force, &interrupt, |out| out.write_all(text.as_bytes()))?;
        terminal::say(&format!("wrote {} nodes to {}", cluster.nodes.len(), path.display()));
    }
    Ok(())
}

fn options(args: &GenerateArgs) -> Result<GenerateSettings, Failure> {
    let preset = PresetWord::read(&Raw::text(&args.preset)).ok_or_else(|| {
        Failure::Usage(format!("--preset {}: use {}", args.preset, PresetWord::in_words()))
    })?;
    let options = GenerateSettings { preset, jobs: args.jobs, days: args.days };
    match problems_of_generated(&options).first() {
        Some((name, what)) => {
            Err(Failure::Usage(format!("--{}: {what}", name.trim_start_matches("generate."))))
        }
        None => Ok(options),
    }
}

fn refuse(path: &Path, force: bool) -> Result<(), Failure> {
    let packed = path.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
    if packed {
        let what = format!("{}: files are written plain; leave out .gz or .zst", path.display());
        return Err(Failure::Usage(what));
    }
    if path.exists() && !force {
        let what = format!("{} is there already; replace it with --force", path.display());
        return Err(Failure::Usage(what));
    }
    Ok(())
}

/// Writes a file that appears whole or not at all.
fn write(
    path: &Path,
    force: bool,
    interrupt: &Interrupt,
    content: impl FnOnce(&mut BufWriter<Stoppable<'_, &mut NamedTempFile>>) -> io::Result<()>,
) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.prefix(".deepshare.").suffix(".partial").tempfile_in(folder)?;
        let mut out = BufWriter::new(interrupt.stoppable(&mut file));
        content(&mut out)?;
        out.flush()?;
        drop(out);
        let kept = if force { file.persist(path) } else { file.persist_noclobber(path) };
        kept.map(drop).map_err(|error| error.error)
    });
    written.map_err(interrupt.failure(path))
}
