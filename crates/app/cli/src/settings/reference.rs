//! The reference of all keys, for `deepshare settings` and `docs/reference/settings.md`.

use super::{Compat, KEYS, Settings};
use std::fmt::Write;

/// The reference as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         Set in a TOML file (`--settings FILE`) or one by one (`--set key=value`). Later ones win:\n\
         defaults, then `compat`, then the file, then `--set`, then flags. In a file, `restart.overhead_s\n\
         = 40`, a table `[restart]` and `restart = { overhead_s = 40 }` are the same. Paths in a file\n\
         start from its folder. On the command line strings need no quotes, and lists no brackets\n\
         (`--set policy=fifo,sjf`). Unknown keys and wrong values are refused, all of them at once.\n\n\
         This page is what `deepshare settings` prints.\n\n\
         | key | value | unit | default | with `compat=lucid` | meaning |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let (plain, lucid) = (Settings::new(Compat::None), Settings::new(Compat::Lucid));
    for key in KEYS {
        let show = |settings: &Settings| {
            (key.get)(settings).map_or("by policy".to_owned(), |value| format!("`{value}`"))
        };
        let (default, mut with_lucid) = (show(&plain), show(&lucid));
        if with_lucid == default {
            with_lucid = String::new();
        }
        let (name, kind, unit, doc) = (key.name, (key.kind)(), key.unit, key.doc);
        writeln!(text, "| `{name}` | {kind} | {unit} | {default} | {with_lucid} | {doc} |")
            .expect("writing to a string does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pinned::assert_pinned;

    #[test]
    fn the_committed_page_has_every_key_as_it_is() {
        assert_pinned("docs/reference/settings.md", &reference());
    }
}
