//! One preemptive machine that serves jobs by size: what a pool would be if any job could use
//! all of it.

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

/// Which of the released jobs is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The one with the least work left.
    LeastLeft,
    /// The one with the least work in all.
    Smallest,
}

/// The machine at an instant. Its clock counts microseconds times its speed, so that a job of `p`
/// GPU-microseconds takes `p` ticks and everything is whole.
pub(super) struct Machine<'a> {
    tasks: &'a [Task],
    speed: u128,
    order: Order,
    clock: u128,
    /// Tasks not yet released start here.
    next: usize,
    left: Vec<u128>,
    waiting: BinaryHeap<Reverse<(u128, u32)>>,
}

/// An uninterrupted stretch of service, in ticks.
struct Stretch {
    task: usize,
    from: u128,
    to: u128,
    last: bool,
}

impl<'a> Machine<'a> {
    /// A machine for `tasks`, which are sorted by release.
    pub fn new(tasks: &'a [Task], speed: u64, order: Order) -> Machine<'a> {
        Machine {
            tasks,
            speed: u128::from(speed),
            order,
            clock: 0,
            next: 0,
            left: tasks.iter().map(|task| task.work).collect(),
            waiting: BinaryHeap::new(),
        }
    }

    /// The sum of end less release, in microseconds, rounded down.
    pub fn flow_micros(mut self) -> u128 {
        let mut ticks = 0;
        while let Some(stretch) = self.serve() {
            if stretch.last {
                ticks += stretch.to - self.release(stretch.task);
            }
        }
        ticks / self.speed
    }

    /// The sum of mean busy instant less release, in microseconds, rounded down.
    pub fn mean_busy_micros(mut self) -> u128 {
        // The share of a job's work in one stretch is a fraction, so this sum is a float, in a
        // fixed order; its relative error is some 1e-15.
        let mut micros = 0.0;
        while let Some(stretch) = self.serve() {
            let release = self.release(stretch.task);
            let middle = (stretch.from - release) as f64 + (stretch.to - stretch.from) as f64 / 2.0;
            let share = (stretch.to - stretch.from) as f64 / self.tasks[stretch.task].work as f64;
            micros += middle * share / self.speed as f64;
        }
        micros as u128
    }

    /// Serves one job until it ends or the next is released. `None` when all have ended.
    fn serve(&mut self) -> Option<Stretch> {
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
        let last = self.left[task] == 0;
        if !last {
            self.wait(task);
        }
        Some(Stretch { task, from, to, last })
    }

    fn wait(&mut self, task: usize) {
        let key = match self.order {
            Order::LeastLeft => self.left[task],
            Order::Smallest => self.tasks[task].work,
        };
        let id = u32::try_from(task).expect("fewer jobs than ids");
        self.waiting.push(Reverse((key, id)));
    }

    fn release(&self, task: usize) -> u128 {
        u128::from(self.tasks[task].release.0) * self.speed
    }
}
