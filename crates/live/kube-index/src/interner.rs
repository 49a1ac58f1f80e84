//! Names to dense ids: strings stop at this crate.

use std::collections::HashMap;
use std::sync::Arc;

/// Numbers names in the order in which they are first seen. Never forgets one: an id in a log means
/// the same from its first line to its last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    ids: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Interner {
    /// The id of a name, and whether it is new.
    pub(crate) fn intern(&mut self, name: &str) -> (u32, bool) {
        if let Some(&id) = self.ids.get(name) {
            return (id, false);
        }
        let id = u32::try_from(self.names.len()).expect("more names than ids can number");
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.ids.insert(name, id);
        (id, true)
    }

    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(crate) fn name(&self, id: usize) -> &str {
        self.names.get(id).map_or("?", |name| name)
    }

    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
