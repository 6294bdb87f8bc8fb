//! The policy: `tollgate.yaml` parsed, checked, linted and compiled; facts to charges.
//!
//! ```
//! let file = b"limits: [{name: per-user, key: [user], rate: 100/min}]";
//! let compiled = tollgate_policy::compile(file);
//! assert_eq!(&*compiled.unwrap().limits[0].0.name, "per-user");
//!
//! let file = b"limits: [{name: a, rate: 5/min, algoritm: gcra}]";
//! let errors = tollgate_policy::compile(file).unwrap_err();
//! assert_eq!(errors[0].message, "unknown field `algoritm`, did you mean `algorithm`?");
//! ```

mod compile;
pub mod diagnostic;
pub mod envoy;
pub mod facts;
mod grammar;
pub mod hex;
mod identity;
pub mod import;
pub mod limit;
mod lint;
pub mod match_spec;
mod matcher;
pub mod path;
pub mod policy;
pub mod raw;
mod schema;
pub mod settings;
pub mod shed;
mod time_zone;
mod yaml;

pub use compile::{Compiled, compile};
pub use diagnostic::{Diagnostic, PolicyError, Severity};
pub use grammar::{parse_duration_us, parse_listen};
pub use identity::{HASH_PREFIX, HttpPolicy, TierMap, TierRules, address, hash};
pub use lint::{LINTS, lint};
pub use matcher::wildcard_matches;
pub use schema::SCHEMA;
pub use time_zone::time_zone;
