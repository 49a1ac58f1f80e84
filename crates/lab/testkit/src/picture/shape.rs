//! Which part of a device's row a stay takes: all of it alone, a half beside another.

use super::schedule::{Schedule, Stay};
use deepshare_model::{NodeId, Time};

/// One stay on one device.
pub(super) struct OnDevice<'a> {
    pub(super) stay: &'a Stay,
    /// Pieces of time in order, each with the part of the row.
    pub(super) pieces: Vec<Piece>,
}

/// A stretch in which the part of the row is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) from: Time,
    pub(super) to: Time,
    /// Upper edge, as a share of the row's height.
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// When a stay is over, as far as the picture goes.
pub(super) fn end_of(stay: &Stay, schedule: &Schedule) -> Time {
    stay.released.unwrap_or(schedule.end)
}

/// All stays on a device, those of no length left out.
pub(super) fn boxes(schedule: &Schedule, device: (NodeId, u32)) -> Vec<OnDevice<'_>> {
    let on_device = schedule.stays.iter().filter(|stay| stay.devices.contains(&device));
    let stays: Vec<&Stay> = on_device.filter(|stay| stay.placed < end_of(stay, schedule)).collect();
    let mut lower: Vec<bool> = Vec::with_capacity(stays.len());
    for (at, stay) in stays.iter().enumerate() {
        // Stays begin in order, so who is there already has a half.
        let there = (0..at).find(|&other| end_of(stays[other], schedule) > stay.placed);
        lower.push(there.is_some_and(|other| !lower[other]));
    }
    let boxes = stays
        .iter()
        .enumerate()
        .map(|(at, stay)| OnDevice { stay, pieces: pieces(schedule, &stays, at, lower[at]) });
    boxes.collect()
}

fn pieces(schedule: &Schedule, stays: &[&Stay], at: usize, lower: bool) -> Vec<Piece> {
    let (from, to) = (stays[at].placed, end_of(stays[at], schedule));
    let others = || stays.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, s)| *s);
    let mut times: Vec<Time> =
        others().flat_map(|other| [other.placed, end_of(other, schedule)]).collect();
    times.retain(|&time| from < time && time < to);
    times.extend([from, to]);
    times.sort_unstable();
    times.dedup();
    let mut pieces: Vec<Piece> = Vec::new();
    for pair in times.windows(2) {
        let shared = others().any(|o| o.placed < pair[1] && pair[0] < end_of(o, schedule));
        let (top, bottom) = match (shared, lower) {
            (false, _) => (0.0, 1.0),
            (true, false) => (0.0, 0.5),
            (true, true) => (0.5, 1.0),
        };
        match pieces.last_mut() {
            Some(last) if (last.top, last.bottom) == (top, bottom) => last.to = pair[1],
            _ => pieces.push(Piece { from: pair[0], to: pair[1], top, bottom }),
        }
    }
    pieces
}

/// The pieces as far as they lie between two instants.
pub(super) fn between(pieces: &[Piece], from: Time, to: Time) -> Vec<Piece> {
    let cut = pieces.iter().map(|p| Piece { from: p.from.max(from), to: p.to.min(to), ..*p });
    cut.filter(|piece| piece.from < piece.to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_model::JobId;

    const DEVICE: (NodeId, u32) = (NodeId(0), 0);

    fn stay(job: u32, from: u64, to: u64) -> Stay {
        Stay {
            job: JobId(job),
            devices: vec![DEVICE],
            placed: Time(from),
            running: Some(Time(from)),
            evicted: None,
            released: Some(Time(to)),
        }
    }

    fn piece(from: u64, to: u64, top: f64, bottom: f64) -> Piece {
        Piece { from: Time(from), to: Time(to), top, bottom }
    }

    #[test]
    fn a_stay_has_the_row_alone_and_a_half_beside_another() {
        // The third comes as the first leaves, and gets the half that came free.
        let stays = vec![stay(0, 0, 50), stay(1, 20, 90), stay(2, 50, 60), stay(3, 60, 60)];
        let schedule = Schedule { stays, end: Time(90), ..Schedule::default() };
        let boxes = boxes(&schedule, DEVICE);
        assert_eq!(boxes.len(), 3, "what has no length is not there");
        assert_eq!(boxes[0].pieces, [piece(0, 20, 0.0, 1.0), piece(20, 50, 0.0, 0.5)]);
        assert_eq!(boxes[1].pieces, [piece(20, 60, 0.5, 1.0), piece(60, 90, 0.0, 1.0)]);
        assert_eq!(boxes[2].pieces, [piece(50, 60, 0.0, 0.5)]);
        let cut = between(&boxes[1].pieces, Time(50), Time(70));
        assert_eq!(cut, [piece(50, 60, 0.5, 1.0), piece(60, 70, 0.0, 1.0)]);
        assert!(self::boxes(&schedule, (NodeId(0), 1)).is_empty());
    }
}
