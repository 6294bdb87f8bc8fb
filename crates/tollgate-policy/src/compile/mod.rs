//! Raw file to checked settings and limits; every rule of the file is here.

mod fields;
mod limit;
mod settings;
mod shed;

use crate::diagnostic::{PolicyError, Report};
use crate::limit::Limit;
use crate::match_spec::MatchSpec;
use crate::raw::File;
use crate::settings::Settings;
use crate::shed::ShedPolicy;
use crate::yaml;

/// A file without errors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Everything but the limits.
    pub settings: Settings,
    /// The limits in file order, each with the requests it applies to. An entry with `keys` yields
    /// several.
    pub limits: Vec<(Limit, MatchSpec)>,
    /// For each of `limits`, the index of its entry under the file's `limits`.
    pub entries: Vec<usize>,
    /// Classes and shedders, if the file has `shed`.
    pub shed: Option<ShedPolicy>,
    /// The parsed file, with the position of every value, for lints.
    pub file: File,
}

/// Parses and checks a whole file.
///
/// # Errors
///
/// All errors of the file.
pub fn compile(bytes: &[u8]) -> Result<Compiled, PolicyError> {
    let node = yaml::parse(bytes)?;
    let mut report = Report::default();
    let file = File::read(&node, &mut report);
    let settings = settings::settings(&file, &mut report);
    let (limits, entries) = limit::limits(&file, &settings, &mut report);
    let shed = shed::shed(&file, &mut report);
    if report.is_empty() {
        Ok(Compiled { settings, limits, entries, shed, file })
    } else {
        Err(report.finish().into())
    }
}
