//! Settings files, right and wrong.

use super::*;
use deepshare_policies::ColocationSettings;

fn read(text: &str) -> Result<Settings, Vec<String>> {
    let read = Settings::from_text("s.toml", text, Path::new("/etc/deepshare"));
    read.map_err(|problems| problems.iter().map(Problem::to_string).collect())
}

#[test]
fn every_default_reads_back_as_itself() {
    let defaults = Settings::default();
    let line = |key: &Key| Some(format!("{} = {}\n", key.name, key.field.show(&defaults)?));
    let text: String = KEYS.iter().filter_map(line).collect();
    let again = read(&text).unwrap();
    for key in KEYS {
        assert_eq!(key.field.show(&again), key.field.show(&defaults), "{}", key.name);
    }
}

#[test]
fn keys_set_what_they_say() {
    let settings = read(
        "scheduler = \"gpu\"\ncycle_s = 0.2\n[deepshare]\nalpha = 0.75\nk = 1\n\
         pressure = \"all-pending\"\n[log]\nfolder = \"log\"\n[in_flight]\nbind = 128\n",
    )
    .unwrap();
    assert_eq!(settings.scheduler, "gpu");
    assert_eq!(settings.engine.cycle, Span(200_000));
    let expected = DeepShareSettings {
        alpha_milli: 750,
        colocation: ColocationSettings {
            residents: 1,
            demand: serde_json::from_str("\"all-pending\"").unwrap(),
            ..ColocationSettings::default()
        },
        grow: true,
        ..DeepShareSettings::default()
    };
    assert_eq!(settings.policy_config(), PolicyConfig::DeepShare(expected));
    assert_eq!(settings.log.folder, Some(PathBuf::from("/etc/deepshare/log")));
    assert_eq!(settings.in_flight[Kind::Bind as usize], 128);
}

#[test]
fn another_policy_brings_its_own_defaults_wherever_it_is_named() {
    let settings = read("grace_s = 5\npolicy = \"fifo\"\n").unwrap();
    assert_eq!(settings.engine.capacity, CapacityMode::Hard);
    assert_eq!(settings.engine.cycle, Span::ZERO);
    assert_eq!(settings.engine.grace, Span::from_secs(5));
    assert_eq!(settings.policy_config().name(), "fifo");
}

#[test]
fn everything_wrong_is_reported_at_once_where_it_is() {
    let problems = read(
        "cycel_s = 1\n[lease]\n  namespace = 3\nnmae = \"x\"\n[deepshare]\nrho_min = 1.5\n\
         capacity = \"hard\"\n[engine]\ncolour = 1\n",
    )
    .unwrap_err();
    assert_eq!(
        problems,
        [
            "s.toml:1:1: unknown key `cycel_s`; did you mean `cycle_s`?",
            "s.toml:4:1: unknown key `lease.nmae`; did you mean `lease.name`?",
            "s.toml:7:1: unknown key `deepshare.capacity`; did you mean `capacity`?",
            "s.toml:9:1: unknown key `engine.colour`; docs/kubernetes/settings.md lists all keys",
            "s.toml:3:3: lease.namespace = 3: expected a name in quotes",
            "s.toml:6:1: deepshare.rho_min = 1.5: expected a number from 0 to 1, in thousandths at \
             the finest",
        ]
    );
    let problems = read("seed = = 2\n").unwrap_err();
    assert!(problems[0].starts_with("s.toml:1:8: not valid TOML: "), "{}", problems[0]);
}

#[test]
fn timing_that_would_allow_two_leaders_is_refused() {
    let problems = read("lease.duration_s = 10\n").unwrap_err();
    assert_eq!(
        problems,
        ["s.toml: lease.renew_deadline_s: must be below lease.duration_s, or two processes could \
          lead at once"]
    );
    assert!(read("lease = { duration_s = 4, renew_deadline_s = 3, retry_s = 1 }\n").is_ok());
}

#[test]
fn the_committed_reference_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/kubernetes/settings.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let help = "docs/kubernetes/settings.md is out of date: `UPDATE_DOCS=1 cargo test` writes it";
    assert!(committed == reference(), "{help}");
}

#[test]
fn every_field_of_the_policy_and_the_engine_has_a_key() {
    let settings = Settings::default();
    let fields = |value: serde_json::Value| value.as_object().map_or(0, serde_json::Map::len);
    let own = fields(serde_json::to_value(&settings.deepshare).unwrap()) - 1
        + fields(serde_json::to_value(&settings.deepshare.colocation).unwrap());
    let keys = KEYS.iter().filter(|key| key.name.starts_with("deepshare.")).count();
    assert_eq!(keys, own, "a field of DeepShare's settings has no key, or a key no field");
    let engine = fields(serde_json::to_value(settings.engine).unwrap());
    let named = ["capacity", "placement", "cycle_s", "grace_s", "backoff.first_s", "backoff.max_s"];
    let named = named.into_iter().chain(["preempted_pause_s", "qad.lambda"]);
    let named = named.chain(["pair.samples", "pair.slack"]);
    assert!(named.clone().all(|name| KEYS.iter().any(|key| key.name == name)));
    assert_eq!(named.count(), engine, "a field of the engine's settings has no key");
}
