//! Drives an engine as a live scheduler does, and logs it.

use deepshare_engine::Engine;
use deepshare_event_log::{Header, Limits, Name, Opening, WriteError, Writer};
use deepshare_testkit::Told;
use std::path::Path;

/// Lets an engine live through `told`, writing a log to `dir`.
///
/// # Errors
/// If the log cannot be written.
pub fn log(told: &Told, dir: &Path, limits: Limits, names: &[Name]) -> Result<(), WriteError> {
    let header = Header::new("parity".to_owned(), told.policy.clone(), told.settings, 0);
    let mut writer = Writer::create(dir, header, limits)?;
    for name in names {
        writer.name(name)?;
    }
    let mut engine = Engine::new(told.settings, told.policy.build());
    let mut commands = Vec::new();
    for (now, event) in &told.events {
        commands.clear();
        let illegal = engine.step(*now, event, &mut commands).err();
        writer.step(*now, event, &commands, illegal.as_ref())?;
        let opening = || Opening { snapshot: engine.snapshot(), names: names.to_vec() };
        writer.rotate_if_due(opening)?;
    }
    writer.flush()
}
