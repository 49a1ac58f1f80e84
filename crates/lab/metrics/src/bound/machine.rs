//! One preemptive machine that always serves the job with the least work left: what a pool would
//! be if any job could use all of it.

use deepshare_model::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job for the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub release: Time,
    pub duration: Span,
    /// GPU-microseconds, positive.
    pub work: u128,
}

/// The machine at an instant. Its clock counts microseconds times its speed, so that a job of `p`
/// GPU-microseconds takes `p` ticks and everything is whole.
pub(super) struct Machine<'a> {
    tasks: &'a [Task],
    speed: u128,
    clock: u128,
    /// Tasks not yet released start here.
    next: usize,
    left: Vec<u128>,
    waiting: BinaryHeap<Reverse<(u128, u32)>>,
}

impl<'a> Machine<'a> {
    /// A machine for `tasks`, which are sorted by release.
    pub fn new(tasks: &'a [Task], speed: u64) -> Machine<'a> {
        Machine {
            tasks,
            speed: u128::from(speed),
            clock: 0,
            next: 0,
            left: tasks.iter().map(|task| task.work).collect(),
            waiting: BinaryHeap::new(),
        }
    }

    /// The sum of end less release, in microseconds, rounded down.
    pub fn flow_micros(mut self) -> u128 {
        let mut ticks = 0;
        while let Some(task) = self.serve() {
            if self.left[task] == 0 {
                ticks += self.clock - self.release(task);
            }
        }
        ticks / self.speed
    }

    /// Serves one job until it ends or the next is released, and tells which. `None` when all
    /// have ended.
    fn serve(&mut self) -> Option<usize> {
        if self.waiting.is_empty() {
            if self.next == self.tasks.len() {
                return None;
            }
            self.clock = self.clock.max(self.release(self.next));
        }
        while self.next < self.tasks.len() && self.release(self.next) <= self.clock {
            self.wait(self.next);
            self.next += 1;
        }
        let Reverse((_, task)) = self.waiting.pop().expect("one was just released or waits");
        let task = task as usize;
        let from = self.clock;
        let end = from + self.left[task];
        let to = if self.next == self.tasks.len() { end } else { end.min(self.release(self.next)) };
        self.clock = to;
        self.left[task] -= to - from;
        if self.left[task] > 0 {
            self.wait(task);
        }
        Some(task)
    }

    fn wait(&mut self, task: usize) {
        let id = u32::try_from(task).expect("fewer jobs than ids");
        self.waiting.push(Reverse((self.left[task], id)));
    }

    fn release(&self, task: usize) -> u128 {
        u128::from(self.tasks[task].release.0) * self.speed
    }
}
