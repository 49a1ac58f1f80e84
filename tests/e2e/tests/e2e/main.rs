//! DeepShare on a real API server. One program for all of it: tests mostly wait, so more of them run
//! side by side than the machine has cores.

/// Tests of a module that are functions of these names.
macro_rules! tests {
    ($beds:expr, $($test:ident),+ $(,)?) => {
        vec![$($beds.test(concat!(module_path!(), "::", stringify!($test)), $test)),+]
    };
}

mod coexistence;
mod complaints;
mod failover;
mod getting_started;
mod random;
mod scenarios;
mod scene;
mod volumes;

use deepshare_e2e::Beds;
use deepshare_testbed::assets_or_skip;
use libtest_mimic::Arguments;
use std::process::ExitCode;
use std::sync::Arc;

/// The scheduler, built as it is shipped.
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler-under-test");
/// Unless `--test-threads` says otherwise. With four, on two cores beside a build, heartbeats were late.
const SIDE_BY_SIDE: usize = 3;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    let assets = if arguments.list { Ok(None) } else { assets_or_skip() };
    let assets = match assets {
        Ok(assets) => assets,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let beds = Arc::new(Beds::of(assets));
    // Those that take longest come first.
    let tests = [
        random::tests(&beds),
        getting_started::tests(&beds),
        failover::tests(&beds),
        coexistence::tests(&beds),
        scenarios::tests(&beds),
        volumes::tests(&beds),
        complaints::tests(&beds),
    ];
    let done = libtest_mimic::run(&arguments, tests.into_iter().flatten().collect());
    beds.end();
    done.exit_code()
}
