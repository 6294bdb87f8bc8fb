//! The policy: what `tollgate.yaml` says, checked, linted and compiled; and which charges a request leads to.

pub mod address;
pub mod facts;
mod glob;
pub mod limit;
pub mod match_spec;
mod matcher;
pub mod path;
pub mod policy;
