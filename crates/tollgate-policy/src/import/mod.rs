//! Import of other rate limiters' files: Limitador to `tollgate.yaml`.

mod condition;
mod limitador;
#[cfg(test)]
mod tests;

pub use limitador::limitador;

use crate::diagnostic::Position;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The file of ours.
    pub text: String,
    /// How many limits are in it.
    pub limits: usize,
    /// How many more were dropped, since they count like an earlier one.
    pub duplicates: usize,
    /// What has no equal, or is not quite the same.
    pub notes: Vec<ImportNote>,
}

/// A note for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportNote {
    /// Where it is in the file that was read.
    pub at: Position,
    /// Whether a limit was left out because of it.
    pub is_lost: bool,
    /// What it is.
    pub text: String,
}
