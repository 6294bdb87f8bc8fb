//! Bodies of refusals: RFC 9457 problem details with the draft's three types.

use alloc::string::String;
use core::fmt::Write as _;

/// The draft's problem types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// One or more limits are exceeded.
    QuotaExceeded,
    /// The server can do less than usual for a while.
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

    /// Appends the body as compact JSON. Limits that are not disclosed are left out of `violated`; when
    /// none is left, so is the member.
    pub fn render<'a>(self, violated: impl IntoIterator<Item = &'a str>, out: &mut String) {
        self.render_with_status(self.status(), violated, out);
    }

    /// The same for an answer with another status, which somebody else gives.
    pub fn render_with_status<'a>(
        self,
        status: u16,
        violated: impl IntoIterator<Item = &'a str>,
        out: &mut String,
    ) {
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
        out.push_str(if any { "]}" } else { "}" });
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
