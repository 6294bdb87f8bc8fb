//! `match` as plain data: the file layer writes it, and the matcher compiles it.

/// The conditions under which a limit applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSpec {
    /// The conditions, which must all hold.
    pub conditions: Vec<Condition>,
    /// The exclusions: the limit does not apply if all conditions of one of them hold.
    pub not: Vec<Vec<Condition>>,
}

/// A condition on one attribute: one of the patterns must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The attribute's name, such as `path` or `header.x-plan`.
    pub attribute: String,
    /// The patterns, as written.
    pub patterns: Vec<String>,
}
