//! What `match` says, as plain data: the file layer writes it, the matcher compiles it.

/// The conditions under which a limit applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSpec {
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// The limit does not apply when all conditions of one of these hold.
    pub not: Vec<Vec<Condition>>,
}

/// One attribute and the patterns of which one must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The attribute's name, such as `path` or `header.x-plan`.
    pub attribute: String,
    /// The patterns, as written.
    pub patterns: Vec<String>,
}
