//! The error for a file that is not a valid policy.

use super::{Diagnostic, Position, Severity, codes};
use crate::policy::InvalidPolicy;
use std::fmt;
use std::ops::Deref;

/// The errors of an invalid policy file, in file order; at least one. Dereferences to the list, and
/// displays all of them.
///
/// ```
/// let error = tollgate_policy::compile(b"limits: [{name: a, rate: 5/minute}]").unwrap_err();
/// assert_eq!(error[0].code, "TG010");
/// assert_eq!(
///     error.to_string(),
///     "1:26: error[TG010]: `5/minute` is not a rate (write `min` for the unit)"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(Vec<Diagnostic>);

impl From<Vec<Diagnostic>> for PolicyError {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self(diagnostics)
    }
}

impl From<Diagnostic> for PolicyError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

/// Converts the error for limits that are valid one by one but not together.
impl From<InvalidPolicy> for PolicyError {
    fn from(invalid: InvalidPolicy) -> Self {
        let code = codes::OUT_OF_RANGE;
        let message = invalid.to_string();
        Diagnostic::new(code, Severity::Error, Position::START, message, "").into()
    }
}

impl From<PolicyError> for Vec<Diagnostic> {
    fn from(error: PolicyError) -> Self {
        error.0
    }
}

impl Deref for PolicyError {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl IntoIterator for PolicyError {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a PolicyError {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Writes one line for each error.
impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Diagnostic { code, severity, line, column, message, help }) in
            self.0.iter().enumerate()
        {
            let separator = if at > 0 { "\n" } else { "" };
            write!(f, "{separator}{line}:{column}: {severity}[{code}]: {message}")?;
            if !help.is_empty() {
                write!(f, " ({help})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for PolicyError {}
