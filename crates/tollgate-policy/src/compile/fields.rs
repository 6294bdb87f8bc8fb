//! Checks that many fields share: ranges, required fields, secrets.

use crate::diagnostic::{Position, Report, codes, quoted};
use crate::grammar::{self, Problem};
use crate::raw::{At, DurationText, Field, Password, Text};
use crate::settings::Secret;

/// Parses a duration in microseconds. Returns the default if the field is absent or outside
/// `(least, most)`.
pub(super) fn duration_us(
    field: &Field<DurationText>,
    default_us: u64,
    (least_us, most_us): (u64, u64),
    report: &mut Report,
) -> u64 {
    let Some(field) = field else { return default_us };
    let Some(us) = report.accept(field.at, grammar::duration_us(field)) else { return default_us };
    if (least_us..=most_us).contains(&us) {
        return us;
    }
    let range = format!("{} to {}", grammar::format_us(least_us), grammar::format_us(most_us));
    out_of_range(field.at, field, &range, report);
    default_us
}

/// Reads a number. Returns the default if the field is absent or outside `(least, most)`.
pub(super) fn number(
    field: &Field<u64>,
    default: u64,
    (least, most): (u64, u64),
    report: &mut Report,
) -> u64 {
    let Some(field) = field else { return default };
    if (least..=most).contains(&field.value) {
        return field.value;
    }
    out_of_range(field.at, &field.value.to_string(), &format!("{least} to {most}"), report);
    default
}

/// [`number`] for 32 bits.
pub(super) fn number_u32(
    field: &Field<u64>,
    default: u32,
    (least, most): (u32, u32),
    report: &mut Report,
) -> u32 {
    let value = number(field, default.into(), (least.into(), most.into()), report);
    u32::try_from(value).unwrap_or(default)
}

pub(super) fn out_of_range(at: Position, found: &str, range: &str, report: &mut Report) {
    let message = format!("{} is out of range", quoted(found));
    report.error(codes::OUT_OF_RANGE, at, message, format!("the range is {range}"));
}

/// Returns the word of a field, or the default if the field is absent.
pub(super) fn word<T: Copy + Default>(field: &Field<T>) -> T {
    field.as_ref().map(|field| field.value).unwrap_or_default()
}

/// Returns the text of a field, and reports an empty text.
pub(super) fn text(field: &Field<Text>, report: &mut Report) -> Option<Box<str>> {
    let field = field.as_ref()?;
    report.accept(field.at, not_empty(field))
}

pub(super) fn not_empty(text: &str) -> Result<Box<str>, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::new(codes::MISSING_FIELD, "the text is empty", "write a value"));
    }
    Ok(text.into())
}

/// Returns the text of a required field, and reports a missing or empty one.
pub(super) fn required(
    field: &Field<Text>,
    name: &str,
    (of, unreadable): (Position, &[&str]),
    report: &mut Report,
) -> Option<Box<str>> {
    if field.is_none() {
        missing(name, (of, unreadable), report);
    }
    text(field, report)
}

/// Reports that the map at `of` lacks the field `name`. Says nothing about a field that is present
/// but unreadable.
pub(super) fn missing(name: &str, (of, unreadable): (Position, &[&str]), report: &mut Report) {
    if unreadable.contains(&name) {
        return;
    }
    let message = format!("`{name}` is missing");
    report.error(codes::MISSING_FIELD, of, message, format!("add `{name}: ...` here"));
}

/// Parses each item. Items with errors are reported and left out.
pub(super) fn map_items<T, U>(
    items: &[At<T>],
    report: &mut Report,
    parse: impl Fn(&T) -> Result<U, Problem>,
) -> Vec<U> {
    items.iter().filter_map(|item| report.accept(item.at, parse(item))).collect()
}

/// Reports a list without items.
pub(super) fn require_items<T>(items: &[T], name: &str, at: Position, report: &mut Report) {
    if items.is_empty() {
        let help = format!("name at least one, or remove `{name}`");
        report.error(codes::EMPTY_LIST, at, format!("`{name}` is empty"), help);
    }
}

/// Reports unless exactly one of the alternatives is given.
pub(super) fn exactly_one(given: &[(&str, bool)], at: Position, report: &mut Report) -> bool {
    let chosen: Vec<&str> =
        given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if chosen.len() == 1 {
        return true;
    }
    let all = crate::diagnostic::listed(given.iter().map(|(name, _)| *name));
    let message = match chosen.as_slice() {
        [] => format!("none of {all} is given"),
        chosen => {
            let names: Vec<String> = chosen.iter().map(|name| format!("`{name}`")).collect();
            format!("{} are given together", names.join(" and "))
        }
    };
    report.error(codes::EXACTLY_ONE, at, message, format!("give exactly one of {all}"));
    false
}

/// A secret that clients send in a header: visible ASCII characters.
pub(super) fn token(field: &Field<Password>, report: &mut Report) -> Option<Secret> {
    if let Some(field) = field
        && let Password::Text(text) = &field.value
        && !text.is_empty()
        && (text.trim().is_empty() || !text.trim().bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let message =
            "the secret has spaces or characters outside ASCII, so no client could send it";
        let help = "write letters, digits and punctuation only, or {env: NAME}";
        report.problem(field.at, Problem::new(codes::BAD_SECRET, message, help));
        return None;
    }
    secret(field, report)
}

/// Reads a secret: the text itself, or the name of an environment variable.
pub(super) fn secret(field: &Field<Password>, report: &mut Report) -> Option<Secret> {
    let field = field.as_ref()?;
    let bad = |message: &str, help: &str| Problem::new(codes::BAD_SECRET, message, help);
    match &field.value {
        Password::Text(text) if text.is_empty() => {
            let problem = bad("the secret is empty", "write it, or {env: NAME}");
            report.problem(field.at, problem);
            None
        }
        Password::Text(text) => Some(Secret::literal(&**text)),
        Password::Env(form) => {
            let Some(env) = &form.env else {
                missing("env", (field.at, &form.unreadable), report);
                return None;
            };
            let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if env.is_empty()
                || !env.chars().all(valid)
                || env.starts_with(|c: char| c.is_ascii_digit())
            {
                // The text may be the secret itself, so the message does not quote it.
                let help = "write {env: NAME}: letters, digits and `_`, such as TOLLGATE_TOKEN";
                report
                    .problem(env.at, bad("this is not the name of an environment variable", help));
                return None;
            }
            Some(Secret::env(env.0.as_str()))
        }
    }
}
