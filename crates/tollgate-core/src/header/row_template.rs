//! The header values of one limit, rendered in advance.

use super::Row;
use super::render_cache::{begin_member, end_member, name, policy};
use alloc::vec::Vec;

/// The draft-11 values of one limit without a partition. Only two numbers differ between responses.
///
/// ```
/// use tollgate_core::Outcome;
/// use tollgate_core::header::{Row, RowTemplate};
///
/// let row = Row::new("default", Some(60_000_000), &Outcome::admitting(100));
/// let template = RowTemplate::new(&row);
/// let mut limit = Vec::new();
/// template.write_limit(99, Some(41_500_000), &mut limit);
/// assert_eq!(template.policy(), br#""default";q=100;w=60"#);
/// assert_eq!(limit, br#""default";r=99;t=42"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTemplate {
    policy: Vec<u8>,
    member: Vec<u8>,
}

impl RowTemplate {
    /// Renders the values that all responses with this row share.
    pub fn new(row: &Row<'_>) -> Self {
        let (mut list, mut member) = (Vec::new(), Vec::new());
        name(&mut list, 0, row);
        policy(&mut list, row);
        begin_member(&mut member, 0, row);
        Self { policy: list, member }
    }

    /// The value of `RateLimit-Policy`.
    pub fn policy(&self) -> &[u8] {
        &self.policy
    }

    /// Appends the value of `RateLimit`.
    #[inline]
    pub fn write_limit(&self, remaining: u64, more_after_us: Option<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.member);
        end_member(out, remaining, more_after_us);
    }
}
