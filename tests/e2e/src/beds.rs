//! Control planes on which tests take turns.

use crate::bed::Bed;
use deepshare_testbed::Assets;
use libtest_mimic::Trial;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Runtime;

/// As many control planes as tests run side by side: a scheduler sees every node, so a test has one
/// for itself, and leaves it to the next as it found it.
pub struct Beds {
    assets: Option<Assets>,
    idle: Mutex<Vec<Made>>,
}

/// A control plane, and the runtime on which its clients live. The fields are dropped in this order.
struct Made {
    bed: Bed,
    runtime: Runtime,
}

impl Beds {
    /// Control planes of these programs, which are started when they are needed; none without programs.
    pub fn of(assets: Option<Assets>) -> Beds {
        Beds { assets, idle: Mutex::new(Vec::new()) }
    }

    /// A test that has a control plane for itself; it is left out where there can be none. Its name is the
    /// path of its function or case, from the root of the program.
    pub fn test<F>(self: &Arc<Beds>, path: &str, test: F) -> Trial
    where
        F: AsyncFnOnce(&Bed) + Send + 'static,
    {
        let beds = Arc::clone(self);
        self.without_bed(path, move |assets| beds.lend(assets, test))
    }

    /// A test that only needs the programs.
    pub fn without_bed(&self, path: &str, test: impl FnOnce(&Assets) + Send + 'static) -> Trial {
        let name = path.split_once("::").map_or(path, |(_program, name)| name);
        let assets = self.assets.clone();
        let left_out = assets.is_none();
        let run = move || {
            test(&assets.ok_or("there are no programs of Kubernetes")?);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(left_out)
    }

    fn lend(&self, assets: &Assets, test: impl AsyncFnOnce(&Bed)) {
        // Not while the pool is locked: others need not wait until this one is up.
        let idle = self.idle().pop();
        let made = idle.unwrap_or_else(|| {
            let runtime = Runtime::new().expect("a runtime");
            Made { bed: runtime.block_on(Bed::start(assets)), runtime }
        });
        made.runtime.block_on(test(&made.bed));
        // Not reached by a test that fails: what it leaves goes with its control plane.
        self.idle().push(made);
    }

    /// Ends all control planes on which no test runs.
    pub fn end(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Made>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
