//! The formats, a file each: a `SPEC` with the format's name and a function that builds its reader.
//!
//! Three readers do the work: `text` for templates, `json` for members, `columns` for tables.

mod alb;
mod apache;
mod caddy;
mod cloudfront;
mod csv;
mod envoy;
mod haproxy;
mod nginx;
mod tollgate;
mod traefik;

use crate::entry::{BadLine, Entry};
use crate::time::LogZone;
use std::fmt;

/// All formats. If two formats read a line equally well, detection takes the first.
pub const FORMATS: &[FormatSpec] = &[
    tollgate::SPEC,
    caddy::SPEC,
    envoy::SPEC,
    traefik::SPEC,
    alb::SPEC,
    cloudfront::SPEC,
    haproxy::SPEC,
    nginx::SPEC,
    apache::SPEC,
    csv::SPEC,
];

/// A log format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormatSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// Builds the reader.
    pub build: fn(&ReadOptions) -> Result<Box<dyn Format>, FormatError>,
}

/// Reads lines of one format.
pub trait Format {
    /// Reads a line into an empty entry.
    ///
    /// # Errors
    ///
    /// Fails if the line is not of the format.
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine>;
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineKind {
    /// A request.
    Request,
    /// A connection without a request, or another message of the server.
    NotHttp,
    /// Names of columns, or a comment.
    Heading,
}

/// Options for reading logs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The template of lines, as in nginx's `log_format`.
    pub template: Option<String>,
    /// The attributes to read besides the [fields](crate::Field), such as `header.x-api-key`.
    pub attributes: Vec<String>,
    /// Attributes, and the column, member or variable that each is read from.
    pub columns: Vec<(String, String)>,
    /// The zone of timestamps without one.
    pub zone: LogZone,
}

impl ReadOptions {
    /// Creates options for these attributes, some of them read from named columns.
    pub fn new(attributes: Vec<String>, columns: Vec<(String, String)>) -> Self {
        let mut options = Self { attributes, columns, ..Self::default() };
        for (attribute, _) in &options.columns {
            if !options.attributes.contains(attribute) {
                options.attributes.push(attribute.clone());
            }
        }
        options
    }

    /// Returns the index of each attribute that has a column, and the column.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().filter_map(|(attribute, column)| {
            let place = self.attributes.iter().position(|known| known == attribute)?;
            Some((place, &**column))
        })
    }

    /// Returns the index of the attribute that a column has, by `--attribute` or by its own name.
    pub(crate) fn place_of(&self, column: &str) -> Option<usize> {
        let mapped = self.mapped().find(|(_, known)| *known == column).map(|(place, _)| place);
        mapped.or_else(|| self.attributes.iter().position(|name| name.eq_ignore_ascii_case(column)))
    }
}

/// The error for a reader that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(pub(crate) String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}

/// Finds a format by name.
pub fn find_format(name: &str) -> Option<&'static FormatSpec> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
