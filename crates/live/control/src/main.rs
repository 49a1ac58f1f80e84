//! `deepshare-scheduler`: schedules the pods of a Kubernetes cluster that name it.

use std::process::ExitCode;

fn main() -> ExitCode {
    deepshare_control::main()
}
