//! Collects diagnostics, so that one run shows all of them.

use super::{Code, Diagnostic, Position, Severity, codes};
use crate::grammar::Problem;

/// The most diagnostics that are kept. The bound caps memory for a file with an error in every
/// line.
const ERRORS_MAX: usize = 100;

/// The diagnostics so far.
#[derive(Debug, Default)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    dropped: usize,
}

impl Report {
    /// Adds an error.
    pub fn error(
        &mut self,
        code: &'static Code,
        at: Position,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Diagnostic::new(code, Severity::Error, at, message, help));
    }

    /// Adds the problem of a value at the value's position.
    pub(crate) fn problem(&mut self, at: Position, problem: Problem) {
        self.error(problem.code, at, problem.message, problem.help);
    }

    /// Returns the value, or reports the problem.
    pub(crate) fn accept<T>(&mut self, at: Position, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problem(at, problem)).ok()
    }

    /// The number of diagnostics, including dropped ones.
    pub(crate) fn len(&self) -> usize {
        self.diagnostics.len() + self.dropped
    }

    /// Adds a diagnostic. After the first hundred, diagnostics are only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < ERRORS_MAX {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Returns the diagnostics in file order.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(Diagnostic::position);
        if self.dropped > 0 {
            let at = self.diagnostics.last().map_or(Position::START, Diagnostic::position);
            self.diagnostics.push(Diagnostic::new(
                codes::TOO_MANY_ERRORS,
                Severity::Error,
                at,
                format!("{} more errors are not shown", self.dropped),
                "fix the ones above and check again",
            ));
        }
        self.diagnostics
    }
}
