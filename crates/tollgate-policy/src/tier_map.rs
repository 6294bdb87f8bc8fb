//! The file under `tiers: {file: {path: ...}}`: who is in which tier.
//!
//! ```
//! use tollgate_policy::TierMap;
//!
//! let tiers = TierMap::read(b"{by: user, map: {'42': pro}}").unwrap();
//! assert_eq!((tiers.by(), tiers.tier("42"), tiers.tier("43")), ("user", Some("pro"), None));
//! ```

#[cfg(test)]
mod tests;

use crate::diagnostic::{Diagnostic, Position, Report, codes};
use crate::grammar;
use crate::raw::{Decode, TierMapFile};
use crate::yaml;
use rustc_hash::FxHashMap;

/// Tiers by the value of one attribute.
#[derive(Clone, Debug)]
pub struct TierMap {
    by: Box<str>,
    tiers: FxHashMap<Box<str>, Box<str>>,
}

impl TierMap {
    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, in the order of the file.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml::parse(bytes).map_err(|error| vec![error])?;
        let mut report = Report::default();
        let file = TierMapFile::decode(&node, &mut report).unwrap_or_default();
        if file.by.is_none() && report.is_empty() {
            let help = "add `by: user`, or whichever attribute tells who it is";
            report.error(codes::MISSING_FIELD, Position::START, "`by` is missing", help);
        }
        let by = file.by.as_ref().and_then(|by| report.accept(by.at, grammar::attribute(by)));
        if !report.is_empty() {
            return Err(report.finish());
        }
        let entries = file.map.iter().flat_map(|map| &map.0);
        let tiers = entries
            .map(|(value, tier)| (value.value.as_str().into(), Box::from(&***tier)))
            .collect();
        Ok(Self { by: by.unwrap_or_default(), tiers })
    }

    /// The attribute by whose value tiers are looked up.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The tier for a value, if it is listed.
    pub fn tier(&self, value: &str) -> Option<&str> {
        self.tiers.get(value).map(|tier| &**tier)
    }
}
