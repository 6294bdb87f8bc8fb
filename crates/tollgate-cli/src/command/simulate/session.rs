//! Rows in, answers out: the same decoding, deciding and encoding as the check API's, with the row's own time.

use super::answer::{Reserved, Writer};
use super::tally::Tally;
use tollgate::{End, Gate, ReservationError, TTL_US_MAX, Verdict, Work};
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_server::front::http::decode::{self, BadRequest, Op, Row};

/// A run over one gate.
pub(super) struct Session<'g> {
    gate: &'g Gate,
    writer: Writer,
    work: Work<'g>,
    buffer: FactsBuffer,
    tally: Tally<'g>,
}

/// Why a row has no answer.
pub(super) type BadRow = String;

impl<'g> Session<'g> {
    pub(super) fn new(gate: &'g Gate, writer: Writer, tally: Tally<'g>) -> Self {
        Self { gate, writer, work: Work::default(), buffer: FactsBuffer::default(), tally }
    }

    pub(super) fn tally(&self) -> &Tally<'g> {
        &self.tally
    }

    /// Appends the answer to the row on line `number`.
    pub(super) fn answer(
        &mut self,
        number: u64,
        line: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), BadRow> {
        let row = decode::row(line).map_err(|bad| bad.to_string())?;
        self.tally.row();
        match row.op {
            Op::Settle => self.end(&row, End::Settle(row.body.cost.unwrap_or(1)), out),
            Op::Cancel => self.end(&row, End::Cancel, out),
            _ => self.decide(number, &row, out),
        }
    }
}
