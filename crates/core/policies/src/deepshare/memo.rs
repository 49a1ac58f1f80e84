//! Values by number that are forgotten all at once, at no cost.

/// What was worked out, by number.
#[derive(Clone, Debug)]
pub(super) struct Memo<T> {
    /// With the stamp as of which each holds.
    entries: Vec<(u64, T)>,
    stamp: u64,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        // Entries begin with stamp 0: none holds.
        Memo { entries: Vec::new(), stamp: 1 }
    }
}

impl<T: Copy + Default> Memo<T> {
    /// What is known of a number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<T> {
        let entry = self.entries.get(number).filter(|(stamp, _)| *stamp == self.stamp);
        entry.map(|&(_, value)| value)
    }

    /// Notes a value.
    pub(super) fn set(&mut self, number: usize, value: T) {
        if self.entries.len() <= number {
            self.entries.resize(number + 1, (0, T::default()));
        }
        self.entries[number] = (self.stamp, value);
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.stamp += 1;
    }
}
