//! What must be true of the tree itself: layout, dependency directions, lengths, bans. An ordinary
//! test, so that nobody has to remember to run it; each check also has a test that it complains
//! about what it is there for.

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
