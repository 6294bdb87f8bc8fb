//! RateLimit response headers: written and read in one place, so server and client agree.
//!
//! A [`Row`] has the figures of one limit. [`render`] writes rows as the headers of a [`Profile`],
//! [`render_all`] as those of several; [`parse`] reads such headers. [`retry_after_seconds`],
//! [`parse_retry_after`] and [`Problem`] are for refusals. The default profile implements
//! draft-ietf-httpapi-ratelimit-headers-11, a draft and not yet a standard. The other profiles are
//! for clients in use today.
//!
//! ```
//! use tollgate_core::header::{HeaderLines, Profile, Row, parse, render};
//! use tollgate_core::{Algorithm, Intent, Rate, algorithm::FixedWindow};
//!
//! let limit = FixedWindow::new(Rate::try_new(100, 60_000_000)?);
//! let now_us = 1_794_744_018_000_000; // 18 seconds into a minute
//! let outcome = limit.decide(&Default::default(), now_us, 1, Intent::Take);
//! let rows = [Row::new("default", limit.window_us(), &outcome)];
//!
//! let mut fields = HeaderLines::new(); // reused between answers: allocates only once
//! render(Profile::Draft11, &rows, now_us, &mut fields);
//! let sent: Vec<_> = fields.iter().collect();
//! assert_eq!(
//!     sent,
//!     [
//!         ("RateLimit-Policy", r#""default";q=100;w=60"#),
//!         ("RateLimit", r#""default";r=99;t=42"#),
//!     ]
//! );
//!
//! let read = parse(Profile::Draft11, sent)?;
//! assert_eq!(read.policies[0].quota, 100);
//! assert_eq!(read.limits[0].remaining, 99);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod parse;
mod problem;
mod profile;
mod render;
mod render_cache;
mod retry_after;
mod row;
mod row_template;
mod write;

#[cfg(test)]
mod tests;

pub use parse::{
    FieldError, FieldErrorKind, FieldInstant, LimitItem, MAX_FIELD_BYTES, MAX_MEMBERS,
    ParsedHeaders, PolicyItem, parse, parse_policy, parse_ratelimit,
};
pub use problem::{Problem, Quota, refusal_members};
pub use profile::Profile;
pub use render::{HeaderLines, render, render_all};
pub use retry_after::{parse_retry_after, retry_after_seconds};
pub use row::{Row, Scope, Unit, tightest, tightness, valid_name};
pub use row_template::RowTemplate;

const US_PER_S: u64 = 1_000_000;

/// The largest Structured Field integer (RFC 9651, 15 digits), and the largest number in any
/// header.
const SF_INTEGER_MAX: u64 = 999_999_999_999_999;
