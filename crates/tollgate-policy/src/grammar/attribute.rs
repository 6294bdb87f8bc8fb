//! Names of attributes.

use super::Problem;
use crate::diagnostic::codes;
use crate::suggest::quoted;

const ATTRIBUTE_BYTES_MAX: usize = 128;
const BUILT_IN: [&str; 5] = ["ip", "method", "path", "host", "domain"];
const PREFIXES: [&str; 5] = ["header.", "cookie.", "query.", "jwt.", "descriptor."];

/// An attribute's name, with the name of a header field in lower case, as requests supply it.
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

/// The name of a header field, in lower case.
pub(crate) fn header_name(text: &str) -> Result<Box<str>, Problem> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || text.len() > ATTRIBUTE_BYTES_MAX || !text.bytes().all(token) {
        let message = format!("{} is not the name of a header field", quoted(text));
        let help = "use letters, digits and `-`, such as `x-user-id`";
        return Err(Problem::new(codes::BAD_ATTRIBUTE, message, help));
    }
    Ok(text.to_ascii_lowercase().into())
}

/// Whether requests supply the attribute themselves, so that nothing else may.
pub(crate) fn is_built_in(attribute: &str) -> bool {
    BUILT_IN.contains(&attribute) || PREFIXES.iter().any(|prefix| attribute.starts_with(prefix))
}
