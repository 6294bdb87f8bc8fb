//! The engine from outside: a file's text in, verdicts out.

mod desk;
mod gate;
mod reservations;
