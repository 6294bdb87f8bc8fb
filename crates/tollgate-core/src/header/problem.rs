//! Bodies of refusals: RFC 9457 problem details with the draft's three types.

use super::render_cache::window_seconds;
use alloc::string::String;
use core::fmt::Write as _;

/// The problem types of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// One or more limits are exceeded.
    QuotaExceeded,
    /// The server has less capacity than usual for a while.
    TemporaryReducedCapacity,
    /// The pattern of requests suggests an accident or malice.
    AbnormalUsageDetected,
}

impl Problem {
    /// The media type of the body.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// The HTTP status, which the body repeats.
    pub const fn status(self) -> u16 {
        match self {
            Self::QuotaExceeded | Self::AbnormalUsageDetected => 429,
            Self::TemporaryReducedCapacity => 503,
        }
    }

    /// The registered title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::QuotaExceeded => "Quota Exceeded",
            Self::TemporaryReducedCapacity => "Temporary Reduced Capacity",
            Self::AbnormalUsageDetected => "Abnormal Usage Detected",
        }
    }

    /// The type URI.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::QuotaExceeded => "https://iana.org/assignments/http-problem-types#quota-exceeded",
            Self::TemporaryReducedCapacity => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
            Self::AbnormalUsageDetected => {
                "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
            }
        }
    }

    /// Appends the body as compact JSON. Undisclosed limits are left out of `violated`; an empty
    /// list is left out too.
    pub fn render<'a>(self, violated: impl IntoIterator<Item = &'a str>, out: &mut String) {
        self.open(self.status(), violated, out);
        out.push('}');
    }

    /// [`render`](Self::render) for a response with this status, which a proxy such as Envoy may
    /// send. Adds the members that many clients expect: `error`, `message`, `retry_after`, `limit`,
    /// `window` (seconds) and `burst`. The last three are left out if no limit is disclosed.
    pub fn render_refusal<'a>(
        self,
        status: u16,
        violated: impl IntoIterator<Item = &'a str>,
        retry_after_s: Option<u64>,
        quota: Option<&Quota>,
        out: &mut String,
    ) {
        self.open(status, violated, out);
        if let Some(quota) = quota {
            out.push(',');
            refusal_members(retry_after_s, out);
            quota.members(out);
        }
        out.push('}');
    }

    fn open<'a>(self, status: u16, violated: impl IntoIterator<Item = &'a str>, out: &mut String) {
        out.push_str("{\"type\":");
        json_string(out, self.uri());
        out.push_str(",\"title\":");
        json_string(out, self.title());
        out.push_str(",\"status\":");
        // Writing to a string cannot fail.
        let _ = write!(out, "{status}");
        let mut any = false;
        for name in violated {
            out.push_str(if any { "," } else { ",\"violated-policies\":[" });
            json_string(out, name);
            any = true;
        }
        if any {
            out.push(']');
        }
    }
}

/// The tightest limit that refused, as in the body of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// The capacity, as in the headers.
    pub limit: u64,
    /// The window in whole seconds, as in the headers; `None` if capacity does not come back with
    /// time.
    pub window_s: Option<u64>,
    /// The burst, if it differs from the rate.
    pub burst: Option<u64>,
}

impl Quota {
    /// Creates the figures of a limit with this capacity, window and burst.
    pub const fn new(limit: u64, window_us: Option<u64>, burst: Option<u64>) -> Self {
        let window_s = match window_us {
            Some(us) => Some(window_seconds(us)),
            None => None,
        };
        Self { limit, window_s, burst }
    }

    fn members(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(out, ",\"limit\":{},\"window\":", self.limit);
        number(self.window_s, out);
        if let Some(burst) = self.burst {
            let _ = write!(out, ",\"burst\":{burst}");
        }
    }
}

/// Appends `"error":...,"message":...,"retry_after":...`, for clients that do not know problem
/// types.
pub fn refusal_members(retry_after_s: Option<u64>, out: &mut String) {
    out.push_str("\"error\":\"rate_limit_exceeded\",\"message\":\"Too many requests.");
    if let Some(seconds) = retry_after_s {
        // Writing to a string cannot fail.
        let _ = write!(out, " Retry after {seconds} seconds.");
    }
    out.push_str("\",\"retry_after\":");
    number(retry_after_s, out);
}

fn number(value: Option<u64>, out: &mut String) {
    match value {
        // Writing to a string cannot fail.
        Some(value) => drop(write!(out, "{value}")),
        None => out.push_str("null"),
    }
}

fn json_string(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => {
                out.push_str("\\u00");
                for digit in [c as u32 >> 4, c as u32 & 15] {
                    out.extend(char::from_digit(digit, 16));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
