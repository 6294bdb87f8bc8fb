//! Import of other rate limiters' files: Limitador to `tollgate.yaml`.

mod condition;
mod limitador;
#[cfg(test)]
mod tests;

pub use limitador::limitador;

use crate::diagnostic::Position;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The policy file.
    pub text: String,
    /// The number of limits in the file.
    pub limits: usize,
    /// The number of limits dropped because an earlier one has the same identity.
    pub duplicates: usize,
    /// Notes on limits that have no equivalent, or not an exact one.
    pub notes: Vec<ImportNote>,
}

/// A note for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportNote {
    /// The position in the imported file.
    pub at: Position,
    /// Whether a limit was left out.
    pub is_lost: bool,
    /// The note.
    pub text: String,
}
