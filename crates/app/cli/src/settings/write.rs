//! Settings as files: TOML that repeats the run, and JSON for scripts.

use super::{KEYS, Settings};
use toml_edit::Value;

/// A settings file that repeats these settings, whatever later defaults are.
pub fn to_toml(settings: &Settings) -> String {
    let mut text = format!(
        "# Every setting of a run of deepshare {}. To repeat it:\n\
         # deepshare simulate --settings FILE\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for key in KEYS {
        match (key.get)(settings) {
            Some(value) => text += &format!("{} = {}\n", key.name, value),
            None => text += &format!("# {} differs between policies\n", key.name),
        }
    }
    text
}

/// An object with every key as it is named; `null` where policies differ.
pub fn to_json(settings: &Settings) -> serde_json::Value {
    let entry = |key: &super::Key| {
        let value = (key.get)(settings).map_or(serde_json::Value::Null, |value| json(&value));
        (key.name.to_owned(), value)
    };
    serde_json::Value::Object(KEYS.iter().map(entry).collect())
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Array(array) => array.iter().map(json).collect::<Vec<_>>().into(),
        other => other.to_string().trim().into(),
    }
}
