#![doc = include_str!("../../../docs/tower.md")]
#![doc = include_str!("../../../docs/library.md")]
