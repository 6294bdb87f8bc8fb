//! One row of output: the check API's answer, with the row's instant and, when asked for, status and fields.

use tollgate::{ReservationError, Settled, Verdict};
use tollgate_core::header::{Fields, Profile};
use tollgate_server::front::http::encode::{self, fields};

/// Writes answers, one a line.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The profiles to show, if any are asked for.
    pub(super) profiles: Option<Vec<Profile>>,
    fields: Fields,
}

/// What an admitted reservation adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved<'a> {
    pub(super) id: &'a str,
    pub(super) ttl_us: u64,
}

impl Writer {
    pub(super) fn new(profiles: Option<Vec<Profile>>) -> Self {
        Self { profiles, fields: Fields::new() }
    }

    /// The answer to a check, a peek or a reserve.
    pub(super) fn verdict(
        &mut self,
        out: &mut Vec<u8>,
        time_us: u64,
        verdict: &Verdict<'_>,
        reserved: Option<Reserved<'_>>,
    ) {
        encode::verdict(out, verdict);
        if let Some(Reserved { id, ttl_us }) = reserved {
            out.extend_from_slice(b",\"reservation\":");
            encode::string(out, id);
            out.extend_from_slice(b",\"expires_after\":");
            encode::seconds(out, ttl_us);
        }
        time(out, time_us);
        if let Some(profiles) = &self.profiles {
            status(out, fields::status(verdict));
            out.extend_from_slice(b",\"headers\":[");
            let mut separator: &[u8] = b"[";
            fields::each(verdict, profiles, time_us, &mut self.fields, |name, value| {
                out.extend_from_slice(separator);
                encode::string(out, name);
                out.push(b',');
                encode::string(out, value);
                out.push(b']');
                separator = b",[";
            });
            out.push(b']');
        }
        end(out);
    }

    /// The answer to a settle or a cancel.
    pub(super) fn settled(&self, out: &mut Vec<u8>, time_us: u64, id: &str, settled: &Settled<'_>) {
        out.extend_from_slice(b"{\"reservation\":");
        encode::string(out, id);
        out.extend_from_slice(b",\"charged\":");
        encode::integer(out, settled.charged);
        out.extend_from_slice(b",\"limits\":");
        encode::rows(out, &settled.rows);
        time(out, time_us);
        if self.profiles.is_some() {
            status(out, 200);
            out.extend_from_slice(b",\"headers\":[]");
        }
        end(out);
    }

    /// The answer to a reserve, a settle or a cancel whose reservation is not to be had.
    pub(super) fn problem(&self, out: &mut Vec<u8>, time_us: u64, error: ReservationError) {
        let (code, title) = match error {
            ReservationError::Unknown => (404, "Not Found"),
            ReservationError::Full => (503, "Service Unavailable"),
            _ => (409, "Conflict"),
        };
        out.extend_from_slice(b"{\"status\":");
        encode::integer(out, code);
        out.extend_from_slice(b",\"title\":");
        encode::string(out, title);
        out.extend_from_slice(b",\"detail\":");
        encode::string(out, &error.to_string());
        out.extend_from_slice(b",\"field\":\"reservation\"");
        time(out, time_us);
        if self.profiles.is_some() {
            out.extend_from_slice(b",\"headers\":[]");
        }
        end(out);
    }
}

fn time(out: &mut Vec<u8>, time_us: u64) {
    out.extend_from_slice(b",\"time\":");
    encode::seconds(out, time_us);
}

fn status(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b",\"status\":");
    encode::integer(out, u64::from(status));
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}
