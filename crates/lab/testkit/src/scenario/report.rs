//! How replies are worded: names instead of ids.

use super::names::Names;
use deepshare_engine::{
    AttemptState, EvictReason, JobState, PairTest, Preemption, Reason, Slice, State,
};
use deepshare_model::{Devices, GpuTypeId, JobId, ProfileClassId, TenantId};

/// `n0[0,1] n1[0-3]`.
pub(crate) fn placement(slices: &[Slice]) -> String {
    let parts = slices.iter().map(|slice| format!("{}[{}]", slice.node, devices(slice.devices)));
    parts.collect::<Vec<_>>().join(" ")
}

/// `0,1` or `0-3`: runs of three and more are shortened.
fn devices(set: Devices) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in set.iter() {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let text = runs.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    text.collect::<Vec<_>>().join(",")
}

/// `preemption (by a, phi 0.0125)`: for whom, and what all its victims together cost.
pub(crate) fn eviction(
    names: &Names,
    reason: EvictReason,
    preemption: Option<Preemption>,
) -> String {
    let why = reason.in_words();
    let Some(Preemption { beneficiary, phi_nano }) = preemption else { return why.to_owned() };
    let by = names.job_name(beneficiary);
    match phi_nano {
        Some(phi) => format!("{why} (by {by}, phi {})", per_second(phi)),
        None => format!("{why} (by {by})"),
    }
}

/// To the millionth, without zeros at the end.
fn per_second(nano: u64) -> String {
    let text = format!("{:.6}", nano as f64 / 1e9);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A reason in the engine's own words, with names where it has ids.
pub(crate) fn reason(names: &Names, reason: &Reason) -> String {
    reason.in_words(&Called(names))
}

struct Called<'a>(&'a Names);

impl deepshare_engine::Names for Called<'_> {
    fn tenant(&self, id: TenantId) -> String {
        self.0.tenant_name(id).to_string()
    }

    fn job(&self, id: JobId) -> String {
        self.0.job_name(id).to_string()
    }
}

/// `free 5 of 8: n0[0,1] n1[0-2]`.
pub(crate) fn free(state: &State) -> String {
    let free: u32 = state.pools().iter().map(|pool| pool.free_gpus()).sum();
    let usable: u32 = state.pools().iter().map(|pool| pool.usable_gpus()).sum();
    let open = state.nodes().iter().enumerate().filter(|(_, node)| !node.open().is_empty());
    let parts: Vec<String> =
        open.map(|(index, node)| format!("n{index}[{}]", devices(node.open()))).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    format!("free {free} of {usable}{colon}{}", parts.join(" "))
}

/// `job a running on n0[0]`.
pub(crate) fn job(names: &Names, state: &State, id: JobId) -> String {
    let entry = state.job(id);
    let name = names.job_name(id);
    let stands = match &entry.state {
        JobState::Active(attempt) => {
            let attempt = state.attempt(*attempt);
            let word = match attempt.state {
                AttemptState::Reserved => "reserved",
                AttemptState::Binding => "binding",
                AttemptState::Starting => "starting",
                AttemptState::Running => "running",
                AttemptState::Terminating => "terminating",
                AttemptState::Released => "released",
            };
            format!("{word} on {}", placement(&attempt.placement))
        }
        JobState::Ended(outcome) => outcome.name().to_owned(),
        _ => match state.explain(id) {
            Some(why) => format!("waits: {}", reason(names, &why)),
            None => "waits".to_owned(),
        },
    };
    let preempted = match entry.preemptions {
        0 => String::new(),
        times => format!(", preempted {times} times"),
    };
    format!("job {name} {stands}{preempted}")
}

/// `tenant red uses 4 of 8`.
pub(crate) fn tenant(names: &Names, state: &State, id: TenantId) -> String {
    let types = (0..names.gpu_types()).map(GpuTypeId::from_index);
    let used: u32 = types.map(|gpu_type| state.used(id, gpu_type)).sum();
    let quota = state.tenant(id).quota.total();
    format!("tenant {} uses {used} of {quota}", names.tenant_name(id))
}

/// `qad red 0.5000, smoothed 0.8500, holds 4 of 8 demanded`.
pub(crate) fn qad(names: &Names, state: &State, id: TenantId) -> String {
    let (now, smoothed) = state.qad(id);
    let (demanded, held) = state.guaranteed(id);
    let name = names.tenant_name(id);
    format!("qad {name} {now}, smoothed {smoothed}, holds {held} of {demanded} demanded")
}

/// `pairs 2 formed, 1 revoked; refused: floor 1`.
pub(crate) fn pairs(state: &State) -> String {
    let counts = state.pair_counts();
    let refused = PairTest::ALL.map(|test| (test.name(), counts.refused[test as usize]));
    let refused: Vec<String> = refused
        .iter()
        .filter(|(_, times)| *times > 0)
        .map(|(test, times)| format!("{test} {times}"))
        .collect();
    let refused = match refused.is_empty() {
        true => String::new(),
        false => format!("; refused: {}", refused.join(", ")),
    };
    format!("pairs {} formed, {} revoked{refused}", counts.formed, counts.revoked)
}

/// `a keeps 0.95 beside b`: what is predicted, a line a pair of profiles, as far as said.
pub(crate) fn predictions(names: &Names, state: &State) -> Vec<String> {
    let profiles = 0..names.profiles.len();
    let pairs = profiles.clone().flat_map(|own| profiles.clone().map(move |other| (own, other)));
    let known = pairs.filter_map(|(own, other)| {
        let id = ProfileClassId::from_index;
        let kept = state.retentions().get(id(own), id(other)).filter(|kept| kept.ppm() > 1)?;
        Some(format!("{} keeps {kept} beside {}", names.profiles[own], names.profiles[other]))
    });
    known.collect()
}
