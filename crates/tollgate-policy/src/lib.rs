//! The policy: what `tollgate.yaml` says, checked, linted and compiled; and which charges a request leads to.

pub mod limit;
