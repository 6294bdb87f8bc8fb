//! Lints: warnings about valid files that probably do not do what their author wants.
//!
//! A lint is one file with a `CODE` and a `check`, one line in the table below, and a section in
//! `docs/lints.md`. It has two fixtures in `tests/fixtures/lint`: one that fires and one that does
//! not. Tests fail when any is missing. Each file says what its lint does not report: a warning
//! that is usually wrong teaches people to ignore the others.

mod ambiguous_path;
mod analysis;
mod burst;
mod caller_time;
mod cardinality;
mod class;
mod client_chosen;
mod empty_share;
mod fixed_window;
mod ip_key;
mod local_rate;
mod login;
mod long_queue;
mod never_fits;
mod penalty_unset;
mod plaintext_upstreams;
mod same_candidate;
mod shadowed;
mod single_unit;
#[cfg(test)]
mod tests;
mod tier_lookup_empty;
mod trusts_all;
mod unknown_code;
mod unlimited_without_attribute;
mod unsettled;
mod unstable_keys;
mod unsupplied;
mod unused_cost;
mod unused_key;

use crate::Compiled;
use crate::diagnostic::{Code, Diagnostic, Position, Severity};
use analysis::view::LintView;

macro_rules! lints {
    ($($($lint:ident)::+,)*) => {
        /// All lints, in the order of their codes.
        pub const LINTS: &[&Code] = &[$($($lint)::+::CODE),*];

        const CHECKS: &[(&Code, fn(&LintView<'_>, &mut Findings))] =
            &[$(($($lint)::+::CODE, $($lint)::+::check)),*];
    };
}

lints! {
    ip_key,
    fixed_window,
    login::unlimited,
    login::fails_open,
    login::disclosed,
    login::mixed,
    client_chosen::key,
    client_chosen::tier,
    unlimited_without_attribute,
    unsupplied,
    client_chosen::cost,
    burst,
    shadowed,
    cardinality,
    unknown_code,
    never_fits,
    trusts_all,
    unsettled,
    long_queue,
    plaintext_upstreams,
    unused_cost,
    unused_key,
    ambiguous_path,
    tier_lookup_empty,
    local_rate,
    class::unreachable,
    class::client_chosen,
    class::unused,
    class::forwarded,
    same_candidate,
    empty_share,
    single_unit,
    caller_time,
    unstable_keys,
    penalty_unset,
}

/// Returns the warnings for a file without errors, in file order, except those that `lint.allow`
/// accepts.
pub fn lint(compiled: &Compiled) -> Vec<Diagnostic> {
    let shapes = analysis::view::shapes(compiled);
    let view = LintView::new(compiled, &shapes);
    let mut found = Vec::new();
    for (code, check) in CHECKS {
        if compiled.settings.lint_allow.iter().all(|allowed| **allowed != *code.code) {
            check(&view, &mut Findings { code, found: &mut found });
        }
    }
    found.sort_by_key(|diagnostic| (diagnostic.position(), diagnostic.code));
    found
}

/// Collects the warnings of one lint.
struct Findings<'a> {
    code: &'static Code,
    found: &'a mut Vec<Diagnostic>,
}

impl Findings<'_> {
    fn warn(&mut self, at: Position, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Diagnostic::new(self.code, Severity::Warning, at, message, help));
    }
}
