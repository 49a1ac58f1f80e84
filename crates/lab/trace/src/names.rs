//! Names turned into dense numbers, in order of first use.

use std::collections::BTreeMap;

/// A table of names without repetition.
#[derive(Default)]
pub(crate) struct Names {
    list: Vec<String>,
    index: BTreeMap<String, u32>,
}

impl Names {
    /// A table that starts with `known`, in that order.
    pub(crate) fn starting_with(known: &[String]) -> Names {
        let mut names = Names::default();
        for name in known {
            names.number(name);
        }
        names
    }

    /// The number of `name`, which is given the next one if it is new.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(name.to_owned());
        self.index.insert(name.to_owned(), number);
        number
    }

    /// The number of `name` if it has one.
    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// The names, by number.
    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}
