//! The nodes of a virtual cluster as heavy jobs take turns on them.

use deepshare_model::Time;

/// GPUs of a node.
pub(super) const NODE_GPUS: u8 = 8;

/// A node, and GPUs on it.
pub(super) type Part = (usize, u8);

/// Nodes at one moment.
pub(super) struct Nodes {
    free: Vec<u8>,
    /// When each job gives its GPUs back.
    running: Vec<(Time, Vec<Part>)>,
}

/// GPUs kept for a job that does not fit yet.
pub(super) struct Reservation {
    from: Time,
    /// GPUs free beside it from then on.
    free: Vec<u8>,
}

impl Nodes {
    pub(super) fn new(nodes: usize) -> Nodes {
        Nodes { free: vec![NODE_GPUS; nodes], running: Vec::new() }
    }

    /// When the next job gives its GPUs back.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.running.iter().map(|&(end, _)| end).min()
    }

    /// Frees what has been given back.
    pub(super) fn release(&mut self, now: Time) {
        let free = &mut self.free;
        self.running.retain(|(end, parts)| {
            let ended = *end <= now;
            if ended {
                give(free, parts);
            }
            !ended
        });
    }

    /// Where a job fits that would hold its GPUs until `until`, if it delays no reserved job. The
    /// reservation learns of it.
    pub(super) fn fit(
        &self,
        gpus: u32,
        until: Time,
        reserved: Option<&mut Reservation>,
    ) -> Option<Vec<Part>> {
        let parts = fit(&self.free, gpus)?;
        let Some(reserved) = reserved else { return Some(parts) };
        if until > reserved.from {
            if parts.iter().any(|&(node, part)| reserved.free[node] < part) {
                return None;
            }
            take(&mut reserved.free, &parts);
        }
        Some(parts)
    }

    pub(super) fn start(&mut self, until: Time, parts: Vec<Part>) {
        take(&mut self.free, &parts);
        self.running.push((until, parts));
    }

    /// Keeps GPUs for a job from the first moment at which it fits.
    pub(super) fn reserve(&self, gpus: u32) -> Option<Reservation> {
        let mut free = self.free.clone();
        let mut running: Vec<&(Time, Vec<Part>)> = self.running.iter().collect();
        running.sort_by_key(|(end, _)| *end);
        for (end, parts) in running {
            give(&mut free, parts);
            if let Some(parts) = fit(&free, gpus) {
                take(&mut free, &parts);
                return Some(Reservation { from: *end, free });
            }
        }
        None
    }
}

/// Whole nodes and, on the fullest with room, the rest.
fn fit(free: &[u8], gpus: u32) -> Option<Vec<Part>> {
    let whole = (gpus / u32::from(NODE_GPUS)) as usize;
    let rest = (gpus % u32::from(NODE_GPUS)) as u8;
    let empty = (0..free.len()).filter(|&node| free[node] == NODE_GPUS);
    let mut parts: Vec<Part> = empty.take(whole).map(|node| (node, NODE_GPUS)).collect();
    if parts.len() < whole {
        return None;
    }
    if rest > 0 {
        let others = (0..free.len()).filter(|&node| !parts.contains(&(node, NODE_GPUS)));
        let roomy = others.filter(|&node| free[node] >= rest);
        parts.push((roomy.min_by_key(|&node| free[node])?, rest));
    }
    Some(parts)
}

fn take(free: &mut [u8], parts: &[Part]) {
    parts.iter().for_each(|&(node, part)| free[node] -= part);
}

fn give(free: &mut [u8], parts: &[Part]) {
    parts.iter().for_each(|&(node, part)| free[node] += part);
}
