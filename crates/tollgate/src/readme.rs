//! The examples of the front page, compiled.
#![doc = include_str!("../../../README.md")]
