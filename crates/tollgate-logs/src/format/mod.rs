//! The formats, a file each: a `SPEC` with the format's name and how its reader is built.
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
mod traefik;

use crate::entry::{BadLine, Entry};
use crate::time::LogZone;
use std::fmt;

/// The formats. Of two that read a line alike, detection takes the first.
pub const FORMATS: &[FormatSpec] = &[
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

/// A format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FormatSpec {
    /// Its name on the command line.
    pub name: &'static str,
    /// Builds its reader.
    pub build: fn(&ReadOptions) -> Result<Box<dyn Format>, FormatError>,
}

/// Reads lines of one format, one after the other.
pub trait Format {
    /// Reads a line into an empty entry.
    ///
    /// # Errors
    ///
    /// When the line is not of the format.
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine>;
}

/// What a line is.
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

/// What to read, and how.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The template of the lines, as nginx writes `log_format`.
    pub template: Option<String>,
    /// The attributes that are wanted beyond the [fields](crate::Field): `header.x-api-key`.
    pub attributes: Vec<String>,
    /// Attributes and the column, member or variable that each is read from.
    pub columns: Vec<(String, String)>,
    /// The zone of stamps without one.
    pub zone: LogZone,
}

impl ReadOptions {
    /// Options that want these attributes, some of them from named columns.
    pub fn new(attributes: Vec<String>, columns: Vec<(String, String)>) -> Self {
        let mut options = Self { attributes, columns, ..Self::default() };
        for (attribute, _) in &options.columns {
            if !options.attributes.contains(attribute) {
                options.attributes.push(attribute.clone());
            }
        }
        options
    }

    /// The place of each attribute that has a column, and that column.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().filter_map(|(attribute, column)| {
            let place = self.attributes.iter().position(|known| known == attribute)?;
            Some((place, &**column))
        })
    }

    /// The place of the attribute that a column is for, by `--attribute` or by its own name.
    pub(crate) fn place_of(&self, column: &str) -> Option<usize> {
        let mapped = self.mapped().find(|(_, known)| *known == column).map(|(place, _)| place);
        mapped.or_else(|| self.attributes.iter().position(|name| name.eq_ignore_ascii_case(column)))
    }
}

/// Why a format's reader cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(pub(crate) String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}

/// The format of this name.
pub fn find_format(name: &str) -> Option<&'static FormatSpec> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
