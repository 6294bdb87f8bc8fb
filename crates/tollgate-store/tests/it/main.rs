//! What the memory store promises, seen from outside.

mod conformance;
mod grouped;
mod stress;
