//! The custom resource definitions, generated from the types.

use crate::{GpuNode, TenantQuota};
use kube::CustomResourceExt;
use serde_json::Value;

/// A custom resource definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its plural: the stem of its file in `deploy/crds/`.
    pub plural: String,
    /// The object, as the API server takes it.
    pub object: Value,
}

impl Definition {
    /// The object as a YAML file.
    pub fn to_yaml(&self) -> String {
        let yaml = serde_saphyr::to_string(&self.object).expect("plain data has a YAML form");
        format!(
            "# Generated from crates/live/kube-api by `cargo xtask crds`. Change it there.\n{yaml}"
        )
    }
}

/// Every custom resource definition.
pub fn definitions() -> Vec<Definition> {
    let all = [TenantQuota::crd(), GpuNode::crd()];
    let all = all.into_iter().map(|crd| {
        let plural = crd.spec.names.plural.clone();
        let mut object = serde_json::to_value(crd).expect("plain data has a JSON form");
        strict(&mut object);
        Definition { plural, object }
    });
    all.collect()
}

/// Leaves out what generated schemas say beyond what is meant: a field that may be absent may not
/// therefore be null, and the API server knows no unsigned formats (a minimum of 0 says it). Whole
/// bounds are written as whole numbers.
fn strict(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let null = key == "nullable" && value.is_boolean();
                let unsigned =
                    key == "format" && value.as_str().is_some_and(|f| f.starts_with("uint"));
                !null && !unsigned
            });
            for bound in ["minimum", "maximum"] {
                if let Some(number) = map.get(bound).and_then(Value::as_f64)
                    && number.fract() == 0.0
                {
                    map.insert(bound.to_owned(), Value::from(number as i64));
                }
            }
            map.values_mut().for_each(strict);
        }
        Value::Array(values) => values.iter_mut().for_each(strict),
        _ => {}
    }
}
