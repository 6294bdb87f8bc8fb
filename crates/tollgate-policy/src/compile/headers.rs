//! `headers`: which profiles, and that no two of them write one field.

use super::fields::require_items;
use crate::diagnostic::{Report, codes};
use crate::raw::File;
use crate::suggest::{listed, nearest, quoted};
use tollgate_core::header::Profile;

pub(super) fn headers(file: &File, report: &mut Report) -> Vec<&'static str> {
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
