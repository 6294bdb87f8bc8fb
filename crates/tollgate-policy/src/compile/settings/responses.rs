//! `headers`: the profiles, and a check that no two of them write the same header.

use crate::compile::fields::{require_items, required};
use crate::diagnostic::{Report, codes, listed, nearest, quoted};
use crate::raw::File;
use crate::settings::Template;
use tollgate_core::header::Profile;

pub(crate) fn headers(file: &File, report: &mut Report) -> Vec<&'static str> {
    let Some(field) = &file.headers else {
        return vec![Profile::Draft11.name(), Profile::XRateLimitEpoch.name()];
    };
    require_items(&field.0, "headers", field.at, report);
    let mut chosen: Vec<Profile> = Vec::new();
    for item in &field.0 {
        let Some(profile) = Profile::parse(item) else {
            let known = Profile::ALL.iter().map(|profile| profile.name());
            let near = nearest(item, known.clone());
            let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let message = format!("unknown header profile {}{meant}", quoted(item));
            let help = format!("write {}", listed(known));
            report.error(codes::UNKNOWN_VALUE, item.at, message, help);
            continue;
        };
        let name = profile.name();
        if chosen.contains(&profile) {
            let message = format!("the profile `{name}` is named twice");
            report.error(codes::REPEATED, item.at, message, "remove one of the two");
            continue;
        }
        let clash = chosen.iter().find_map(|other| Some((other, profile.shared_field(*other)?)));
        if let Some((other, field)) = clash {
            let message = format!("`{name}` and `{}` both write {field}", other.name());
            let draft_6 = [profile, *other].contains(&Profile::Draft6);
            let help = if draft_6 && field == "RateLimit-Policy" {
                "keep one of the two, or write `ratelimit` for `draft-6`: its numbers without policies"
            } else {
                "keep one of the two"
            };
            report.error(codes::PROFILES_COLLIDE, item.at, message, help);
        }
        chosen.push(profile);
    }
    if chosen.len() > 1 && chosen.contains(&Profile::None) {
        let message = "`none` is named together with other profiles";
        report.error(codes::PROFILES_COLLIDE, field.at, message, "keep `none`, or the others");
    }
    chosen.into_iter().map(Profile::name).collect()
}

/// The names that a template may have in braces, each replaced by a value.
const PLACES: [&str; 5] = ["status", "retry_after", "limits", "limit", "window"];

pub(crate) fn refusal(file: &File, report: &mut Report) -> Option<Template> {
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
            let help = "write one such as `text/html; charset=utf-8`";
            report.error(codes::BAD_TEMPLATE, written.at, message, help);
            None
        }
    };
    body.zip(content_type).map(|(body, content_type)| Template { body, content_type })
}

/// Returns the words in braces. JSON and CSS also have braces, but not around a single word.
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
