//! The mutants as files in a small part of TOML: `key = "value"` with plain, literal and multi-line
//! literal strings.

use std::fs;
use std::path::{Path, PathBuf};

/// One way to break one property.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// The number of the property, or a word for a rule outside the twelve.
    pub(super) property: String,
    /// A description of what breaks.
    pub(super) breaks: String,
    pub(super) file: String,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) test: String,
}

impl Mutant {
    /// Replaces the one occurrence in the text. Several occurrences would be several mutants; none
    /// means that the mutant is stale.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.old).count() {
            1 => Ok(text.replacen(&self.old, &self.new, 1)),
            0 => Err(format!("{}: {} no longer contains `{}`", self.name, self.file, self.old)),
            n => Err(format!("{}: {} contains `{}` {n} times", self.name, self.file, self.old)),
        }
    }
}

/// Loads every mutant of a folder, by property and then by name. The file is named like the mutant.
pub(super) fn load(folder: &Path) -> Result<Vec<Mutant>, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path).map_err(|why| format!("{name}: {why}"))?;
        parse(&name, &text)
    };
    let mut mutants = paths.iter().map(read).collect::<Result<Vec<Mutant>, String>>()?;
    mutants.sort_by_cached_key(|mutant| {
        let number: u32 = mutant.property.parse().unwrap_or(u32::MAX);
        (number, mutant.property.clone(), mutant.name.clone())
    });
    Ok(mutants)
}

pub(super) fn parse(name: &str, text: &str) -> Result<Mutant, String> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
            continue;
        }
        let (key, after) =
            rest.split_once('=').ok_or_else(|| format!("{name}: expected `key = value`"))?;
        let (value, after) = string(after.trim_start())
            .ok_or_else(|| format!("{name}: `{}` is not a closed string", key.trim()))?;
        if fields.iter().any(|field| field.0 == key.trim()) {
            return Err(format!("{name}: `{}` is given twice", key.trim()));
        }
        fields.push((key.trim(), value));
        rest = after.trim_start();
    }
    let mut take = |key: &str| {
        let at = fields.iter().position(|field| field.0 == key);
        at.map(|at| fields.swap_remove(at).1).ok_or_else(|| format!("{name}: lacks `{key}`"))
    };
    let mutant = Mutant {
        name: name.to_owned(),
        property: take("property")?,
        breaks: take("breaks")?,
        file: take("file")?,
        old: take("old")?,
        new: take("new")?,
        test: take("test")?,
    };
    match fields.first() {
        Some((key, _)) => Err(format!("{name}: unknown field `{key}`")),
        None if mutant.old == mutant.new => Err(format!("{name}: changes nothing")),
        None => Ok(mutant),
    }
}

/// Parses a string at the start of `text`, and returns the rest.
fn string(text: &str) -> Option<(String, &str)> {
    if let Some(body) = text.strip_prefix("'''") {
        // As in TOML, a line break directly after the opening quotes is not part of the value.
        let (value, after) = body.strip_prefix('\n').unwrap_or(body).split_once("'''")?;
        return Some((value.to_owned(), after));
    }
    if let Some(body) = text.strip_prefix('\'') {
        let (value, after) = body.split_once('\'')?;
        return (!value.contains('\n')).then(|| (value.to_owned(), after));
    }
    let body = text.strip_prefix('"')?;
    let (value, after) = body.split_once('"')?;
    // Escapes are not supported; literal strings do not need them.
    (!value.contains(['\n', '\\'])).then(|| (value.to_owned(), after))
}
