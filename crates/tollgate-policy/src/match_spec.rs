//! What a valid `match` says, before it is compiled into something fast.

/// Which requests a limit applies to. The default applies to all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSpec {
    /// All of them hold.
    pub conditions: Vec<Condition>,
    /// A request to which every condition of one of these applies is left out.
    pub not: Vec<Vec<Condition>>,
}

/// The attribute is present, and at least one pattern matches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The attribute; the name of a header field is in lower case.
    pub attribute: String,
    /// Valid and at least one: networks for `ip`, globs otherwise.
    pub patterns: Vec<String>,
}
