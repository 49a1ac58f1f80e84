//! The committed definitions are those of the types, and say what the API server can enforce.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_kube_api::{TenantQuota, definitions};
use std::path::Path;

#[test]
fn the_committed_files_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/crds");
    for definition in definitions() {
        let path = folder.join(format!("{}.yaml", definition.plural));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.display();
        assert!(committed == definition.to_yaml(), "{name}: renew with `cargo xtask crds`");
    }
}

#[test]
fn the_examples_are_quotas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/examples");
    let mut quotas = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<TenantQuota> = serde_saphyr::from_multiple(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        quotas += read.len();
    }
    assert_eq!(quotas, 4);
}

#[test]
fn every_field_is_described_and_no_format_is_unknown_to_the_api_server() {
    for definition in definitions() {
        let text = definition.object.to_string();
        for bad in ["Auto-generated", "\"nullable\"", "\"uint"] {
            assert!(!text.contains(bad), "{}: {bad}", definition.plural);
        }
        let schema = &definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            let fields = schema["properties"][part]["properties"].as_object().unwrap();
            for (name, field) in fields {
                assert!(field["description"].is_string(), "{} {part}.{name}", definition.plural);
            }
        }
    }
}
