#![doc = include_str!("../../../docs/tower.md")]
