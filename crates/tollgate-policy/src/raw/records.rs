//! Records: the decision log, the access log and the usage trail.

use super::{DurationText, SizeText, Text, raw, words};

raw! {
    /// Logs of single requests.
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
        /// Whether only refused requests are logged, or all.
        only: LoggedDecisions,
        /// The share of decisions that is written, such as `1%` or `0.01%`.
        sample: Text,
        /// `stderr`, `none` or the path of a file.
        to: Text,
        /// When the file is rotated.
        rotate: Rotate,
    }
}

raw! {
    /// The access log of the gateway.
    AccessLog {
        /// The format of lines.
        format: AccessFormat,
        /// `stderr`, `none` or the path of a file.
        to: Text,
        /// When the file is rotated.
        rotate: Rotate,
    }
}

raw! {
    /// When a log file is rotated.
    Rotate {
        /// The size at which the file is rotated.
        size: SizeText,
        /// The number of old files that are kept.
        keep: u64,
    }
}

raw! {
    /// The usage trail: units for each key, in append-only files.
    Usage {
        /// The path of the current file.
        #[cfg_attr(test, schemars(required))]
        file: Text,
        /// The length of an interval, for which units are added up.
        every: DurationText,
        /// Whether each interval is synced to disk before the next one.
        fsync: bool,
        /// When a file is closed and the next one starts.
        rotate: UsageRotate,
        /// The most keys in an interval; the units of further keys are added up without their key.
        max_keys: u64,
    }
}

raw! {
    /// When a file of the usage trail is closed and the next one starts.
    UsageRotate {
        /// The size at which a file is closed.
        size: SizeText,
        /// The age at which a file is closed.
        age: DurationText,
    }
}

words! {
    /// `log.decisions.only`.
    LoggedDecisions {
        /// Refused requests; the default.
        Refused = "refused",
        /// Admitted requests too.
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
