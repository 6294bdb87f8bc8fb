//! Names that clients call a listener by.

use super::Problem;
use crate::diagnostic::codes;
use crate::suggest::quoted;

/// A host name in lower case, `*.` and a name for all names below it, or `*` for any name.
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
