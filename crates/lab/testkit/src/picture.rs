//! Pictures of schedules: a row for each device with a box for each job on it, and below them a row
//! for each job with its waiting and why.
//!
//! A picture is plain SVG with its own background, so that it reads the same on light pages and on
//! dark ones. It depends on nothing but the schedule: equal schedules have equal pictures.

mod files;
mod schedule;
mod shape;
mod svg;

pub use files::Pictures;
pub use schedule::{Recorder, Schedule, ShownJob, Stay, Wait};

use deepshare_model::{JobId, NodeId, Time};
use shape::{OnDevice, Piece, between, boxes, end_of};
use svg::{Set, Svg, escape, px};

const WIDTH: f64 = 860.0;
/// Between the left border and the plot: names of devices and jobs.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 62.0;
const ROW: f64 = 28.0;
/// Between rows of one node, and between nodes.
const GAP: f64 = 3.0;
const NODE_GAP: f64 = 10.0;
const AXIS: f64 = 34.0;
const JOB_ROW: f64 = 20.0;
const LEGEND: f64 = 40.0;
/// How much of the end of a box shows that the job was sent away, if it left at once.
const MARK: f64 = 9.0;
/// Width of a letter, about.
const LETTER: f64 = 6.4;

/// Fills and lines, by job.
const COLORS: [(&str, &str); 8] = [
    ("#a6cee3", "#2b6c93"),
    ("#fdc98b", "#a85a00"),
    ("#b5dba4", "#3a7a2a"),
    ("#f4b6c2", "#a33b54"),
    ("#cfc0e6", "#62479a"),
    ("#f2e394", "#857000"),
    ("#a8dcd5", "#1f746a"),
    ("#d9c3ae", "#77522d"),
];

const HEAD: &str = "\
<style>
text { fill: #1f2328 }
.title { font-size: 15px; font-weight: bold }
.small { font-size: 11px; fill: #57606a }
.why { font-size: 10.5px; fill: #454c54 }
.beside { font-size: 10.5px; fill: #454c54; stroke: #ffffff; stroke-width: 3; paint-order: stroke }
.job { font-weight: bold }
.grid { stroke: #d8dee4 }
.axis { stroke: #57606a }
.came { stroke: #57606a; stroke-dasharray: 2 3 }
.end { stroke: #1f2328; stroke-width: 2 }
</style>
<defs><pattern id=\"gone\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"5\" fill=\"#1f2328\" \
fill-opacity=\"0.55\"/></pattern></defs>
<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#ffffff\" stroke=\"#d0d7de\"/>
";

/// The picture of a schedule, as SVG.
pub fn picture(schedule: &Schedule, title: &str, subtitle: &str) -> String {
    Picture { schedule, svg: Svg::default(), y: TOP }.draw(title, subtitle)
}

struct Picture<'a> {
    schedule: &'a Schedule,
    svg: Svg,
    /// How far down it is drawn.
    y: f64,
}

impl Picture<'_> {
    fn draw(mut self, title: &str, subtitle: &str) -> String {
        self.svg.text((16.0, 24.0), Set::Right, "title", title);
        self.svg.text((16.0, 41.0), Set::Right, "small", subtitle);
        self.grid();
        self.devices();
        self.axis();
        for index in 0..self.schedule.jobs.len() {
            self.job(JobId::from_index(index));
        }
        self.legend();
        self.svg.finish(WIDTH, self.y, HEAD)
    }

    fn x(&self, time: Time) -> f64 {
        let whole = self.schedule.end.0.max(1) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * time.0 as f64 / whole
    }

    fn devices_height(&self) -> f64 {
        let nodes = self.schedule.nodes.iter().filter(|&&gpus| gpus > 0);
        let of_node = |&gpus: &u32| f64::from(gpus) * (ROW + GAP) - GAP + NODE_GAP;
        nodes.map(of_node).sum::<f64>() - NODE_GAP
    }

    /// Behind everything: lines at the ticks, and where jobs come.
    fn grid(&mut self) {
        let bottom = TOP + self.devices_height();
        let jobs = bottom + AXIS + JOB_ROW * self.schedule.jobs.len() as f64;
        for tick in ticks(self.schedule.end) {
            let x = self.x(tick);
            self.svg.line((x, TOP), (x, bottom), "grid");
            self.svg.line((x, bottom + AXIS), (x, jobs), "grid");
        }
        for at in 0..self.schedule.jobs.len() {
            let job = JobId::from_index(at);
            let x = self.x(self.schedule.jobs[at].submitted);
            self.svg.line((x, TOP), (x, bottom), "came");
            self.arrival(job, TOP - 2.0);
        }
    }

    fn devices(&mut self) {
        let nodes = self.schedule.nodes.iter().enumerate().filter(|&(_, &gpus)| gpus > 0);
        for (node, &gpus) in nodes {
            for device in 0..gpus {
                let name = format!("n{node}[{device}]");
                let middle = self.y + ROW / 2.0 + 4.0;
                self.svg.text((LEFT - 10.0, middle), Set::Left, "small", &name);
                let (x, width) = (px(LEFT), px(WIDTH - LEFT - RIGHT));
                let (y, height) = (px(self.y), px(ROW));
                self.svg.add(format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                     fill=\"#f6f8fa\" fill-opacity=\"0.7\"/>"
                ));
                for one in boxes(self.schedule, (NodeId::from_index(node), device)) {
                    self.stay(&one, &name);
                }
                self.y += ROW + GAP;
            }
            self.y += NODE_GAP - GAP;
        }
        self.y -= NODE_GAP;
    }

    fn stay(&mut self, one: &OnDevice<'_>, device: &str) {
        let Stay { job, placed, running, evicted, .. } = *one.stay;
        let end = end_of(one.stay, self.schedule);
        let (fill, line) = color(job);
        let name = &self.schedule.jobs[job.index()].name;
        let how = if evicted.is_some() { ", evicted" } else { "" };
        let hint = escape(&format!("{name} on {device}: {placed} to {end}{how}"));
        let path = self.outline(&one.pieces);
        self.svg.add(format_args!(
            "<path d=\"{path}\" fill=\"{fill}\" stroke=\"{line}\"><title>{hint}</title></path>"
        ));
        let works = running.unwrap_or(end);
        if placed < works {
            let path = self.outline(&between(&one.pieces, placed, works));
            self.svg
                .add(format_args!("<path d=\"{path}\" fill=\"#ffffff\" fill-opacity=\"0.7\"/>"));
        }
        if let Some(evicted) = evicted {
            self.sent_away(one, evicted, end);
        }
        self.name(one, name);
        if one.stay.released.is_none() {
            let last = one.pieces.last().expect("a box has a length");
            let y = self.y + ROW * (last.top + last.bottom) / 2.0 + 4.5;
            self.svg.text((WIDTH - RIGHT + 4.0, y), Set::Right, "job", "›");
        }
    }

    /// The end of a job that was sent away.
    fn sent_away(&mut self, one: &OnDevice<'_>, evicted: Time, end: Time) {
        let micros = self.schedule.end.0 as f64 / (WIDTH - LEFT - RIGHT);
        let mark = Time(end.0.saturating_sub((MARK * micros) as u64));
        let path = self.outline(&between(&one.pieces, evicted.min(mark), end));
        self.svg.add(format_args!("<path d=\"{path}\" fill=\"url(#gone)\"/>"));
        let last = one.pieces.last().expect("a box has a length");
        let (x, y) = (self.x(end), self.y);
        self.svg.line((x, y + ROW * last.top), (x, y + ROW * last.bottom), "end");
    }

    /// The job's name in its longest piece, if there is room for it.
    fn name(&mut self, one: &OnDevice<'_>, name: &str) {
        let until = one.stay.evicted.unwrap_or(Time::MAX);
        let pieces = between(&one.pieces, Time::ZERO, until);
        let length = |piece: &&Piece| piece.to.saturating_since(piece.from);
        let Some(longest) = pieces.iter().max_by_key(length) else { return };
        let (from, to) = (self.x(longest.from), self.x(longest.to));
        if to - from < LETTER * name.chars().count() as f64 + 4.0 {
            return;
        }
        let y = self.y + ROW * (longest.top + longest.bottom) / 2.0 + 4.3;
        self.svg.text(((from + to) / 2.0, y), Set::Middle, "job", name);
    }

    /// The line around pieces that follow each other.
    fn outline(&self, pieces: &[Piece]) -> String {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for piece in pieces {
            let y = self.y + ROW * piece.top;
            points.extend([(self.x(piece.from), y), (self.x(piece.to), y)]);
        }
        for piece in pieces.iter().rev() {
            let y = self.y + ROW * piece.bottom;
            points.extend([(self.x(piece.to), y), (self.x(piece.from), y)]);
        }
        points.dedup();
        let words = points.iter().map(|&(x, y)| format!("{} {}", px(x), px(y)));
        format!("M{}Z", words.collect::<Vec<_>>().join("L"))
    }

    fn axis(&mut self) {
        let y = self.y + 4.0;
        self.svg.line((LEFT, y), (WIDTH - RIGHT, y), "axis");
        for tick in ticks(self.schedule.end) {
            let x = self.x(tick);
            self.svg.line((x, y), (x, y + 4.0), "axis");
            self.svg.text((x, y + 17.0), Set::Middle, "small", &tick.to_string());
        }
        self.y += AXIS;
    }

    /// A job's row: when it came, where it ran, when and why it waited.
    fn job(&mut self, id: JobId) {
        let job = &self.schedule.jobs[id.index()];
        let (fill, line) = color(id);
        let middle = self.y + JOB_ROW / 2.0;
        self.svg.text((LEFT - 10.0, middle + 4.0), Set::Left, "job", &job.name);
        for stay in self.schedule.stays.iter().filter(|stay| stay.job == id) {
            let (from, to) = (self.x(stay.placed), self.x(end_of(stay, self.schedule)));
            let (x, y, width) = (px(from), px(middle - 3.0), px(to - from));
            self.svg.add(format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"6\" fill=\"{fill}\" \
                 stroke=\"{line}\" stroke-width=\"0.8\"/>"
            ));
        }
        for (at, wait) in job.waits.iter().enumerate() {
            let next = job.waits.get(at + 1).map_or(WIDTH - RIGHT, |next| self.x(next.from));
            self.wait(wait, middle, next);
        }
        self.arrival(id, middle - 1.0);
        self.y += JOB_ROW;
    }

    /// A mark that points down at the instant at which a job came.
    fn arrival(&mut self, id: JobId, tip: f64) {
        let x = self.x(self.schedule.jobs[id.index()].submitted);
        let (left, right, top) = (px(x - 4.0), px(x + 4.0), px(tip - 7.0));
        let (x, tip, (_, line)) = (px(x), px(tip), color(id));
        self.svg.add(format_args!(
            "<path d=\"M{left} {top}L{right} {top}L{x} {tip}Z\" fill=\"{line}\"/>"
        ));
    }

    /// A bar with the reason in it, or beside it if there is room before the next one.
    fn wait(&mut self, wait: &Wait, middle: f64, next: f64) {
        let (from, to) = (self.x(wait.from), self.x(wait.to));
        let (x, y, width) = (px(from), px(middle - 7.0), px(to - from));
        let (word, hint) = (wait.word, format!("{}: {} to {}", wait.word, wait.from, wait.to));
        self.svg.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"14\" rx=\"2\" fill=\"#e4e8ec\" \
             stroke=\"#8c959f\" stroke-width=\"0.8\"><title>{hint}</title></rect>"
        ));
        let needs = (LETTER - 1.0) * word.len() as f64 + 12.0;
        let inside = to - from >= needs;
        if inside || next - to >= needs {
            let x = if inside { from + 8.0 } else { to + 4.0 };
            let style = if inside { "why" } else { "beside" };
            self.svg.text((x, middle + 3.7), Set::Right, style, word);
        }
    }

    /// What the marks mean, as far as there are any.
    fn legend(&mut self) {
        let stays = &self.schedule.stays;
        let y = self.y + 24.0;
        let mut x = LEFT;
        let mut entry = |sample: &str, text: &str| {
            let at = px(x);
            let top = px(y - 10.0);
            self.svg.add(format_args!("<g transform=\"translate({at} {top})\">{sample}</g>"));
            self.svg.text((x + 26.0, y), Set::Right, "small", text);
            x += 26.0 + (LETTER - 0.8) * text.len() as f64 + 22.0;
        };
        entry("<path d=\"M7 1L15 1L11 8Z\" fill=\"#57606a\"/>", "arrival");
        if self.schedule.jobs.iter().any(|job| !job.waits.is_empty()) {
            let bar = "<rect width=\"20\" height=\"12\" rx=\"2\" fill=\"#e4e8ec\" \
                       stroke=\"#8c959f\" stroke-width=\"0.8\"/>";
            entry(bar, "waits, and why");
        }
        if stays.iter().any(|stay| stay.evicted.is_some()) {
            let end = "<rect width=\"20\" height=\"12\" fill=\"#d8dee4\"/><rect x=\"10\" \
                       width=\"10\" height=\"12\" fill=\"url(#gone)\"/>";
            entry(end, "evicted");
        }
        if stays.iter().any(|stay| stay.running != Some(stay.placed)) {
            let start = "<rect width=\"20\" height=\"12\" fill=\"#f2f4f6\" stroke=\"#8c959f\"/>";
            entry(start, "starting");
        }
        if stays.iter().any(|stay| stay.released.is_none()) {
            entry("<text x=\"8\" y=\"11\" class=\"job\">›</text>", "goes on");
        }
        self.y += LEGEND;
    }
}

fn color(job: JobId) -> (&'static str, &'static str) {
    COLORS[job.index() % COLORS.len()]
}

/// Round instants from 0 to `end`, 5 to 12 of them.
fn ticks(end: Time) -> Vec<Time> {
    let mut steps = (0..18).flat_map(|power| [1, 2, 5].map(|first| first * 10_u64.pow(power)));
    let step = steps.find(|step| end.0 / step <= 11).unwrap_or(u64::MAX);
    (0..=end.0 / step).map(|at| Time(at * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_neither_few_nor_many() {
        for seconds in [1, 7, 99, 110, 270, 550, 86_400] {
            let ticks = ticks(Time::from_secs(seconds));
            assert!((5..=12).contains(&ticks.len()), "{seconds}: {ticks:?}");
        }
        assert_eq!(ticks(Time::from_secs(110))[1], Time::from_secs(10));
        assert_eq!(ticks(Time::ZERO), [Time::ZERO]);
    }
}
