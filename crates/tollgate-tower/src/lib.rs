//! HTTP and the engine, in both directions: a request's head becomes facts, a verdict becomes an
//! answer's head.
//!
//! [`HttpGate`] is what stands between any server of HTTP and a [`Gate`](tollgate::Gate);
//! Tollgate's own gateway and its forward-auth run it, and so does the tower layer for services of
//! your own.

mod answer;
mod engine;
#[cfg(doctest)]
mod guide;
mod header_class;
mod keep;
mod layer;
mod pass;
mod read;
mod standalone;
mod timer;
mod token;
mod toll;
mod usage;

pub use answer::{RateLimitHeaders, Refusal, header_name, problem_of, render_headers};
pub use engine::{Engine, Task};
pub use header_class::{HeaderClass, is_header};
pub use layer::{Tollgate, TollgateBody, TollgateLayer};
pub use pass::{Admission, AdmissionBody, AdmissionGuard};
pub use read::{Ambiguity, Head, Override, Reader, query_parameter};
pub use standalone::Standalone;
pub use token::{Claims, InvalidKeys, Verifier};
pub use toll::{AddAttributesFn, CheckOptions, HttpDecision, HttpGate, ObserveFn};
pub use tollgate_policy::settings::AmbiguousPaths;
