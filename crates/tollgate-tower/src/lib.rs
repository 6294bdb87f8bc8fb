//! HTTP for the engine: request heads to facts, verdicts to responses, and a tower layer.
//!
//! [`HttpGate`] decides HTTP requests by a [`Gate`](tollgate::engine::Gate), for any HTTP server.
//! Tollgate's gateway, its forward-auth and the tower layer use it.

mod engine;
mod gate;
#[cfg(doctest)]
mod guide;
mod header_class;
mod layer;
mod read;
mod respond;
mod token;
mod usage;

pub use engine::{Engine, Standalone, Task};
pub use gate::{
    AddAttributesFn, Admission, AdmissionBody, AdmissionGuard, CheckOptions, HttpDecision,
    HttpGate, ObserveFn, ResponseGuard, wait_in_queue,
};
pub use header_class::{HeaderClass, is_header};
pub use layer::{
    Decider, LayerBody, MovesToStore, PolicyFileError, QuotaGate, Tollgate, TollgateBody,
    TollgateFuture, TollgateLayer,
};
pub use read::{
    Ambiguity, Head, Override, Reader, count_parameter, query_parameter, redact_parameters,
};
pub use respond::{
    RateLimitHeaders, Refusal, header_name, problem_of, refusal_status, render_headers,
};
pub use token::{Claims, InvalidKeys, Verifier};
pub use tollgate::engine::policy::PolicyError;
pub use tollgate_policy::settings::AmbiguousPaths;
