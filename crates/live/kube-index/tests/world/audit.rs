//! The auditor, fed by a live scheduler's steps.

use deepshare_audit::{Auditor, PressureOf, ReclaimRules, ShareRules, ToleranceRules};
use deepshare_engine::{Command, EngineSettings, Event, Illegal, State};
use deepshare_kube_index::{Named, Record};
use deepshare_model::Time;
use deepshare_policies::DeepShareSettings;
use std::collections::VecDeque;

/// Steps that are kept for a report.
const KEPT: usize = 60;

pub struct Audit {
    auditor: Auditor,
    /// The latest steps.
    pub recent: VecDeque<String>,
    /// The first rule that did not hold.
    pub wrong: Option<String>,
    /// Events and commands, in order.
    pub steps: Vec<(Event, Vec<Command>)>,
    /// What has been named, in order.
    pub names: Vec<Named>,
}

impl Audit {
    pub fn new(settings: &EngineSettings) -> Audit {
        let policy = DeepShareSettings::default();
        let pairs = &policy.colocation;
        let auditor = Auditor::new(settings)
            .check_every(1)
            .shares(ShareRules {
                both_guaranteed: false,
                floor_ppm: pairs.guaranteed_floor_milli * 1_000,
                most_gpus: pairs.max_gpus,
                by_prediction: pairs.by_prediction,
                in_part: false,
                by_limit: false,
                tolerance: Some(ToleranceRules {
                    rho_min_milli: pairs.rho_min_milli,
                    gamma_milli: pairs.gamma_milli,
                    eps_share_milli: pairs.eps_share_milli,
                    demand: PressureOf::Promoted,
                    by_qad: pairs.by_qad,
                    spill: policy.spill,
                    guards: true,
                }),
            })
            .reclaims(ReclaimRules { preemption_cap: policy.preemption_cap });
        Audit {
            auditor,
            recent: VecDeque::new(),
            wrong: None,
            steps: Vec::new(),
            names: Vec::new(),
        }
    }

    fn check(
        &mut self,
        now: Time,
        event: &Event,
        commands: &[Command],
        state: &State,
    ) -> Result<(), String> {
        let text = |violation: deepshare_audit::Violation| format!("{violation:?}");
        self.auditor.event(now, event).map_err(text)?;
        for command in commands {
            self.auditor.command(now, command).map_err(text)?;
        }
        self.auditor.compare(state).map_err(text)
    }
}

impl Record for Audit {
    fn step(
        &mut self,
        now: Time,
        event: &Event,
        commands: &[Command],
        state: &State,
        illegal: Option<&Illegal>,
    ) {
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        if !matches!(event, Event::Wake) || !commands.is_empty() {
            self.recent.push_back(format!("{} {event:?} -> {commands:?}", now.0));
        }
        self.steps.push((event.clone(), commands.to_vec()));
        if self.wrong.is_some() {
            return;
        }
        if let Some(illegal) = illegal {
            self.wrong = Some(format!("{now}: {illegal:?}"));
        } else if let Err(wrong) = self.check(now, event, commands, state) {
            self.wrong = Some(format!("{now} after {event:?}: {wrong}"));
        }
    }

    fn name(&mut self, named: &Named) {
        self.names.push(named.clone());
    }
}
