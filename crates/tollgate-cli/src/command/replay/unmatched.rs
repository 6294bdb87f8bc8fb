//! The paths of requests that no limit matched.

use rustc_hash::FxHashMap;

/// The most paths that are counted separately.
const PATHS_MAX: usize = 4_096;

/// Requests that no limit matched, by method and path.
#[derive(Debug, Default)]
pub(super) struct Unmatched {
    pub(super) requests: u64,
    by_path: FxHashMap<String, u64>,
    name: String,
}

impl Unmatched {
    pub(super) fn count(&mut self, method: &str, path: &str) {
        self.requests += 1;
        self.name.clear();
        self.name.push_str(method);
        self.name.push(' ');
        self.name.extend(path.chars().take(200));
        if let Some(count) = self.by_path.get_mut(&self.name) {
            *count += 1;
            return;
        }
        if self.by_path.len() >= PATHS_MAX {
            // Halves all counts and drops zeros; a frequent path comes back.
            self.by_path.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
        if self.by_path.len() < PATHS_MAX {
            self.by_path.insert(self.name.clone(), 1);
        }
    }

    /// The most frequent paths.
    pub(super) fn most(&self, most: usize) -> Vec<(String, u64)> {
        let mut paths: Vec<_> = self.by_path.iter().map(|(path, n)| (path.clone(), *n)).collect();
        paths.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        paths.truncate(most);
        paths
    }
}
