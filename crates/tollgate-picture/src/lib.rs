//! Pictures, drawn without a library: marks of axes, and bars, lines and text as SVG.
//!
//! Every `--plot` of `tollgate` and the simulation of leases use this crate, so that their pictures
//! look alike.

pub mod axis;
mod bars;
mod canvas;

pub use bars::BarPanel;
pub use canvas::{Canvas, escaped};
