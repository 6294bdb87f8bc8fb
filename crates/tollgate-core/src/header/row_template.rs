//! The header values of one limit, rendered in advance.

use super::Row;
use super::render_cache::{NUMBERS_MAX, begin_member, name, policy, write_numbers};
use alloc::vec::Vec;

/// The draft-11 values of one limit without a partition. Only two numbers differ between responses.
///
/// ```
/// use tollgate_core::Outcome;
/// use tollgate_core::header::{Row, RowTemplate};
///
/// let row = Row::new("default", Some(60_000_000), &Outcome::admitting(100));
/// let template = RowTemplate::new(&row).ok_or("a long name")?;
/// assert_eq!(template.policy(), br#""default";q=100;w=60"#);
/// let limit = template.with_limit(99, Some(41_500_000), <[u8]>::to_vec);
/// assert_eq!(limit, br#""default";r=99;t=42"#);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTemplate {
    policy: Vec<u8>,
    /// The value of `RateLimit` up to its numbers, and its length.
    member: ([u8; LIMIT_MAX], usize),
}

/// The most bytes of a value of `RateLimit`.
const LIMIT_MAX: usize = 64;

impl RowTemplate {
    /// Renders the values that all responses with this row share. `None` if the name of the row has
    /// more than 24 bytes.
    pub fn new(row: &Row<'_>) -> Option<Self> {
        let (mut list, mut start) = (Vec::new(), Vec::new());
        name(&mut list, 0, row);
        policy(&mut list, row);
        begin_member(&mut start, 0, row);
        let mut member = [0; LIMIT_MAX];
        member[..LIMIT_MAX - NUMBERS_MAX].get_mut(..start.len())?.copy_from_slice(&start);
        Some(Self { policy: list, member: (member, start.len()) })
    }

    /// The value of `RateLimit-Policy`.
    pub fn policy(&self) -> &[u8] {
        &self.policy
    }

    /// Calls `then` with the value of `RateLimit`.
    // Calls instead of returning, which would copy the value.
    #[inline(always)]
    pub fn with_limit<T>(
        &self,
        remaining: u64,
        more_after_us: Option<u64>,
        then: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let (mut value, len) = self.member;
        let len = write_numbers(&mut value, len, remaining, more_after_us);
        then(&value[..len])
    }
}
