//! Records: the decision log, the access log and the usage trail.

use super::{DurationText, SizeText, Text, raw, words};

raw! {
    /// What is recorded of single requests.
    Log {
        /// One line of JSON for each decision.
        decisions: DecisionLog,
        /// One line for each request to the gateway.
        access: AccessLog,
    }
}

raw! {
    /// The decision log.
    DecisionLog {
        /// Refused requests only, or all.
        only: LoggedDecisions,
        /// The share of these that is written, such as `1%` or `0.01%`.
        sample: Text,
        /// `stderr`, `none` or the path of a file.
        to: Text,
        /// When a file is replaced by a new one.
        rotate: Rotate,
    }
}

raw! {
    /// The access log of the gateway.
    AccessLog {
        /// The form of its lines.
        format: AccessFormat,
        /// `stderr`, `none` or the path of a file.
        to: Text,
        /// When a file is replaced by a new one.
        rotate: Rotate,
    }
}

raw! {
    /// When a file of a log is replaced by a new one.
    Rotate {
        /// At this size.
        size: SizeText,
        /// How many old files stay.
        keep: u64,
    }
}

raw! {
    /// The usage trail: units of each key, in files that are only appended to.
    Usage {
        /// The path of the file that is written to.
        #[schemars(required)]
        file: Text,
        /// The length of the intervals that units are added up in.
        every: DurationText,
        /// Whether each interval is forced to the disk before the next one.
        fsync: bool,
        /// When a file is closed and the next one begins.
        rotate: UsageRotate,
        /// The most keys of an interval; the units of others are added up without their key.
        max_keys: u64,
    }
}

raw! {
    /// When a file of the usage trail is closed and the next one begins.
    UsageRotate {
        /// At this size.
        size: SizeText,
        /// At this age.
        age: DurationText,
    }
}

words! {
    /// `log.decisions.only`.
    LoggedDecisions {
        /// Refused requests; the default.
        Refused = "refused",
        /// Admitted ones too.
        All = "all",
    }
}

words! {
    /// `log.access.format`.
    AccessFormat {
        /// The Common Log Format with referrer and user agent; the default.
        Combined = "combined",
        /// The Common Log Format.
        Common = "common",
        /// One JSON object for each line.
        Json = "json",
    }
}
