//! Escapes characters that a terminal would execute instead of showing.

use std::fmt::Write;

/// Whether a terminal may execute the character. True for control characters (C0, C1) and
/// characters that change the direction of text.
pub fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

/// Escapes these characters in JSON, as in `\u009b`. JSON itself escapes the ASCII ones, except
/// DEL.
pub fn escape_json(json: &str) -> String {
    let is_hidden = |c: char| is_command(c) && !c.is_ascii_whitespace();
    if !json.contains(is_hidden) {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_hidden(character) {
            // Every such character fits in four digits. Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escape_json;

    #[test]
    fn json_keeps_its_meaning_and_loses_its_commands() {
        let value =
            serde_json::json!({"a": "\u{9b}2J \u{202e}x \u{7f} \u{1b} \u{2067} ä\u{1f600}"});
        let text = escape_json(&format!("{value:#}"));
        assert!(text.contains("\\u009b2J \\u202ex \\u007f \\u001b \\u2067 ä\u{1f600}"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
