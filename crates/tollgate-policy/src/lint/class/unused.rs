//! TG128: classes that change nothing.
//!
//! Reported: `classes` in a file without `shed`. Not reported: files with `shed`, even if its mode
//! is off, since a shedder may be off for a while.

use crate::diagnostic::Code;
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;

pub(crate) const CODE: &Code = &Code::new(
    "TG128",
    "classes without `shed`",
    "Only shedders look at the class of a request, so nothing is shed.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let file = &view.compiled.file;
    if let Some(classes) = file.classes.as_ref().filter(|_| file.shed.is_none()) {
        let message = "`classes` has no effect without `shed`";
        findings.warn(classes.name_at, message, "add `shed: {adaptive: {}}`, or remove `classes`");
    }
}
