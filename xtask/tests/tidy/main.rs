//! Checks of the tree itself: layout, dependency directions, lengths, bans. They are ordinary
//! tests, so they run with all others. Each check also has a test that it fails on a violation.

mod algorithms;
mod bans;
mod clocks;
mod contents;
mod decisions;
mod floats;
mod layout;
mod lengths;
mod library;
mod manifest;
mod map;
mod mask;
mod names;
mod no_std;
mod ratchet;
mod traces;
mod tree;
mod unsafety;
mod unwraps;
