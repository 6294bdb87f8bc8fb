//! One rate-limit engine for every place where traffic passes.

mod source;
mod verdict;

pub use source::Source;
pub use tollgate_policy::limit;
pub use verdict::{Row, Verdict};
