//! Endpoints: paths with their ids replaced by `*`, so that one pattern matches them.

use rustc_hash::FxHashMap;

/// The most endpoints and folders that are counted separately.
const ENDPOINTS_MAX: usize = 512;
const FOLDERS_MAX: usize = 128;
const SEGMENTS_MAX: usize = 6;

/// The endpoints of a log, numbered in the order in which they appear.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    by_name: FxHashMap<String, usize>,
    names: Vec<(String, String)>,
    folders: usize,
    name: String,
}

impl Endpoints {
    /// Returns the number of an endpoint; a new endpoint gets one if there is room. Otherwise
    /// endpoints share the number of their first folder, and finally that of `/**`.
    pub(super) fn number(&mut self, method: &str, path: &str) -> usize {
        let method: String = method.chars().filter(char::is_ascii_alphabetic).take(16).collect();
        if let Some(number) = self.find(&method, &pattern(path)) {
            return number;
        }
        if self.names.len() - self.folders < ENDPOINTS_MAX {
            return self.add(method, pattern(path));
        }
        let folder = folder(path);
        if let Some(number) = self.find(&method, &folder) {
            return number;
        }
        if self.folders < FOLDERS_MAX {
            self.folders += 1;
            return self.add(method, folder);
        }
        match self.find("", "/**") {
            Some(number) => number,
            None => {
                self.folders += 1;
                self.add(String::new(), "/**".into())
            }
        }
    }

    /// Returns the number that [`number`](Self::number) assigned.
    pub(super) fn known(&mut self, method: &str, path: &str) -> Option<usize> {
        let method: String = method.chars().filter(char::is_ascii_alphabetic).take(16).collect();
        self.find(&method, &pattern(path))
            .or_else(|| self.find(&method, &folder(path)))
            .or_else(|| self.find("", "/**"))
    }

    /// Returns the method and pattern of an endpoint.
    pub(super) fn get(&self, number: usize) -> (&str, &str) {
        let (method, pattern) = &self.names[number];
        (method, pattern)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    fn find(&mut self, method: &str, pattern: &str) -> Option<usize> {
        self.name.clear();
        self.name.push_str(method);
        self.name.push(' ');
        self.name.push_str(pattern);
        self.by_name.get(&self.name).copied()
    }

    fn add(&mut self, method: String, pattern: String) -> usize {
        let number = self.names.len();
        self.by_name.insert(format!("{method} {pattern}"), number);
        self.names.push((method, pattern));
        number
    }
}

/// Returns the pattern of a path: `/users/*/orders` for `/users/42/orders`.
fn pattern(path: &str) -> String {
    let mut out = String::with_capacity(path.len().min(200));
    let segments = path.strip_prefix('/').unwrap_or(path).split('/');
    for (place, segment) in segments.enumerate() {
        if place == SEGMENTS_MAX {
            out.push_str("/**");
            break;
        }
        out.push('/');
        match segment.rsplit_once('.') {
            _ if segment.is_empty() => {}
            Some((_, extension)) if is_asset(extension) => {
                out.push_str("*.");
                out.push_str(extension);
            }
            _ if is_id(segment) => out.push('*'),
            _ => out.push_str(segment),
        }
    }
    out
}

/// Returns the pattern of the first folder: `/files/**` for `/files/a/b`.
fn folder(path: &str) -> String {
    let first = path.strip_prefix('/').unwrap_or(path).split('/').next().unwrap_or_default();
    if is_id(first) || first.is_empty() { "/*/**".into() } else { format!("/{first}/**") }
}

/// Whether a segment looks like an id: a number, a hash, a long word with digits, or characters
/// with a meaning in patterns.
fn is_id(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    let hex = segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !segment.bytes().all(plain)
        || (digits > 0 && digits == segment.len())
        || (digits > 0 && hex && segment.len() >= 8)
        || (digits >= 3 && segment.len() >= 16)
        || segment.len() > 40
        || segment.starts_with("..")
}

fn is_asset(extension: &str) -> bool {
    const ASSETS: [&str; 16] = [
        "avif", "css", "gif", "ico", "jpeg", "jpg", "js", "map", "mjs", "mp4", "png", "svg", "ttf",
        "webp", "woff", "woff2",
    ];
    ASSETS.contains(&extension)
}

#[cfg(test)]
mod tests;
