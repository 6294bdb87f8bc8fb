//! Ratelimit files: the files named by `envoy.configs`.

use super::{ConfigError, ConfigErrorKind};
use crate::reload::poll::{Stamp, Watcher, read_capped};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Component, Path, PathBuf};
use tollgate_policy::diagnostic::{Position, Severity, codes};
use tollgate_policy::envoy::{ConfigOptions, Configs};
use tollgate_policy::wildcard_matches;
use tollgate_policy::{Compiled, Diagnostic};

/// Limit of files; more suggest a folder named by mistake.
const FILES_MAX: usize = 4096;

/// The content of the files.
#[derive(Clone, Debug)]
pub(crate) struct RatelimitFiles {
    pub(crate) configs: Configs,
    patterns: Vec<PathBuf>,
    /// The stamp of the files, taken before they were read.
    stamp: Option<Stamp>,
    /// A warning for each pattern that matches no file.
    pub(crate) unmatched: Vec<Diagnostic>,
}

/// The files as watched by the reloader. Files may appear and disappear.
#[derive(Debug)]
pub(crate) struct WatchedRatelimitFiles {
    patterns: Vec<PathBuf>,
    watcher: Watcher,
    applied_stamp: Option<Stamp>,
    unmatched: Vec<Diagnostic>,
}

impl RatelimitFiles {
    /// Reads the files that the settings name.
    pub(super) fn load(folder: &Path, compiled: &Compiled) -> Result<Option<Self>, ConfigError> {
        let settings = &compiled.settings;
        let envoy = &settings.envoy;
        if envoy.configs.is_empty() {
            return Ok(None);
        }
        let patterns: Vec<PathBuf> =
            envoy.configs.iter().map(|pattern| folder.join(&**pattern)).collect();
        let stamp = combined_stamp(&patterns);
        let (mut files, mut unmatched) = (Vec::new(), Vec::new());
        for (pattern, text) in patterns.iter().zip(&envoy.configs) {
            let paths = expand_glob(pattern);
            let paths = paths.map_err(|error| ConfigError::unreadable(pattern, error))?;
            if paths.is_empty() {
                unmatched.push(no_file_warning(compiled, text));
            }
            for path in paths {
                let bytes = read_capped(&path);
                let bytes = bytes.map_err(|error| ConfigError::unreadable(&path, error))?;
                files.push((path, bytes));
            }
        }
        let mut options = ConfigOptions::default();
        options.strict = envoy.strict;
        options.on_store_failure = settings.on_store_failure;
        let shown: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        let named: Vec<(&str, &[u8])> =
            shown.iter().zip(&files).map(|(name, (_, bytes))| (name.as_str(), &**bytes)).collect();
        let configs = Configs::read(&named, options).map_err(|bad| {
            let bad = bad.into_iter().map(|one| (files[one.file].0.clone(), one.diagnostics));
            let bad: Vec<_> = bad.collect();
            let first = bad.first().map(|(file, _)| file.clone()).unwrap_or_default();
            ConfigErrorKind::Ratelimit(bad).of(first)
        })?;
        Ok(Some(Self { configs, patterns, stamp, unmatched }))
    }

    /// Starts watching the files.
    pub(crate) fn watch(&self) -> WatchedRatelimitFiles {
        WatchedRatelimitFiles {
            patterns: self.patterns.clone(),
            watcher: Watcher::default(),
            applied_stamp: self.stamp,
            unmatched: self.unmatched.clone(),
        }
    }
}

impl WatchedRatelimitFiles {
    /// Whether there are changes that have settled.
    pub(crate) fn poll(&mut self) -> bool {
        let now = combined_stamp(&self.patterns);
        self.watcher.poll(now).is_some() && std::mem::replace(&mut self.applied_stamp, now) != now
    }

    /// Whether a pattern matches this file.
    pub(crate) fn contains(&self, file: &Path) -> bool {
        let named = |pattern: &PathBuf| expand_glob(pattern).unwrap_or_default();
        self.patterns.iter().any(|pattern| named(pattern).iter().any(|path| path == file))
    }

    /// The patterns that matched no file at the last load.
    pub(crate) fn unmatched(&self) -> &[Diagnostic] {
        &self.unmatched
    }
}

/// A warning that a pattern of `envoy.configs` matches no file.
fn no_file_warning(compiled: &Compiled, pattern: &str) -> Diagnostic {
    let configs = compiled.file.envoy.as_ref().and_then(|envoy| envoy.configs.as_ref());
    let mut texts = configs.into_iter().flat_map(|configs| &configs.value.0);
    let at = texts.find(|text| *text.value.0 == *pattern).map_or(Position::START, |text| text.at);
    Diagnostic::new(
        codes::RATELIMIT_FILE,
        Severity::Warning,
        at,
        format!("the pattern `{pattern}` matches no file, so it adds no limits"),
        "the path starts at the policy's folder, and `*` matches within one name: check the spelling",
    )
}

/// One stamp for all matching files: `inode` stands for the set of files, `size` for their
/// contents.
fn combined_stamp(patterns: &[PathBuf]) -> Option<Stamp> {
    let (mut files, mut contents) = (DefaultHasher::new(), DefaultHasher::new());
    for path in patterns.iter().flat_map(|pattern| expand_glob(pattern).unwrap_or_default()) {
        path.hash(&mut files);
        if let Ok(stamp) = std::fs::metadata(&path).map(|metadata| Stamp::of(&metadata)) {
            (stamp.device, stamp.inode).hash(&mut files);
            (stamp.size, stamp.modified, stamp.changed).hash(&mut contents);
        }
    }
    let (inode, size) = (files.finish(), contents.finish());
    Some(Stamp { device: 0, inode, size, modified: (0, 0), changed: (0, 0) })
}

/// The files that match a pattern, sorted. A path without `*` matches itself, even if the file does
/// not exist. A `*` matches any characters within a name, except a leading dot.
fn expand_glob(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let wild = match component {
            Component::Normal(name) => name.to_str().filter(|name| name.contains('*')),
            _ => None,
        };
        let Some(wild) = wild else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let mut next = Vec::new();
        for folder in found {
            let folder = if folder.as_os_str().is_empty() { Path::new(".").into() } else { folder };
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let names = names.filter(|name| !name.starts_with('.') && wildcard_matches(wild, name));
            next.extend(names.map(|name| folder.join(name)));
            if next.len() > FILES_MAX {
                return Err(io::Error::other("it names more than 4096 files"));
            }
        }
        next.sort();
        found = next;
    }
    let is_wild = pattern.to_string_lossy().contains('*');
    found.retain(|path| !is_wild || path.is_file());
    Ok(found)
}

#[cfg(test)]
mod tests;
