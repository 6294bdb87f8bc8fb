//! Names of limits and tiers.

use super::Problem;
use crate::diagnostic::{codes, quoted};

const NAME_BYTES_MAX: usize = 64;

/// Parses a name: 1 to 64 printable ASCII characters, space included, without `/`.
pub(crate) fn name(text: &str) -> Result<Box<str>, Problem> {
    let help = "use 1 to 64 printable ASCII characters without `/`, such as `per-user`";
    let bad = |message: String| Err(Problem::new(codes::BAD_NAME, message, help));
    if text.is_empty() {
        return bad("the name is empty".to_owned());
    }
    if text.len() > NAME_BYTES_MAX {
        let length = text.len();
        return bad(format!("the name {} has {length} bytes", quoted(text)));
    }
    match text.chars().find(|c| *c == '/' || !matches!(c, ' '..='~')) {
        Some(c) => bad(format!("the name {} contains {}", quoted(text), quoted(&c.to_string()))),
        None => Ok(text.into()),
    }
}

/// Parses a host name into lower case. `*.` and a name covers all names below it; `*` covers every
/// name.
pub(crate) fn host(text: &str) -> Result<Box<str>, Problem> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if text == "*" || (name.len() <= 253 && name.split('.').all(is_label)) {
        let text = text.strip_suffix('.').unwrap_or(text);
        return Ok(text.to_ascii_lowercase().into());
    }
    let message = format!("{} is not the name of a host", quoted(text));
    let help = "write a name without scheme and port, such as `tollgate.example.com`, or `*.example.com`; addresses need no entry";
    Err(Problem::new(codes::BAD_PATTERN, message, help))
}

const ATTRIBUTE_BYTES_MAX: usize = 128;
const BUILT_IN: [&str; 5] = ["ip", "method", "path", "host", "domain"];
const PREFIXES: [&str; 5] = ["header.", "cookie.", "query.", "jwt.", "descriptor."];

/// Parses an attribute's name. Header names become lower case, as in requests.
pub(crate) fn attribute(text: &str) -> Result<Box<str>, Problem> {
    let bad = |message: String| {
        let help = "use 1 to 128 printable ASCII characters, such as `user` or `header.x-plan`";
        Err(Problem::new(codes::BAD_ATTRIBUTE, message, help))
    };
    if text.is_empty() {
        return bad("the name of the attribute is empty".to_owned());
    }
    if text.len() > ATTRIBUTE_BYTES_MAX {
        return bad(format!("the attribute {} has {} bytes", quoted(text), text.len()));
    }
    if let Some(c) = text.chars().find(|c| !matches!(c, ' '..='~')) {
        let c = quoted(&c.to_string());
        return bad(format!("the attribute {} contains {c}", quoted(text)));
    }
    if PREFIXES.contains(&text) {
        return bad(format!("the attribute {} ends after its dot", quoted(text)));
    }
    if let Some(name) = text.strip_prefix("header.") {
        return header_name(name).map(|name| format!("header.{name}").into());
    }
    Ok(text.into())
}

/// Parses a header name into lower case.
pub(crate) fn header_name(text: &str) -> Result<Box<str>, Problem> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || text.len() > ATTRIBUTE_BYTES_MAX || !text.bytes().all(token) {
        let message = format!("{} is not a header name", quoted(text));
        let help = "use letters, digits and `-`, such as `x-user-id`";
        return Err(Problem::new(codes::BAD_ATTRIBUTE, message, help));
    }
    Ok(text.to_ascii_lowercase().into())
}

/// Whether front ends read the attribute from the request itself, so that `identity` may not define
/// it.
pub(crate) fn is_built_in(attribute: &str) -> bool {
    BUILT_IN.contains(&attribute) || PREFIXES.iter().any(|prefix| attribute.starts_with(prefix))
}
