//! Pictures, drawn by hand: where the marks of an axis stand, and bars, lines and words as SVG.
//!
//! Every `--plot` of `tollgate` and the simulation of leases draw with it, so that their pictures
//! look alike.

pub mod axis;
mod bars;
mod canvas;

pub use bars::BarPanel;
pub use canvas::{Canvas, escaped};
