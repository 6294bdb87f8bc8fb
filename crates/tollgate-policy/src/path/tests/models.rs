//! Small models of how servers read a path, written from their sources and independent of
//! `server_model`.
//!
//! If a path is unambiguous, all models read it the same way: as limits do.

use super::super::*;
use proptest::prelude::*;

/// The resource that a server serves for a path; `None` for a 400, a redirect or no resource.
type Served = Option<Vec<u8>>;

fn unquote(path: &str) -> Vec<u8> {
    let (bytes, mut out, mut place) = (path.as_bytes(), Vec::new(), 0);
    while place < bytes.len() {
        let digits = bytes.get(place + 1..place + 3).and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.filter(|_| bytes[place] == b'%') {
            Some(digits) => {
                out.push(u8::from_str_radix(digits, 16).unwrap());
                place += 3;
            }
            None => {
                out.push(bytes[place]);
                place += 1;
            }
        }
    }
    out
}

fn has_bad_escape(path: &str) -> bool {
    path.split('%').skip(1).any(|rest| {
        let digits = rest.as_bytes().get(..2);
        !digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    })
}

fn join(segments: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for segment in segments {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.is_empty() { b"/".to_vec() } else { out }
}

/// nginx: one pass over decoded bytes merges slashes and resolves dots; a path above the root is
/// 400.
fn nginx(path: &str) -> Served {
    if has_bad_escape(path) {
        return None;
    }
    let decoded = unquote(path);
    if decoded.contains(&0) {
        return None;
    }
    merged_and_resolved(&decoded)
}

/// Merges slashes and resolves dots in one pass; `None` for a path above the root.
fn merged_and_resolved(decoded: &[u8]) -> Served {
    let mut segments: Vec<&[u8]> = Vec::new();
    let parts: Vec<&[u8]> = decoded[1..].split(|byte| *byte == b'/').collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        match *part {
            b".." => {
                segments.pop()?;
            }
            b"." => {}
            b"" if !is_last => continue,
            part => segments.push(part),
        }
        if is_last && matches!(*part, b"." | b"..") {
            segments.push(b"");
        }
    }
    Some(join(&segments))
}

/// Go's file servers, including Caddy: decode, then `path.Clean`, and restore the trailing slash.
fn go(path: &str) -> Served {
    let decoded = (!has_bad_escape(path)).then(|| unquote(path))?;
    (!decoded.contains(&0)).then(|| cleaned(&decoded))
}

/// Caddy's path matcher: decode, drop trailing dots and spaces, then clean.
fn caddy_matcher(path: &str) -> Served {
    let mut decoded = (!has_bad_escape(path)).then(|| unquote(path))?;
    while decoded.pop_if(|last| matches!(last, b'.' | b' ')).is_some() {}
    (!decoded.contains(&0)).then(|| cleaned(&decoded))
}

fn cleaned(decoded: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for part in decoded.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            part => segments.push(part),
        }
    }
    if decoded.ends_with(b"/") && !segments.is_empty() {
        segments.push(b"");
    }
    join(&segments)
}

/// `new URL("http://localhost" + path).pathname`, decoded for a table of routes. Backslashes are
/// slashes, tabs and line ends vanish, `%2e` is a dot in dot segments, and empty segments are kept.
fn node(path: &str) -> Served {
    let path: String = path.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let path = path.replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path[1..].split('/').collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        match part.to_ascii_lowercase().replace("%2e", ".").as_str() {
            ".." => {
                segments.pop();
            }
            "." => {}
            _ => {
                segments.push(part);
                continue;
            }
        }
        if is_last {
            segments.push("");
        }
    }
    // An empty segment is part of the name, and no resource has such a name.
    let is_empty =
        |(place, segment): (usize, &&str)| segment.is_empty() && place + 1 < segments.len();
    if segments.iter().enumerate().any(is_empty) || has_bad_escape(&path) {
        return None;
    }
    Some(unquote(&format!("/{}", segments.join("/"))))
}

/// `new URL(path, "http://localhost").pathname`: two or more slashes begin a host.
fn node_with_base(path: &str) -> Served {
    let path: String = path.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let path = path.replace('\\', "/");
    if !path.starts_with("//") {
        return node(&path);
    }
    let after_slashes = path.trim_start_matches('/');
    node(after_slashes.find('/').map_or("/", |end| &after_slashes[end..]))
}

/// Python's `http.server`: decode, then `posixpath.normpath`, and restore a slash that ended the
/// path before decoding.
fn python(path: &str) -> Served {
    let decoded = unquote(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    for part in decoded.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            part => segments.push(part),
        }
    }
    if path.ends_with('/') && !segments.is_empty() {
        segments.push(b"");
    }
    Some(join(&segments))
}

/// Tomcat: cuts parameters, decodes, then merges slashes and resolves dots; `%2F` and `%5C` are
/// 400.
fn tomcat(path: &str) -> Served {
    let cut: Vec<&str> = path.split('/').map(|part| part.split(';').next().unwrap()).collect();
    let decoded = unquote(&cut.join("/"));
    let is_refused = has_bad_escape(path) || path.to_ascii_lowercase().contains("%2f");
    if is_refused || decoded.contains(&0) || decoded.contains(&b'\\') || !decoded.starts_with(b"/")
    {
        return None;
    }
    merged_and_resolved(&decoded)
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("/"),
        2 => Just("."),
        2 => Just(".."),
        2 => Just("a"),
        1 => Just("login"),
        1 => Just(";"),
        1 => Just(";x=1"),
        1 => Just("%2e"),
        1 => Just("%2E"),
        1 => Just("%2f"),
        1 => Just("%5c"),
        1 => Just("\\"),
        1 => Just("%00"),
        1 => Just("%09"),
        1 => Just("%"),
        1 => Just("%4"),
        1 => Just("%6c"),
        1 => Just("%40"),
        1 => Just("@"),
        1 => Just("%25"),
        1 => Just("%252e"),
        1 => Just("%c3%a9"),
        1 => Just("%3b"),
        1 => Just("%20"),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The models of file servers, which have no parameters.
    #[test]
    fn an_unambiguous_path_has_one_reading(path in pieces()) {
        // A dot segment at the end has two readings, and the limits of both apply.
        let ends_in_dots = path.ends_with("/.") || path.ends_with("/..");
        if ambiguity(&path).is_some() || ends_in_dots {
            return Ok(());
        }
        let ours = unquote(&normalise(&path));
        for (name, server) in [("nginx", nginx as fn(&str) -> Served), ("go", go), ("node", node), ("python", python)] {
            if let Some(served) = server(&path) {
                prop_assert_eq!(
                    String::from_utf8_lossy(&served), String::from_utf8_lossy(&ours), "{} of {}", name, path
                );
            }
        }
    }

    /// Every model's reading is among the readings whose limits apply, whether or not the path is
    /// ambiguous.
    #[test]
    fn all_readings_are_matched(path in pieces()) {
        let Ok(mut readings) = readings(&path) else {
            prop_assert!(ambiguity(&path).is_some(), "{} is ordinary", path);
            return Ok(());
        };
        readings.push(normalise(&path).into_owned());
        let decoded: Vec<Vec<u8>> = readings.iter().map(|reading| unquote(reading)).collect();
        for (name, server) in [
            ("nginx", nginx as fn(&str) -> Served), ("go", go), ("node", node),
            ("Caddy's matcher", caddy_matcher), ("node with a base", node_with_base), ("python", python), ("tomcat", tomcat),
        ] {
            if let Some(served) = server(&path) {
                prop_assert!(
                    decoded.contains(&served),
                    "{} of {}: {} is not among {:?}", name, path, String::from_utf8_lossy(&served), readings
                );
            }
        }
    }

    /// The normal form of an unambiguous path has one reading.
    #[test]
    fn the_one_spelling_of_an_unambiguous_path_is_unambiguous(path in pieces()) {
        if ambiguity(&path).is_some() {
            return Ok(());
        }
        let normalised = normalise(&path).into_owned();
        prop_assert_eq!(ambiguity(&normalised), None);
        prop_assert_eq!(normalise(&normalised), &*normalised);
    }
}
