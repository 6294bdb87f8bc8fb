//! One row of output: the check API's response with its time, and status and headers on demand.

use tollgate::engine::{ReservationError, SettledReservation, Verdict};
use tollgate_core::header::{HeaderLines, Profile};
use tollgate_server::front::http::encode;

/// The result of a row.
pub(super) struct RowResult<'g> {
    pub(super) time_us: u64,
    pub(super) outcome: RowOutcome<'g>,
}

/// The outcome of a row, by operation.
pub(super) enum RowOutcome<'g> {
    /// A check, a peek or a reserve. An admitted reserve has its id and time to live.
    Decided(Verdict<'g>, Option<(Box<str>, u64)>),
    /// A settle or a cancel of this reservation.
    Ended(SettledReservation, Box<str>),
    /// A reserve, settle or cancel that failed.
    Problem(ReservationError),
}

impl RowResult<'_> {
    /// The number of limits plus one, a measure of the work to keep and write the result.
    pub(super) fn weight(&self) -> usize {
        1 + match &self.outcome {
            RowOutcome::Decided(verdict, _) => verdict.rows.len(),
            RowOutcome::Ended(settled, _) => settled.rows().len(),
            RowOutcome::Problem(_) => 0,
        }
    }
}

/// Writes results, one per line.
#[derive(Debug)]
pub(super) struct RowWriter {
    /// The profiles to show, with `--headers`.
    profiles: Option<Vec<Profile>>,
    fields: HeaderLines,
}

impl RowWriter {
    pub(super) fn new(profiles: Option<Vec<Profile>>) -> Self {
        Self { profiles, fields: HeaderLines::new() }
    }

    pub(super) fn answer(&mut self, out: &mut Vec<u8>, answer: &RowResult<'_>) {
        let time_us = answer.time_us;
        match &answer.outcome {
            RowOutcome::Decided(verdict, reserved) => {
                encode::verdict(out, verdict);
                if let Some((id, ttl_us)) = reserved {
                    encode::reserved(out, id, *ttl_us);
                }
                time(out, time_us);
                self.fields(out, time_us, verdict);
            }
            RowOutcome::Ended(settled, id) => {
                encode::settled(out, id, settled);
                time(out, time_us);
                self.no_fields(out, Some(200));
            }
            RowOutcome::Problem(error) => {
                problem(out, *error);
                time(out, time_us);
                self.no_fields(out, None);
            }
        }
        out.extend_from_slice(b"}\n");
    }

    fn fields(&mut self, out: &mut Vec<u8>, time_us: u64, verdict: &Verdict<'_>) {
        let Some(profiles) = &self.profiles else { return };
        status(out, encode::status(verdict));
        out.extend_from_slice(b",\"headers\":[");
        let mut separator: &[u8] = b"[";
        encode::render_headers(verdict, profiles, time_us, &mut self.fields);
        for (name, value) in self.fields.iter() {
            out.extend_from_slice(separator);
            encode::string(out, name);
            out.push(b',');
            encode::string(out, value);
            out.push(b']');
            separator = b",[";
        }
        out.push(b']');
    }

    /// Writes the status of a result without a verdict, and so without rate limit headers.
    fn no_fields(&self, out: &mut Vec<u8>, code: Option<u16>) {
        if self.profiles.is_some() {
            code.into_iter().for_each(|code| status(out, code));
            out.extend_from_slice(b",\"headers\":[]");
        }
    }
}

fn problem(out: &mut Vec<u8>, error: ReservationError) {
    let (code, title) = match error {
        ReservationError::Unknown => (404, "Not Found"),
        ReservationError::Full | ReservationError::Undecided(_) => (503, "Service Unavailable"),
        _ => (409, "Conflict"),
    };
    out.extend_from_slice(b"{\"status\":");
    encode::integer(out, code);
    out.extend_from_slice(b",\"title\":");
    encode::string(out, title);
    out.extend_from_slice(b",\"detail\":");
    encode::string(out, &error.to_string());
    out.extend_from_slice(b",\"field\":\"reservation\"");
}

fn time(out: &mut Vec<u8>, time_us: u64) {
    out.extend_from_slice(b",\"time\":");
    encode::seconds(out, time_us);
}

fn status(out: &mut Vec<u8>, code: u16) {
    out.extend_from_slice(b",\"status\":");
    encode::integer(out, u64::from(code));
}
