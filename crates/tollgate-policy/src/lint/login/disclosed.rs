//! TG105: a login limit that discloses how many attempts are left.
//!
//! Not reported: limits whose `match` names no login-like path, such as a limit on everything, and
//! limits in shadow or off, which disclose nothing.

use super::{is_login_like, matched_paths};
use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;

pub(crate) const CODE: &Code = &Code::new(
    "TG105",
    "login that discloses its quota",
    "The quota tells an attacker how fast to guess, and how much others use a name or address.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.refuses() && item.limit.disclose) {
        let mut paths = matched_paths(&item.entry.value);
        let Some((path, at)) = paths.find(|(path, _)| is_login_like(path)) else { continue };
        let name = item.entry_name();
        let message = format!(
            "{} tells each client how many attempts at {} it has left",
            quoted(name),
            quoted(path)
        );
        findings.warn(at, message, "add `disclose: false`: refusals then say only when to retry");
    }
}
