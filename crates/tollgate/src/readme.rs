//! Compiles the examples of the front page and of the crate's README.
#![doc = include_str!("../../../README.md")]
#![doc = include_str!("../README.md")]
