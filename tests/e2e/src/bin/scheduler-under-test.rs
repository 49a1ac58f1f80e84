//! The scheduler as tests run it: the same `main` as the one that is shipped, built with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    deepshare_control::main()
}
