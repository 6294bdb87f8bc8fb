//! The `tollgate` command. One file per command under `command/`.
//!
//! A library, so that cargo compiles it beside `tollgate-server`; a program waits for every
//! library that it links.

mod arguments;
mod command;

pub use arguments::main;
