use super::super::{BODY_BYTES_MAX, body};
use super::*;

#[test]
fn a_message_quotes_little_of_what_was_sent() {
    // For any input, in any position.
    for fill in ["a", "é", "\\n", ", expected ", "9", "🦀"] {
        let long = fill.repeat((BODY_BYTES_MAX - 100) / fill.len());
        for input in [
            format!("{{\"cost\": \"{long}\"}}"),
            format!("{{\"ttl\": \"{long}\"}}"),
            format!("{{\"reservation\": \"{long}\"}}"),
            format!("{{\"attributes\": \"{long}\"}}"),
            format!("{{\"attributes\": {{\"a\": \"{long}\"}}}}"),
            format!("{{\"attributes\": {{\"{long}\": 1}}}}"),
            format!("{{\"{long}\": 1}}"),
            format!("\"{long}\""),
        ] {
            for op in Op::ALL {
                let message = body(input.as_bytes(), op).unwrap_err().to_string();
                assert!(message.len() <= 1024, "{} bytes: {message}", message.len());
            }
        }
    }
}

#[test]
fn a_string_is_not_repeated_and_what_was_expected_is() {
    for (input, says) in [
        ("{\"cost\": \"marker\"}", "`cost`: invalid type: string, expected a whole number"),
        (
            "{\"cost\": \"marker, expected\"}",
            "`cost`: invalid type: string, expected a whole number",
        ),
        (
            "{\"attributes\": \"marker\"}",
            "`attributes`: invalid type: string, expected an object of strings",
        ),
    ] {
        assert_eq!(body(input.as_bytes(), Op::Check).unwrap_err().to_string(), says);
    }
}

#[test]
fn a_name_that_is_all_escapes_is_quoted_in_part() {
    let name = "\u{7f}".repeat(200);
    let said = Fault::Repeated.at(name).to_string();
    assert!(said.len() < 2 * QUOTED_BYTES_MAX, "{} bytes", said.len());
    assert!(said.ends_with("given twice; name it once"), "{said}");
}
