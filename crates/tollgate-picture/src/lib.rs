//! Pictures, drawn by hand: where the marks of an axis stand, and bars, lines and words as SVG.
//!
//! `tollgate simulate --plot` and the simulation of leases draw with it, so that their pictures
//! look alike.

pub mod axis;
mod canvas;

pub use canvas::{Canvas, escaped};
