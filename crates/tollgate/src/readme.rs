//! The examples of the front page and of the crate's own README, compiled.
#![doc = include_str!("../../../README.md")]
#![doc = include_str!("../README.md")]
