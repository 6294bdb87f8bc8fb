//! Logs ambiguous paths, with the field that would accept them. The client's answer names only the
//! part of the path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollgate_policy::path::AmbiguousPath;
use tollgate_policy::settings::AmbiguousPaths;
use tollgate_tower::Ambiguity;

/// The reasons that one front end has logged, one bit each.
pub(super) struct LoggedReasons(AtomicU64);

impl LoggedReasons {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Logs the first refusal for each reason. The line contains no part of the request.
    pub(super) fn log(&self, front: &'static str, paths: AmbiguousPaths, why: &Ambiguity) {
        let Ambiguity::Path(reason) = why else { return };
        let bit = 1 << bit(*reason);
        if paths != AmbiguousPaths::MatchAll && self.0.fetch_or(bit, Relaxed) & bit == 0 {
            tracing::warn!(
                front,
                reason = %reason,
                help = "if clients need such paths, set `ambiguous_paths: match-all` on this listener",
                "refused an ambiguous path; later ones for this reason are not logged"
            );
        }
    }
}

fn bit(reason: AmbiguousPath) -> u32 {
    match reason {
        AmbiguousPath::InvalidEscape => 0,
        AmbiguousPath::Control => 1,
        AmbiguousPath::EscapedSlash => 2,
        AmbiguousPath::Backslash => 3,
        AmbiguousPath::EscapedDots => 4,
        AmbiguousPath::DotsWithParameter => 5,
        AmbiguousPath::DotsAndEmptySegments => 6,
        AmbiguousPath::Overlong => 7,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_observe::log::{LogFormat, LogLevel, capture};

    #[test]
    fn the_first_refusal_for_each_reason_names_the_field() {
        let reasons = LoggedReasons::new();
        let refuse = |paths, why| {
            capture(LogFormat::Json, LogLevel::default(), || {
                reasons.log("gateway", paths, &Ambiguity::Path(why))
            })
        };
        let slash = AmbiguousPath::EscapedSlash;
        assert_eq!(refuse(AmbiguousPaths::MatchAll, slash), "");
        let first = refuse(AmbiguousPaths::Refuse, slash);
        assert!(first.contains("ambiguous_paths: match-all") && first.contains("%2F"), "{first}");
        assert_eq!(refuse(AmbiguousPaths::Refuse, slash), "");
        let other = refuse(AmbiguousPaths::Refuse, AmbiguousPath::Backslash);
        assert!(other.contains("a backslash"), "{other}");
    }
}
