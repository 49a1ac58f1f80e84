//! A scheduler is lost in the middle of a write, by every way to lose one, and another goes on from
//! what the API server knows. A gate between them stops the very write, on its way there or on its way
//! back; what is checked afterwards is what the API server's objects showed all along.

use crate::SCHEDULER;
use crate::scene::nodes;
use deepshare_e2e::{Bed, Beds, Gate, JobDraft, Moment, PodDraft, Scheduler, Stage, Write};
use deepshare_testbed::NodeSpec;
use libtest_mimic::Trial;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A part of a gang that another scheduler bound is given up so long after the next one knows the
/// cluster (docs/kubernetes/operations.md).
const GANG_SHOWS: Duration = Duration::from_secs(5);
/// What a busy machine may take on top.
const SLACK: Duration = Duration::from_secs(10);
/// Exit status of a scheduler that has lost its Lease.
const LOST: Option<i32> = Some(3);

/// How a scheduler is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// `kill -9`; another one stands by.
    Killed,
    /// `kill -9`, and the same one is started again.
    Restarted,
    /// Nothing gets through to the API server, or back, any more.
    CutOff,
    /// It stands still until another one has taken over, and then goes on.
    Stopped,
    /// Somebody else takes the Lease.
    Deposed,
}

impl Fault {
    /// One Binding after the other, so that a part of a gang is just that; and where nobody but time takes
    /// the Lease away, one that expires soon.
    fn settings(self) -> &'static str {
        match self {
            Fault::CutOff | Fault::Stopped => {
                "in_flight.bind = 1\n\
                 lease = { duration_s = 8, renew_deadline_s = 6, retry_s = 0.3 }\n"
            }
            Fault::Killed | Fault::Restarted | Fault::Deposed => {
                "in_flight.bind = 1\nlease.retry_s = 0.3\n"
            }
        }
    }
}

/// Which write is stopped, and what happens then.
#[derive(Clone, Copy, Debug)]
struct Hit(Write, usize, Moment, Fault);

/// A leader that is going to be lost, and whoever goes on.
struct Play<'a> {
    bed: &'a Bed,
    hit: Hit,
    gate: Gate,
    leader: Scheduler,
    heir: Option<Scheduler>,
}

impl<'a> Play<'a> {
    async fn begin(bed: &'a Bed, hit: Hit) -> Play<'a> {
        let gate = Gate::open(bed).await;
        let settings = hit.3.settings();
        let leader = Scheduler::start_behind(&gate, SCHEDULER, settings);
        leader.until_ready().await;
        let stands_by = hit.3 != Fault::Restarted;
        let heir = stands_by.then(|| Scheduler::start(bed, SCHEDULER, settings));
        Play { bed, hit, gate, leader, heir }
    }

    /// From here on the write is waited for.
    fn set_trap(&self) {
        let Hit(write, nth, moment, _) = self.hit;
        self.gate.trap(write, nth, moment);
    }

    /// Waits for the write, loses the leader, and waits until another one knows the cluster; how long
    /// nobody did.
    async fn fail_over(&mut self) -> Duration {
        self.gate.sprung().await;
        let begun = Instant::now();
        match self.hit.3 {
            Fault::Killed => {
                self.leader.kill();
                self.bed.hand_lease_to("").await;
            }
            Fault::Restarted => {
                self.leader.kill();
                self.bed.hand_lease_to("").await;
                self.leader.start_again();
            }
            Fault::CutOff => {
                self.gate.shut();
                assert_eq!(self.leader.ended().code(), LOST, "{}", self.leader.said());
            }
            Fault::Stopped => self.leader.pause(),
            Fault::Deposed => {
                self.bed.hand_lease_to("somebody").await;
                assert_eq!(self.leader.ended().code(), LOST, "{}", self.leader.said());
                self.bed.hand_lease_to("").await;
            }
        }
        self.heir.as_ref().unwrap_or(&self.leader).until_ready().await;
        begun.elapsed()
    }

    /// Whoever stood still goes on, finds out that it does not lead any more, and has written nothing.
    fn wake_up(&mut self) {
        if self.hit.3 == Fault::Stopped {
            let before = self.gate.writes();
            self.gate.release();
            self.leader.resume();
            assert_eq!(self.leader.ended().code(), LOST, "{}", self.leader.said());
            assert_eq!(self.gate.writes(), before, "it wrote although it did not lead");
        }
    }

    /// Stops whoever still runs, while the gate stands open: the Lease has to be given up through it.
    fn end(self) -> Vec<Scheduler> {
        let mut all: Vec<_> = [Some(self.leader), self.heir].into_iter().flatten().collect();
        all.iter_mut().for_each(Scheduler::stop);
        all
    }
}

fn job(pod: PodDraft, pods: u32) -> JobDraft {
    JobDraft { pod, pods }
}

/// Six pods are about to be bound, one after the other: each is bound once.
async fn bindings(bed: &Bed, name: &str, hit: Hit) {
    let mut stage = Stage::set(bed, name, nodes(2, 4)).await;
    stage.tenant("red", 6, &json!({})).await;
    let mut play = Play::begin(bed, hit).await;
    play.set_trap();
    let names: Vec<String> = (0..6).map(|at| format!("j{at}")).collect();
    for name in &names {
        stage.submit("red", &job(PodDraft::new(name).gpus(1), 1)).await;
    }
    play.fail_over().await;
    for name in &names {
        stage.running("red", name, 1).await;
    }
    play.wake_up();
    let seen = stage.strike(play.end()).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    assert_eq!(seen.pods.len(), 6, "{name}: no pod was made anew: {:?}", seen.pods);
}

/// A guaranteed job's victim is slow to stop: it gets that victim's devices, and nobody else goes.
async fn eviction(bed: &Bed, name: &str, hit: Hit) {
    let mut stage = Stage::set(bed, name, nodes(2, 4)).await;
    stage.tenant("red", 4, &json!({})).await;
    stage.tenant("blue", 4, &json!({})).await;
    let mut play = Play::begin(bed, hit).await;
    for (name, run) in [("short", "300"), ("long", "900")] {
        let lent = PodDraft::new(name).gpus(4).deepshare("class", "best-effort");
        let lent = lent.deepshare("run-time", run).behaves("stop-seconds", "3");
        stage.submit("blue", &job(lent, 1)).await;
        stage.running("blue", name, 1).await;
    }
    play.set_trap();
    stage.submit("red", &job(PodDraft::new("own").gpus(4).deepshare("run-time", "900"), 1)).await;
    play.fail_over().await;
    stage.running("red", "own", 1).await;
    play.wake_up();
    let seen = stage.strike(play.end()).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    let evicted = seen.pods.values().filter(|pod| pod.disrupted.is_some() && pod.deleting);
    assert_eq!(evicted.count(), 1, "{name}: one victim is enough: {:?}", seen.pods);
}

/// One pod of a gang has been evicted and the other not: the other goes, too.
async fn eviction_of_a_gang(bed: &Bed, name: &str, hit: Hit) {
    let mut stage = Stage::set(bed, name, nodes(1, 4)).await;
    stage.tenant("red", 4, &json!({})).await;
    stage.tenant("blue", 4, &json!({})).await;
    let mut play = Play::begin(bed, hit).await;
    let lent = PodDraft::new("lent").gpus(2).deepshare("class", "best-effort");
    let lent = lent.deepshare("gang-size", "2").behaves("stop-seconds", "3");
    stage.submit("blue", &job(lent, 2)).await;
    stage.running("blue", "lent", 2).await;
    play.set_trap();
    stage.submit("red", &job(PodDraft::new("own").gpus(4), 1)).await;
    let took = play.fail_over().await;
    stage.running("red", "own", 1).await;
    play.wake_up();
    let seen = stage.strike(play.end()).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    let (in_part, bound) = (seen.longest_in_part(), took + SLACK);
    assert!(in_part < bound, "{name}: half a gang ran for {in_part:?}, {took:?} without a leader");
}

/// Some pods of a gang are bound and others not: it starts again as a whole, and soon.
async fn no_half_gang_stays(bed: &Bed, name: &str, hit: Hit) {
    let mut stage = Stage::set(bed, name, nodes(2, 4)).await;
    stage.tenant("red", 8, &json!({})).await;
    let mut play = Play::begin(bed, hit).await;
    play.set_trap();
    let pod = PodDraft::new("g").gpus(2).deepshare("gang-size", "4");
    stage.submit("red", &job(pod, 4)).await;
    let took = play.fail_over().await;
    let Hit(_, nth, moment, _) = hit;
    let bound = if moment == Moment::After { nth } else { nth - 1 };
    if bound < 4 {
        deepshare_e2e::wait("no part of the gang is left", async || {
            let seen = stage.so_far();
            let parts = seen.pods.values().filter(|pod| pod.disrupted.is_some() && pod.gone);
            (parts.count() == bound).then_some(())
        })
        .await;
    }
    stage.running("red", "g", 4).await;
    play.wake_up();
    let seen = stage.strike(play.end()).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    let (in_part, limit) = (seen.longest_in_part(), took + GANG_SHOWS + SLACK);
    assert!(in_part < limit, "{name}: half a gang ran for {in_part:?}, {took:?} without a leader");
    if bound == 4 {
        assert_eq!(seen.pods.len(), 4, "{name}: it was whole, and runs on: {:?}", seen.pods);
    }
}

/// A best-effort pod is about to give CPU for a guaranteed one: it does, once, and runs on.
async fn resize(bed: &Bed, name: &str, hit: Hit) {
    let mut stage = Stage::set(bed, name, NodeSpec { cpus: 16, ..nodes(1, 2) }).await;
    stage.tenant("red", 1, &json!({})).await;
    stage.tenant("blue", 1, &json!({})).await;
    let mut play = Play::begin(bed, hit).await;
    let lent = PodDraft::new("lent").gpus(1).deepshare("class", "best-effort");
    let lent = lent.request("cpu", "12").request("memory", "8Gi");
    let lent = lent.deepshare("recommended-cpu", "4").deepshare("recommended-memory", "8Gi");
    stage.submit("blue", &job(lent.behaves("resize-seconds", "2"), 1)).await;
    stage.running("blue", "lent", 1).await;
    play.set_trap();
    let own = PodDraft::new("own").gpus(1).request("cpu", "8").request("memory", "8Gi");
    stage.submit("red", &job(own, 1)).await;
    play.fail_over().await;
    stage.running("red", "own", 1).await;
    let lent = stage.running("blue", "lent", 1).await.remove(0);
    let containers = lent.spec.into_iter().flat_map(|spec| spec.containers);
    let requests = containers.filter_map(|container| container.resources?.requests);
    let cpus: Vec<String> = requests.filter_map(|mut all| Some(all.remove("cpu")?.0)).collect();
    assert_eq!(cpus, ["4500m"], "{name}: what it was shrunk to");
    play.wake_up();
    let seen = stage.strike(play.end()).await.expect("all promises are kept");
    assert_eq!(seen.rejected, Vec::<String>::new());
    assert_eq!(seen.pods.len(), 2, "{name}: nobody was evicted: {:?}", seen.pods);
}

/// Every case, by its name.
pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    use Fault::{CutOff, Deposed, Killed, Restarted, Stopped};
    use Moment::{After, Before};
    macro_rules! case {
        ($name:literal, $what:ident, $($hit:expr),+) => {
            beds.test(concat!(module_path!(), "::", $name), async |bed| {
                $what(bed, $name, Hit($($hit),+)).await;
            })
        };
    }
    vec![
        case!("bind-late", bindings, Write::Bind, 4, Before, Stopped),
        case!("gang-unheard", no_half_gang_stays, Write::Bind, 1, After, Stopped),
        case!("evict-unheard", eviction, Write::Evict, 1, After, CutOff),
        case!("bind-lost", bindings, Write::Bind, 1, Before, Killed),
        case!("bind-unheard", bindings, Write::Bind, 3, After, Restarted),
        case!("evict-lost", eviction, Write::Evict, 1, Before, Killed),
        case!("evict-half", eviction_of_a_gang, Write::Delete, 1, Before, Restarted),
        case!("gang-half", no_half_gang_stays, Write::Bind, 3, Before, Killed),
        case!("gang-whole", no_half_gang_stays, Write::Bind, 4, After, Deposed),
        case!("resize-lost", resize, Write::Resize, 1, Before, Deposed),
        case!("resize-unheard", resize, Write::Resize, 1, After, Killed),
    ]
}
