//! TG106: one bucket for logins and other requests.
//!
//! Reported: a limit that lists login-like paths together with others. Also reported: a login-like
//! path of the file that only limits on more than logins cover. Not reported: a path that an
//! enforced limit on login-like paths alone covers, and limits that are off. A login path with
//! several methods is not reported, since requests for the form are rare.

use super::{is_login_like, matched_paths, targets};
use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;
use crate::lint::analysis::view::LintedLimit;

pub(crate) const CODE: &Code = &Code::new(
    "TG106",
    "one limit for logins and reads",
    "A rate that suits reads is far too high for password guesses, and ordinary use spends the attempts.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let entry = &item.entry.value;
        let login = matched_paths(entry).find(|(path, _)| is_login_like(path));
        let other = matched_paths(entry).find(|(path, _)| !is_login_like(path));
        let (Some((login, at)), Some((other, _))) = (login, other) else { continue };
        let name = item.entry_name();
        let message = format!(
            "{} counts {} and {} in one bucket",
            quoted(name),
            quoted(login),
            quoted(other)
        );
        let help = format!("give {} its own limit, with a lower rate", quoted(login));
        findings.warn(at, message, help);
    }
    for target in targets(view) {
        let names_login = |item: &&&LintedLimit<'_>| {
            matched_paths(&item.entry.value).any(|(path, _)| is_login_like(path))
        };
        let Some(wide) = target.guards.first() else { continue };
        if target.guards.iter().find(names_login).is_some() {
            continue;
        }
        let (path, name) = (quoted(target.path), quoted(&wide.limit.name));
        let message =
            format!("only {name} covers {path}, and it counts other requests in the same bucket");
        findings.warn(
            target.at,
            message,
            format!("give {path} its own enforced limit, with a lower rate"),
        );
    }
}
