//! Growth of the time of a decision, drawn.

use plotters::prelude::*;
use std::ops::Range;

/// Medians and 99th percentiles in microseconds, by size.
pub struct Panel {
    /// Above the panel.
    pub title: &'static str,
    /// What grows.
    pub size: &'static str,
    /// Sizes ascending.
    pub points: Vec<Point>,
}

/// What was measured at one size.
pub struct Point {
    /// GPUs, or waiting jobs.
    pub size: f64,
    /// Microseconds.
    pub median: f64,
    /// Microseconds.
    pub p99: f64,
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 360;
const MEDIAN: RGBColor = RGBColor(0x0b, 0x6e, 0x99);
const P99: RGBColor = RGBColor(0xb8, 0x4a, 0x00);
/// The bar, in microseconds.
const BAR: f64 = 1_000.0;

/// Panels side by side, both axes logarithmic, as an SVG.
pub fn svg(panels: &[Panel]) -> String {
    let mut text = String::new();
    draw(panels, &mut text).expect("a string has no room to run out of");
    text.push('\n');
    text
}

type Failure = DrawingAreaErrorKind<std::io::Error>;

fn draw(panels: &[Panel], text: &mut String) -> Result<(), Failure> {
    let area = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let all = || panels.iter().flat_map(|panel| &panel.points);
    let low = all().map(|point| point.median).fold(BAR, f64::min).max(0.1);
    let high = all().map(|point| point.p99).fold(BAR, f64::max);
    for (panel, part) in panels.iter().zip(area.split_evenly((1, panels.len()))) {
        draw_panel(panel, &part, low * 0.5..high * 2.0)?;
    }
    area.present()
}

fn draw_panel(
    panel: &Panel,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    micros: Range<f64>,
) -> Result<(), Failure> {
    let sizes = panel.points.iter().map(|point| point.size);
    let (least, most) = (sizes.clone().fold(f64::MAX, f64::min), sizes.fold(1.0, f64::max));
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 16))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((least * 0.9..most * 1.1).log_scale(), micros.log_scale())?;
    let mesh = &mut chart.configure_mesh();
    mesh.x_desc(panel.size).y_desc("µs").light_line_style(WHITE);
    mesh.x_labels(4).x_label_formatter(&|size| grouped(*size));
    mesh.y_labels(6).y_label_formatter(&|micros| grouped(*micros)).draw()?;
    for (name, color, is_p99) in [("median", MEDIAN, false), ("99th percentile", P99, true)] {
        let value = |point: &Point| if is_p99 { point.p99 } else { point.median };
        let line = panel.points.iter().map(|point| (point.size, value(point)));
        let marks = line.clone().map(|point| Circle::new(point, 3, color.filled()));
        let drawn = chart.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
        drawn
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y), (x + 16, y + 2)], color.filled()));
        chart.draw_series(marks)?;
    }
    let legend = &mut chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).background_style(WHITE).draw()
}

/// A number with its thousands apart; small ones as they are.
fn grouped(number: f64) -> String {
    if number < 10_000.0 { format!("{number}") } else { format!("{},000", number / 1_000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_panel_has_a_line_for_medians_and_one_for_percentiles() {
        let panel = |title| Panel {
            title,
            size: "GPUs",
            points: vec![
                Point { size: 1_000.0, median: 5.0, p99: 50.0 },
                Point { size: 10_000.0, median: 6.0, p99: 70.0 },
            ],
        };
        let svg = svg(&[panel("one"), panel("two")]);
        for color in ["#0B6E99", "#B84A00"] {
            let of = |line: &&str| line.starts_with("<polyline") && line.contains(color);
            assert_eq!(svg.lines().filter(of).count(), 2, "{color}\n{svg}");
            let mark = |line: &&str| line.starts_with("<circle") && line.contains(color);
            assert_eq!(svg.lines().filter(mark).count(), 4, "{color}");
        }
        assert!(svg.contains("one") && svg.contains("two"));
    }
}
