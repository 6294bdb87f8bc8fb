//! Collects findings, so that one run shows all of them.

use super::{Code, Diagnostic, Position, Severity, codes};
use crate::grammar::Problem;

/// More than anyone reads; a file that is wrong in every line must not cost memory without bound.
const ERRORS_MAX: usize = 100;

/// The findings so far.
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

    /// Adds what a parser of one value found, at the value's place.
    pub(crate) fn problem(&mut self, at: Position, problem: Problem) {
        self.error(problem.code, at, problem.message, problem.help);
    }

    /// Takes the value, or the problem.
    pub(crate) fn accept<T>(&mut self, at: Position, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problem(at, problem)).ok()
    }

    /// The number of findings.
    pub(crate) fn len(&self) -> usize {
        self.diagnostics.len() + self.dropped
    }

    /// Adds a finding; beyond the first hundred they are only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < ERRORS_MAX {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether anything was found.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// The findings in the order of the file.
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
