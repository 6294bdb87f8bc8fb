//! Names of limits and tiers.

use super::Problem;
use crate::diagnostic::codes;
use crate::suggest::quoted;

const NAME_BYTES_MAX: usize = 64;

/// Printable ASCII (space included) without `/`, 1 to 64 bytes.
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
