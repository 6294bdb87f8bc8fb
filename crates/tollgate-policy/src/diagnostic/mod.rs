//! Diagnostics: errors and warnings with position, code, message and fix.

pub mod codes;
mod policy_error;
mod report;
mod suggest;

use serde::Serialize;
use std::fmt;

pub use codes::Code;
pub use policy_error::PolicyError;
pub use report::Report;
pub(crate) use suggest::{listed, nearest, quoted};

/// One error or warning. Its text never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The code, such as `TG001`. Codes of errors in the policy and in the files it names are below
    /// `TG100`; codes of lints are above.
    pub code: &'static str,
    /// Whether the file can be used nevertheless.
    pub severity: Severity,
    /// The line, counted from one.
    pub line: u32,
    /// The column in characters, counted from one.
    pub column: u32,
    /// What is wrong, and why.
    pub message: String,
    /// The likely fix.
    pub help: String,
}

/// How bad a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably does not do what its author wants.
    Warning,
}

/// A position in the file. Line and column are counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Diagnostic {
    /// Creates a diagnostic of `code` at `at`.
    pub fn new(
        code: &'static Code,
        severity: Severity,
        at: Position,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (Position { line, column }, code) = (at, code.code);
        Self { code, severity, line, column, message: message.into(), help: help.into() }
    }

    /// The position of the diagnostic.
    pub const fn position(&self) -> Position {
        Position { line: self.line, column: self.column }
    }

    /// Renders as `FILE:LINE:COL: error[TG001]: text`, followed by a line with the help if there is
    /// one.
    pub fn render<'a>(&'a self, file: &'a str) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let Self { code, severity, line, column, message, help } = self;
            writeln!(f, "{file}:{line}:{column}: {severity}[{code}]: {message}")?;
            if !help.is_empty() {
                writeln!(f, "help: {help}")?;
            }
            Ok(())
        })
    }
}

impl Position {
    /// The first character of the file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}
