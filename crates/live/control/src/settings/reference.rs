//! The reference of all keys, for `docs/kubernetes/settings.md`.

use super::{KEYS, Settings};

/// The reference as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Settings of the scheduler\n\n\
         `deepshare-scheduler --settings FILE` reads a TOML file. In it `lease.name = \"a\"`, a table\n\
         `[lease]` and `lease = { name = \"a\" }` are the same. Paths start from the file's folder. Unknown\n\
         keys, wrong values and values that do not go together are refused, all of them at once, with\n\
         file, line and column. Settings of the policy and the engine are called as they are in the lab\n\
         ([settings of `deepshare`](../reference/settings.md)).\n\n\
         This page is generated; a test holds it to the program.\n\n\
         | key | value | unit | default | meaning |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let defaults = Settings::default();
    for key in KEYS {
        let default = key.field.show(&defaults).map_or("not set".to_owned(), |v| format!("`{v}`"));
        let (name, kind, unit, doc) = (key.name, key.field.in_words(), key.unit, key.doc);
        text += &format!("| `{name}` | {kind} | {unit} | {default} | {doc} |\n");
    }
    text
}
