//! Bars, lines and text, in tenths of a pixel, so that every coordinate is a whole number.
//!
//! Blue and orange can be distinguished with any colour vision, on white and on black, and by
//! lightness alone. The picture has its own background in the reader's colour scheme, so that it
//! fits any page.

#[cfg(test)]
mod tests;

use std::fmt::Write;

const STYLE: &str = "\
svg{color-scheme:light dark;font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
text{fill:#24292f}.b{fill:#fff}.g{stroke:#d0d7de}.t{font-size:17px;font-weight:600}.n{font-weight:600}.m{fill:#57606a}\
.e{text-anchor:end}.c{text-anchor:middle}.a{fill:#0072b2}.r{fill:#e69f00}.l{stroke:#24292f;stroke-width:1.2;stroke-dasharray:4 3}\
.h{fill:transparent}.h:hover{fill:#8c959f;fill-opacity:.25}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.g{stroke:#30363d}.m{fill:#9198a1}.a{fill:#4aa8e0}\
.l{stroke:#e6edf3}}";

/// A picture in progress. The classes of its style are: `t` title, `n` name, `m` muted, `e`
/// right-aligned, `c` centred, `g` grid line, `a` admitted, `r` refused, `l` dashed line, `h` shown
/// under the pointer.
#[derive(Debug)]
pub struct Canvas(String);

impl Canvas {
    /// Creates an empty picture of this size, with a title at `left` and additional style rules.
    pub fn new(title: &str, left: u64, (width, height): (u64, u64), rules: &str) -> Self {
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">{}</title>\n<style>{STYLE}{rules}</style>\n\
             <rect class=\"b\" width=\"100%\" height=\"100%\"/>\n",
            escaped(title),
            w = px(width),
            h = px(height),
        );
        let mut canvas = Self(out);
        canvas.text("t", left, 320, title);
        canvas
    }

    /// Draws text that starts, ends or is centred at a point, depending on its class.
    pub fn text(&mut self, class: &str, x: u64, y: u64, text: &str) {
        if !text.is_empty() {
            let (x, y, text) = (px(x), px(y), escaped(text));
            let _ = writeln!(self.0, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }

    /// Draws a name and its description.
    pub fn heading(&mut self, x: u64, y: u64, name: &str, description: &str) {
        let _ = writeln!(
            self.0,
            "<text x=\"{}\" y=\"{}\"><tspan class=\"n\">{}</tspan><tspan class=\"m\" dx=\"8\">{}</tspan></text>",
            px(x),
            px(y),
            escaped(name),
            escaped(description)
        );
    }

    /// Draws a filled rectangle.
    pub fn rect(&mut self, class: &str, (x, y): (u64, u64), (width, height): (u64, u64)) {
        let (x, y, w, h) = (px(x), px(y), px(width), px(height));
        let _ = write!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>"
        );
    }

    /// Draws a line.
    pub fn line(&mut self, class: &str, from: (u64, u64), to: (u64, u64)) {
        self.path(class, &[from, to]);
    }

    /// Draws a line through several points.
    pub fn path(&mut self, class: &str, points: &[(u64, u64)]) {
        let _ = write!(self.0, "<path class=\"{class}\" d=\"");
        for (place, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.0, "{}{} {}", if place == 0 { 'M' } else { 'L' }, px(*x), px(*y));
        }
        self.0.push_str("\"/>\n");
    }

    /// Draws a group with a tooltip.
    pub fn group(&mut self, shown: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<g><title>{}</title>", escaped(shown));
        draw(self);
        self.0.push_str("</g>\n");
    }

    /// Returns the SVG file.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Formats tenths of a pixel.
fn px(tenths: u64) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// Escapes text for XML and HTML. Control characters are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML does not allow control characters, not even escaped ones.
            char if char.is_control() => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out
}
