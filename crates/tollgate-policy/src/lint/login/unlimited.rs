//! TG103: a login without a limit.
//!
//! Reported if the file names a login-like path and no enforced limit covers POST requests for all
//! of it. Then the path is excluded with `not`, or its limit is in shadow, off, unlimited, free, or
//! for other methods only. Not reported if a limit may cover the path: conditions on other
//! attributes than path and method are assumed to hold.

use super::targets;
use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;

pub(crate) const CODE: &Code = &Code::new(
    "TG103",
    "login without a limit",
    "Only a limit on attempts stops clients from guessing passwords, codes and tokens.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for target in targets(view).iter().filter(|target| target.guards.is_empty()) {
        let path = quoted(target.path);
        let message =
            format!("no enforced limit covers POST {path}, so clients can guess there without end");
        let help = "add an enforced limit, such as `rate: 5/min` with `keys: [[ip, username], [ip], [username]]`";
        findings.warn(target.at, message, help);
    }
}
