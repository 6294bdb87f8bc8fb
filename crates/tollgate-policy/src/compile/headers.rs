//! `headers`: which profiles, and that no two of them write one field.

use crate::diagnostic::{Report, codes};
use crate::raw::File;
use crate::suggest::{listed, nearest, quoted};

/// Each profile with the fields it writes.
const PROFILES: &[(&str, &[&str])] = &[
    ("draft-11", &["RateLimit-Policy", "RateLimit"]),
    ("draft-7", &["RateLimit-Policy", "RateLimit"]),
    ("draft-6", &["RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]),
    ("x-ratelimit-epoch", X_RATELIMIT),
    ("x-ratelimit-delta", X_RATELIMIT),
    (
        "github",
        &[
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Used",
            "X-RateLimit-Reset",
            "X-RateLimit-Resource",
        ],
    ),
    (
        "discord",
        &[
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "X-RateLimit-Reset-After",
            "X-RateLimit-Bucket",
            "X-RateLimit-Scope",
        ],
    ),
    (NONE, &[]),
];
const X_RATELIMIT: &[&str] =
    &["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Policy"];
const NONE: &str = "none";

/// A profile by name, and the fields it writes.
fn profile(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    PROFILES.iter().find(|(known, _)| *known == name).copied()
}

pub(super) fn headers(file: &File, report: &mut Report) -> Vec<&'static str> {
    let Some(field) = &file.headers else { return vec!["draft-11", "x-ratelimit-epoch"] };
    super::fields::some_items(&field.0, "headers", field.at, report);
    let mut chosen: Vec<&'static str> = Vec::new();
    for item in &field.0 {
        let Some((name, fields)) = profile(item) else {
            let known = PROFILES.iter().map(|(name, _)| *name);
            let near = nearest(item, known.clone());
            let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let message = format!("unknown header profile {}{meant}", quoted(item));
            report.error(
                codes::UNKNOWN_VALUE,
                item.at,
                message,
                format!("write {}", listed(known)),
            );
            continue;
        };
        if chosen.contains(&name) {
            let message = format!("the profile `{name}` is named twice");
            report.error(codes::REPEATED, item.at, message, "remove one of the two");
            continue;
        }
        let clash = chosen.iter().find_map(|other| {
            let (_, written) = profile(other)?;
            let field = fields.iter().find(|field| written.contains(field))?;
            Some((*other, *field))
        });
        if let Some((other, field)) = clash {
            let message = format!("`{name}` and `{other}` both write {field}");
            report.error(codes::PROFILES_COLLIDE, item.at, message, "keep one of the two");
        }
        chosen.push(name);
    }
    if chosen.len() > 1 && chosen.contains(&NONE) {
        let message = "`none` is named together with other profiles";
        report.error(codes::PROFILES_COLLIDE, field.at, message, "keep `none`, or the others");
    }
    chosen
}
