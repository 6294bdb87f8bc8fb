//! `refusal`.

use super::fields::required;
use crate::diagnostic::{Report, codes};
use crate::raw::File;
use crate::settings::Template;
use crate::suggest::quoted;

/// What stands between braces in a template, and is replaced.
const PLACES: [&str; 5] = ["status", "retry_after", "limits", "limit", "window"];

pub(super) fn refusal(file: &File, report: &mut Report) -> Option<Template> {
    let field = file.refusal.as_ref()?;
    let body = required(&field.body, "body", (field.at, &field.unreadable), report);
    if let (Some(body), Some(written)) = (&body, &field.body) {
        for place in places(body).filter(|place| !PLACES.contains(place)) {
            let message = format!("nothing is known that could replace {}", quoted(place));
            let help = "write {status}, {retry_after}, {limit}, {window} or {limits}; with a space after the brace, as in `{ name }`, it stays as it is";
            report.error(codes::BAD_TEMPLATE, written.at, message, help);
        }
    }
    let content_type = match &field.content_type {
        None => Some("text/plain; charset=utf-8".into()),
        Some(written) if is_media_type(written) => Some(written.0.as_str().into()),
        Some(written) => {
            let message = format!("{} is not a media type", quoted(written));
            report.error(
                codes::BAD_TEMPLATE,
                written.at,
                message,
                "write one such as `text/html; charset=utf-8`",
            );
            None
        }
    };
    body.zip(content_type).map(|(body, content_type)| Template { body, content_type })
}

/// Words between braces. JSON and style sheets have braces too, around other things.
fn places(body: &str) -> impl Iterator<Item = &str> {
    let inside = body.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inside.filter(|text| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    })
}

fn is_media_type(text: &str) -> bool {
    let is_token =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    let kind = text.split(';').next().unwrap_or_default().trim();
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && kind.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
}
