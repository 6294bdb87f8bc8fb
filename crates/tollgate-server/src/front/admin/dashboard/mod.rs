//! The dashboard: one page in the binary, which asks for the token and calls the admin API.
//!
//! The page may load only the files here, and may not run inline scripts or styles.

use super::{AdminResponse, response};
use hyper::header::HeaderValue;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page. The files contain no data of the node, so they need no token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DashboardFile {
    path: &'static str,
    content_type: &'static str,
    content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($path:literal, $name:literal, $content_type:expr) => {
        DashboardFile { path: $path, content_type: $content_type, content: include_str!($name) }
    };
}

static FILES: [DashboardFile; 14] = [
    file!("/", "index.html", HTML),
    file!("/dashboard.css", "dashboard.css", STYLE),
    file!("/favicon.svg", "favicon.svg", "image/svg+xml"),
    file!("/dashboard.js", "dashboard.js", SCRIPT),
    file!("/api.js", "api.js", SCRIPT),
    file!("/chart.js", "chart.js", SCRIPT),
    file!("/classes.js", "classes.js", SCRIPT),
    file!("/dom.js", "dom.js", SCRIPT),
    file!("/history.js", "history.js", SCRIPT),
    file!("/keys.js", "keys.js", SCRIPT),
    file!("/overview.js", "overview.js", SCRIPT),
    file!("/limits.js", "limits.js", SCRIPT),
    file!("/requests.js", "requests.js", SCRIPT),
    file!("/system.js", "system.js", SCRIPT),
];

impl DashboardFile {
    /// The file at this path.
    pub(super) fn find(path: &str) -> Option<&'static Self> {
        FILES.iter().find(|file| file.path == path)
    }

    pub(super) fn response(&self) -> AdminResponse {
        let mut response = response(self.content_type, self.content);
        let headers = response.headers_mut();
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::FILES;

    /// The page must work without a network, and under its own policy.
    #[test]
    fn no_file_names_another_origin_or_writes_markup() {
        for file in &FILES {
            let text = file.content.replace("http://www.w3.org/2000/svg", "");
            for banned in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                " style=",
                "<style",
                "onclick=\"",
                "localStorage",
            ] {
                assert!(!text.contains(banned), "{} has {banned}", file.path);
            }
        }
        let page = FILES[0].content;
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, page.matches("<script type=\"module\" src=\"").count());
    }

    #[test]
    fn every_file_that_a_file_names_is_there() {
        let is_there = |name: &str| FILES.iter().any(|file| file.path == format!("/{name}"));
        for file in &FILES {
            let imports = file.content.lines().filter(|line| line.starts_with("import "));
            for import in imports {
                let name = import.split("\"./").nth(1).and_then(|rest| rest.split('"').next());
                assert!(name.is_some_and(is_there), "{import}");
            }
        }
        assert!(["dashboard.css", "dashboard.js", "favicon.svg"].into_iter().all(is_there));
    }
}
