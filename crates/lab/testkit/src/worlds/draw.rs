//! What a seed stands for, and how parts are left out of it.

use super::Trouble;
use crate::chance::{chance, one};
use crate::pairing::{sharing, training};
use crate::traces::{plain_job, trace_of};
use deepshare_engine::{CapacityMode, EngineSettings, Placer, RetentionTable};
use deepshare_model::{
    Class, GpuTypeId, NodeId, Outcome, ProfileClassId, Quota, Retention, Span, TenantId, Time,
    UserId,
};
use deepshare_policies::{ColocationSettings, Demotion, PolicyConfig, PressureDemand, TieOrder};
use deepshare_sim::{
    Actuation, ClassUse, Delay, Estimator, Interference, Outage, OutageKind, OutageModel, Outages,
    Oversize, Restart, SharedInterference, SimSettings,
};
use deepshare_trace::{Cluster, NodeEntry, TenantEntry, Trace, TraceJob};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::sync::Arc;

/// One of the choices.
/// Everything that a seed stands for.
pub(super) fn world(seed: u64) -> (Trace, Cluster, SimSettings) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51);
    let rng = &mut rng;
    let elastic = CapacityMode::Elastic;
    let capacity = one(
        rng,
        &[CapacityMode::Partition, CapacityMode::Hard, CapacityMode::Pool, elastic, elastic],
    );
    let cluster = cluster(rng, capacity);
    let trace = trace(rng, &cluster);
    let settings = settings(rng, seed, capacity, &trace, &cluster);
    (trace, cluster, settings)
}

fn cluster(rng: &mut Pcg64Mcg, capacity: CapacityMode) -> Cluster {
    let types = rng.random_range(1..=2usize);
    let tenants = rng.random_range(1..=4usize);
    let few_cpus = chance(rng, 25);
    let nodes: Vec<NodeEntry> = (0..rng.random_range(1..=8usize))
        .map(|index| {
            let gpus = one(rng, &[1, 2, 4, 4, 8, 8, 8]);
            let tenant = (capacity == CapacityMode::Partition)
                .then(|| TenantId::from_index(rng.random_range(0..tenants)));
            NodeEntry {
                name: format!("n{index}"),
                tenant,
                gpu_type: GpuTypeId::from_index(rng.random_range(0..types)),
                gpus,
                gpu_memory_mib: 0,
                cpu_milli: few_cpus.then(|| u64::from(gpus) * 4_000),
                memory_mib: None,
            }
        })
        .collect();
    let all: u32 = nodes.iter().map(|node| node.gpus).sum();
    let quotas = matches!(capacity, CapacityMode::Hard | CapacityMode::Elastic);
    let family = quotas && tenants > 2 && chance(rng, 40);
    let tenants = (0..tenants)
        .map(|index| {
            let mut quota = Quota::default();
            for gpu_type in 0..types {
                quota.set(GpuTypeId::from_index(gpu_type), rng.random_range(1..=all));
            }
            let parent = (family && index > 0).then_some(TenantId(0));
            TenantEntry { parent, ..TenantEntry::new(format!("t{index}"), quota) }
        })
        .collect();
    let gpu_types = (0..types).map(|index| format!("type-{index}")).collect();
    Cluster { tenants, nodes, gpu_types }
}

fn trace(rng: &mut Pcg64Mcg, cluster: &Cluster) -> Trace {
    let count = rng.random_range(5..=120usize);
    let users = rng.random_range(1..=4usize);
    let few_cpus = cluster.nodes.iter().any(|node| node.cpu_milli.is_some());
    let typed = chance(rng, 30);
    // Whole seconds make ties; microseconds make none.
    let unit = one(rng, &[1_000_000u64, 1_000_000, 1]);
    let gap = one(rng, &[0, 5, 20, 60, 200]);
    let longest = one(rng, &[10, 100, 600]);
    let ties = chance(rng, 40);
    let mut submit = 0;
    let jobs = (0..count)
        .map(|index| {
            if !chance(rng, 30) {
                submit += rng.random_range(0..=gap * 1_000_000 / unit) * unit;
            }
            let duration = match ties {
                true => one(rng, &[0, 1, 10, 10, 60]).min(longest) * 1_000_000,
                false => rng.random_range(1..=longest * 1_000_000 / unit) * unit,
            };
            let gpus = one(rng, &[1, 1, 1, 2, 2, 3, 4, 4, 8, 12, 16]);
            TraceJob {
                tenant: TenantId::from_index(rng.random_range(0..cluster.tenants.len())),
                user: UserId::from_index(rng.random_range(0..users)),
                gpu_type: (typed && chance(rng, 40))
                    .then(|| GpuTypeId::from_index(rng.random_range(0..cluster.gpu_types.len()))),
                cpu_milli: match few_cpus {
                    true => u64::from(gpus) * rng.random_range(0..=8_000),
                    false => 0,
                },
                outcome: one(rng, &Outcome::ALL),
                class: chance(rng, 30).then_some(Class::BestEffort),
                priority: rng.random_range(0..3),
                ..plain_job(index, gpus, Time(submit), Span(duration))
            }
        })
        .collect();
    let gpu_types = cluster.gpu_types.clone();
    Trace { gpu_types, ..trace_of(jobs, cluster.tenant_names()) }
}

fn settings(
    rng: &mut Pcg64Mcg,
    seed: u64,
    capacity: CapacityMode,
    trace: &Trace,
    cluster: &Cluster,
) -> SimSettings {
    let elastic = CapacityMode::Elastic;
    let ours = capacity == elastic && chance(rng, 75);
    let name = match one(rng, &PolicyConfig::NAMES) {
        _ if ours => "deepshare",
        // Forecasts know hard quotas and none.
        name if name.ends_with("backfill") && capacity == elastic => "elastic-quota",
        name => name,
    };
    let mut settings = SimSettings::new(PolicyConfig::by_name(name).expect("a listed name"));
    settings.engine = EngineSettings {
        capacity,
        placer: one(rng, &[Placer::Consolidate, Placer::ConsolidateArtifact, Placer::NodeOrder]),
        cycle: one(rng, &[Span::ZERO, Span::ZERO, Span(50_000), Span::from_secs(1)]),
        preempted_pause: one(rng, &[Span::ZERO, Span::from_secs(30)]),
        ..EngineSettings::default()
    };
    settings.estimates = estimates(rng, trace);
    if chance(rng, 50) {
        settings.actuation = actuation(rng);
    }
    if (ours || settings.policy.shares()) && chance(rng, 60) {
        settings.interference = Some(interference(rng, trace));
        settings.engine.pair_samples = one(rng, &[0, 1, 3]);
        settings.engine.pair_slack_ppm = one(rng, &[0, 60_000]);
    }
    policy(rng, &mut settings);
    sharing(rng, &mut settings.policy);
    if let PolicyConfig::DeepShare(ours) = &mut settings.policy {
        ours.grow = seed.is_multiple_of(2);
    }
    settings.oversize = Oversize::Skip;
    settings.audit = true;
    settings.seed = seed;
    settings.max_idle_steps = 300_000;
    settings.outages = outages(rng, trace, cluster);
    settings
}

fn policy(rng: &mut Pcg64Mcg, settings: &mut SimSettings) {
    settings.restart = Restart {
        overhead: one(rng, &[Span::ZERO, Span::from_secs(5), Span::from_secs(40)]),
        overhead_wide: one(rng, &[Span::ZERO, Span::from_secs(60)]),
        wide_above: one(rng, &[2, 8]),
        checkpoint_interval: one(rng, &[Span::ZERO, Span::from_secs(7), Span::from_secs(60)]),
        overhead_accumulates: chance(rng, 30),
    };
    match &mut settings.policy {
        PolicyConfig::Srtf { ties, spare_unneeded } => {
            *spare_unneeded = chance(rng, 70);
            if chance(rng, 30) {
                // Equals displace each other for ever unless every restart sets the victim back
                // further, and the policy knows it.
                *ties = TieOrder::WaitingFirst;
                settings.estimates = Estimator::Oracle;
                settings.engine.cycle = Span::SECOND;
                let floor = Span::from_secs(3);
                settings.restart.overhead = settings.restart.overhead.max(floor);
                settings.restart.overhead_wide = settings.restart.overhead_wide.max(floor);
                settings.restart.checkpoint_interval = Span::ZERO;
                settings.restart.overhead_accumulates = true;
                settings.actuation = Actuation::default();
            }
        }
        PolicyConfig::DeepShare(ours) => {
            ours.spill = chance(rng, 50);
            ours.reclaim = chance(rng, 85);
            ours.order_by_qad = chance(rng, 80);
            ours.order_by_time = chance(rng, 80);
            ours.qad_bucket_milli = one(rng, &[0, 10, 500]);
            ours.preemption_cap = rng.random_range(0..4);
            ours.gang_guard = one(rng, &[Span::ZERO, Span::from_secs(30), ours.gang_guard]);
            colocation(rng, &mut ours.colocation);
        }
        PolicyConfig::Fifo { skip } | PolicyConfig::Sjf { skip } => *skip = chance(rng, 30),
        PolicyConfig::Qssf { first_second_by_gpus } => *first_second_by_gpus = chance(rng, 40),
        PolicyConfig::Tiresias {
            thresholds,
            interval,
            promote_after_milli,
            demotion,
            spare_unneeded,
        } => {
            let low = rng.random_range(1..=200);
            *thresholds = vec![Span::from_secs(low).on(1)];
            if chance(rng, 50) {
                thresholds.push(Span::from_secs(low * 5).on(1));
            }
            *interval = one(rng, &[Span::ZERO, Span::from_secs(60)]);
            if chance(rng, 40) {
                *promote_after_milli = Some(rng.random_range(1_000..=8_000));
                // Promoted again and again, a job makes progress only if a stint is not lost.
                settings.restart.overhead = Span::ZERO;
                settings.restart.overhead_wide = Span::ZERO;
                settings.restart.checkpoint_interval = Span::ZERO;
            }
            *demotion = one(rng, &[Demotion::AtThreshold, Demotion::AboveThreshold]);
            *spare_unneeded = chance(rng, 70);
        }
        _ => {}
    }
}

fn colocation(rng: &mut Pcg64Mcg, ours: &mut ColocationSettings) {
    ours.residents = if chance(rng, 85) { 2 } else { 1 };
    ours.rho_min_milli = one(rng, &[0, 500, 700, 900]);
    ours.gamma_milli = one(rng, &[0, 500, 1_000]);
    ours.eps_share_milli = one(rng, &[0, 1_000, 2_000, 50_000]);
    ours.demand = one(
        rng,
        &[PressureDemand::Promoted, PressureDemand::GuaranteedOnly, PressureDemand::AllPending],
    );
    ours.guaranteed_floor_milli = one(rng, &[0, 600, 900]);
    ours.candidates = one(rng, &[0, 1, 4, 64]);
    ours.by_qad = chance(rng, 75);
    ours.by_prediction = chance(rng, 80);
    ours.max_gpus = one(rng, &[0, 0, 1, 4]);
}

/// What jobs do to each other, and what is told of it: near the truth, or beside it.
fn interference(rng: &mut Pcg64Mcg, trace: &Trace) -> SharedInterference {
    let known = rng.random_range(1..=5usize);
    let gentle = chance(rng, 60);
    let kept = |rng: &mut Pcg64Mcg| {
        let least = if gentle { 700_000 } else { 200_000 };
        Retention::from_ppm(rng.random_range(least..=1_050_000))
    };
    let truth: Vec<Vec<Retention>> =
        (0..known).map(|_| (0..known).map(|_| kept(rng)).collect()).collect();
    let wrong_by = one(rng, &[0.0, 0.05, 0.4]);
    let mut told = |kept: &Retention| {
        let error = 1.0 + wrong_by * (rng.random_range(0..=2_000) as f64 / 1_000.0 - 1.0);
        Retention::from_ratio(kept.as_f64() * error)
    };
    let rows = truth.iter().map(|row| row.iter().map(&mut told).collect()).collect();
    let scores = (0..known).map(|_| rng.random_range(0..3)).collect();
    let class = |rng: &mut Pcg64Mcg| ProfileClassId::from_index(rng.random_range(0..known));
    Arc::new(Interference {
        class_of: trace.jobs.iter().map(|_| class(rng)).collect(),
        training_of: trace.jobs.iter().map(|_| training(rng)).collect(),
        classes: (0..known)
            .map(|_| ClassUse {
                compute: f64::from(rng.random_range(0..=100u32)) / 100.0,
                memory_mib: rng.random_range(1_000..=20_000),
            })
            .collect(),
        truth,
        predicted: RetentionTable { version: 1, rows, scores, errors_ppm: Vec::new() },
        device_memory_mib: one(rng, &[0, 24_000, 40_000]),
        sample_period: Span(rng.random_range(1..=30_000_000)),
        sample_noise: one(rng, &[0.0, 0.03, 0.2]),
        notes: Vec::new(),
    })
}

/// The same for some of the jobs.
pub(super) fn kept_interference(
    interference: &Option<SharedInterference>,
    positions: &[usize],
) -> Option<SharedInterference> {
    let all = interference.as_ref()?;
    let class_of = positions.iter().map(|&at| all.class_of[at]).collect();
    let of_job = |&at: &usize| all.training_of.get(at).copied().flatten();
    let training_of = positions.iter().map(of_job).collect();
    Some(Arc::new(Interference { class_of, training_of, ..(**all).clone() }))
}

fn estimates(rng: &mut Pcg64Mcg, trace: &Trace) -> Estimator {
    match rng.random_range(0..4) {
        0 => Estimator::None,
        1 => Estimator::RunningMean,
        2 => {
            let noisy = |job: &TraceJob| Span(job.duration.0 * rng.random_range(1..=30) / 10);
            let values: Vec<Span> = trace.jobs.iter().map(noisy).collect();
            Estimator::Given { name: "noisy".to_owned(), values: values.into() }
        }
        _ => Estimator::Oracle,
    }
}

fn actuation(rng: &mut Pcg64Mcg) -> Actuation {
    let delay = |rng: &mut Pcg64Mcg| {
        let min = rng.random_range(0..2_000_000);
        match rng.random_range(0..3) {
            0 => Delay::default(),
            1 => Delay::exactly(Span(min)),
            _ => Delay { min: Span(min), max: Span(min + rng.random_range(0..20_000_000)) },
        }
    };
    let milli = |rng: &mut Pcg64Mcg| one(rng, &[0, 0, 50, 300]);
    Actuation {
        bind: delay(rng),
        start: delay(rng),
        stop: delay(rng),
        news: delay(rng),
        bind_failure_milli: milli(rng),
        rejection_milli: milli(rng),
        refusal_milli: milli(rng),
        loss_milli: milli(rng),
        doubling_milli: milli(rng),
        resync: Span::from_secs(rng.random_range(1..=60)),
    }
}

fn outages(rng: &mut Pcg64Mcg, trace: &Trace, cluster: &Cluster) -> Outages {
    match rng.random_range(0..6) {
        0 => Outages::Drawn(OutageModel {
            mean_up: Span::from_secs(rng.random_range(2_000..=20_000)),
            mean_down: Span::from_secs(rng.random_range(10..=600)),
        }),
        1 => {
            let last = trace.jobs.last().map_or(0, |job| job.submit.0) + 60_000_000;
            let mut listed = Vec::new();
            for node in (0..cluster.nodes.len()).map(NodeId::from_index) {
                if chance(rng, 50) {
                    let from = Time(rng.random_range(0..=last));
                    let until = from + Span(rng.random_range(1..=300_000_000));
                    let kind = match from.0 % 3 {
                        0 => OutageKind::Drain,
                        1 => OutageKind::Maintenance { cordon: Time(from.0 / 2) },
                        _ => OutageKind::Failure,
                    };
                    listed.push(Outage { node, from, until, kind });
                }
            }
            Outages::Listed(listed)
        }
        _ => Outages::None,
    }
}

pub(super) fn kept_estimates(estimates: &Estimator, positions: &[usize]) -> Estimator {
    match estimates {
        Estimator::Given { name, values } => {
            let values: Vec<Span> = positions.iter().map(|&at| values[at]).collect();
            Estimator::Given { name: name.clone(), values: values.into() }
        }
        other => other.clone(),
    }
}

pub(super) fn keep_outages(outages: &mut Outages, positions: &[usize]) {
    if let Outages::Listed(listed) = outages {
        listed.retain_mut(|outage| {
            let new = positions.iter().position(|&at| at == outage.node.index());
            outage.node = NodeId::from_index(new.unwrap_or_default());
            new.is_some()
        });
    }
}

pub(super) fn remove(trouble: Trouble, settings: &mut SimSettings, cluster: &mut Cluster) {
    let actuation = &mut settings.actuation;
    match trouble {
        Trouble::Outages => settings.outages = Outages::None,
        Trouble::Delays => {
            (actuation.bind, actuation.start, actuation.stop) = Default::default();
        }
        Trouble::FailedStarts => {
            (actuation.bind_failure_milli, actuation.rejection_milli) = (0, 0);
        }
        Trouble::Sharing => settings.interference = None,
        Trouble::Refusals => actuation.refusal_milli = 0,
        Trouble::LateNews => actuation.news = Delay::default(),
        Trouble::LostNews => actuation.loss_milli = 0,
        Trouble::DoubledNews => actuation.doubling_milli = 0,
        Trouble::RestartCosts => {
            // That rule needs its costs; see where it is drawn.
            if !waiting_first(&settings.policy) {
                (settings.restart.overhead, settings.restart.overhead_wide) = Default::default();
                settings.restart.checkpoint_interval = Span::ZERO;
            }
        }
        Trouble::Slots => {
            if !waiting_first(&settings.policy) {
                settings.engine.cycle = Span::ZERO;
            }
        }
        Trouble::FewCpus => {
            for node in &mut cluster.nodes {
                node.cpu_milli = None;
            }
        }
    }
}

fn waiting_first(policy: &PolicyConfig) -> bool {
    matches!(policy, PolicyConfig::Srtf { ties: TieOrder::WaitingFirst, .. })
}
