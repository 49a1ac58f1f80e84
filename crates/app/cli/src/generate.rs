//! `deepshare generate`.

use crate::args::GenerateArgs;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Stoppable};
use crate::terminal;
use deepshare_trace::generate::{GeneratorOptions, venus_like};
use deepshare_trace::{Cluster, write_trace};
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
    let (trace, cluster) = venus_like(args.seed, &options);
    interrupt.gentle();
    write(&args.out, args.force, &interrupt, |out| write_trace(&trace, out))?;
    terminal::say(&format!("wrote {} jobs to {}", trace.jobs.len(), args.out.display()));
    if let Some(path) = &args.cluster_out {
        let text = cluster_toml(&cluster, args.seed);
        write(path, args.force, &interrupt, |out| out.write_all(text.as_bytes()))?;
        terminal::say(&format!("wrote {} nodes to {}", cluster.nodes.len(), path.display()));
    }
    Ok(())
}

fn options(args: &GenerateArgs) -> Result<GeneratorOptions, Failure> {
    let usage = |what: &str| Failure::Usage(what.to_owned());
    let days = u32::try_from(args.days).ok().filter(|days| (1..=36_500).contains(days));
    let days = days.ok_or_else(|| usage("--days: use 1 to 36500"))?;
    let Some(jobs) = args.jobs else { return Ok(GeneratorOptions::days(days)) };
    let jobs = u32::try_from(jobs).ok().filter(|jobs| (1..=50_000_000).contains(jobs));
    Ok(GeneratorOptions { jobs: jobs.ok_or_else(|| usage("--jobs: use 1 to 50000000"))?, days })
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

/// A cluster of partitions, one kind of nodes a tenant, as our TOML.
fn cluster_toml(cluster: &Cluster, seed: u64) -> String {
    let mut text = format!("# The cluster of `deepshare generate --seed {seed}`.\n");
    for (index, tenant) in cluster.tenants.iter().enumerate() {
        let own = |node: &&deepshare_trace::NodeEntry| {
            node.tenant.is_some_and(|tenant| tenant.index() == index)
        };
        let count = cluster.nodes.iter().filter(own).count();
        let Some(first) = cluster.nodes.iter().find(own) else { continue };
        let (name, gpus) = (&tenant.name, first.gpus);
        text += &format!(
            "\n[[node]]\nname = \"{name}\"\ncount = {count}\ngpus = {gpus}\ntenant = \"{name}\"\n"
        );
    }
    for tenant in &cluster.tenants {
        let (name, quota) = (&tenant.name, tenant.quota.total());
        text += &format!("\n[[tenant]]\nname = \"{name}\"\nquota = {quota}\n");
    }
    text
}
