use super::super::{BODY_BYTES_MAX, body};
use super::*;

#[test]
fn a_message_quotes_little_of_what_was_sent() {
    // Whatever is sent, wherever it is sent.
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
fn a_shortened_message_still_says_what_was_expected() {
    let input = format!("{{\"cost\": \"{}\"}}", "a".repeat(5_000));
    let message = body(input.as_bytes(), Op::Check).unwrap_err().to_string();
    assert!(message.starts_with("`cost`: invalid type: string \"aaaa"), "{message}");
    assert!(message.ends_with("aaa..., expected a whole number"), "{message}");
}
