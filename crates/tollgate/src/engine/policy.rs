//! Policies: from a file's text to the limits that apply to a request.

pub use tollgate_policy::facts::{Facts, FactsBuffer};
pub use tollgate_policy::policy::{Applicability, InvalidPolicy, Policy, PolicyOptions};
pub use tollgate_policy::{Compiled, Diagnostic, PolicyError, compile};
