//! Queues whose mean wait is known in closed form: the simulator must find it.
//!
//! One GPU under FIFO with Poisson arrivals of rate λ is M/M/1 for exponential and M/D/1 for
//! constant durations of mean 1/μ. With ρ = λ/μ the mean wait is ρ/(μ(1-ρ)) in the first and half
//! of that in the second.
//!
//! How near is near enough: each of `RUNS` independent runs gives one mean wait, over the jobs
//! after a warm-up. Their average is normal to good approximation, so it lies within 4 standard
//! errors of the truth but for one case in 16,000. Seeds are fixed, so the test is the same every
//! time; a tolerance of 4 estimated errors says that the figures agree as far as so many jobs can
//! tell, and the bound on the error itself says that this is not far.

use deepshare_engine::CapacityMode;
use deepshare_model::{Span, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{SimSettings, Watch, simulate};
use deepshare_testkit::{plain_job, trace_of};
use deepshare_trace::Cluster;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const RUNS: u64 = 40;
const JOBS: usize = 5_000;
/// Left out at the start of each run, which begins with an idle GPU; many relaxation times.
const WARM_UP: usize = 1_000;
/// Mean duration, seconds.
const SERVICE_S: f64 = 100.0;

fn exponential(mean_s: f64, rng: &mut Pcg64Mcg) -> Span {
    let uniform: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    Span::from_secs_f64(-libm::log(uniform) * mean_s).expect("a few times the mean")
}

/// Mean wait in seconds of the jobs after the warm-up of one run.
fn mean_wait_s(policy: &str, load: f64, seed: u64, service: impl Fn(&mut Pcg64Mcg) -> Span) -> f64 {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut now = Time::ZERO;
    let jobs = (0..JOBS).map(|index| {
        now = now + exponential(SERVICE_S / load, &mut rng);
        plain_job(index, 1, now, service(&mut rng))
    });
    let trace = trace_of(jobs.collect(), vec!["all".to_owned()]);
    let cluster = Cluster::partitions(&[("all".to_owned(), 1)], 1);
    let mut settings = SimSettings::new(PolicyConfig::by_name(policy).expect("a listed name"));
    settings.engine.capacity = CapacityMode::Pool;
    let run = simulate(&trace, &cluster, &settings, &Watch::default()).expect("it drains");
    let waits = run.jobs[WARM_UP..].iter().map(|job| job.waited.as_secs_f64());
    waits.sum::<f64>() / (JOBS - WARM_UP) as f64
}

/// Average of the runs and its standard error, seconds.
fn measured(policy: &str, load: f64, service: impl Fn(&mut Pcg64Mcg) -> Span) -> (f64, f64) {
    let means: Vec<f64> = (0..RUNS).map(|seed| mean_wait_s(policy, load, seed, &service)).collect();
    let mean = means.iter().sum::<f64>() / RUNS as f64;
    let squares: f64 = means.iter().map(|run| (run - mean) * (run - mean)).sum();
    (mean, (squares / (RUNS * (RUNS - 1)) as f64).sqrt())
}

fn agrees(load: f64, theory_s: f64, service: impl Fn(&mut Pcg64Mcg) -> Span) {
    let (mean, error) = measured("fifo", load, service);
    assert!(error < 0.04 * theory_s, "at load {load} the error {error} s says too little");
    assert!(
        (mean - theory_s).abs() < 4.0 * error,
        "at load {load} the mean wait is {mean} s ± {error} s, and in theory {theory_s} s"
    );
}

#[test]
fn the_mean_wait_of_m_m_1_is_that_of_theory() {
    for load in [0.3, 0.5, 0.7, 0.8] {
        let theory_s = load * SERVICE_S / (1.0 - load);
        agrees(load, theory_s, |rng| exponential(SERVICE_S, rng));
    }
}

#[test]
fn constant_durations_halve_the_mean_wait() {
    for load in [0.3, 0.5, 0.7, 0.8] {
        let theory_s = load * SERVICE_S / (1.0 - load) / 2.0;
        agrees(load, theory_s, |_| Span::from_secs(SERVICE_S as u64));
    }
}

/// The mean wait of M/M/1 under SJF has a closed form only as an integral; but on one GPU it is the
/// least of all non-preemptive orders, run by run.
#[test]
fn shortest_first_waits_less_than_first_come_in_every_run() {
    for seed in 0..10 {
        let wait = |policy| mean_wait_s(policy, 0.8, seed, |rng| exponential(SERVICE_S, rng));
        let (fifo, sjf) = (wait("fifo"), wait("sjf"));
        assert!(sjf < fifo, "seed {seed}: {sjf} s and {fifo} s");
    }
}
