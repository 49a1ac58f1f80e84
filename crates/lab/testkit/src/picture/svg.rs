//! As much of SVG as the pictures need.

use std::fmt::Write;

/// A drawing that grows downwards.
#[derive(Default)]
pub(super) struct Svg {
    body: String,
}

/// Where a text is set from its point.
#[derive(Clone, Copy)]
pub(super) enum Set {
    Right,
    Middle,
    Left,
}

impl Svg {
    /// Adds an element or several, as they are.
    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes everything");
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), set: Set, style: &str, text: &str) {
        let anchor = match set {
            Set::Right => "",
            Set::Middle => " text-anchor=\"middle\"",
            Set::Left => " text-anchor=\"end\"",
        };
        let (x, y, text) = (px(x), px(y), escape(text));
        self.add(format_args!("<text x=\"{x}\" y=\"{y}\"{anchor} class=\"{style}\">{text}</text>"));
    }

    /// A line of a class of the style sheet.
    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(px);
        self.add(format_args!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{style}\"/>"
        ));
    }

    /// The whole picture, of this size, with a style sheet and definitions.
    pub(super) fn finish(self, width: f64, height: f64, head: &str) -> String {
        let (width, height) = (px(width), px(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"12\">\n{head}{}</svg>\n",
            self.body
        )
    }
}

/// Pixels to the tenth.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
