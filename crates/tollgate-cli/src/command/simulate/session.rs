//! Rows in, answers out: decoded, decided and encoded as by the check API, at the row's own time.

use super::answer::{Reserved, Writer};
use super::tally::Tally;
use tollgate::{End, Gate, ReservationError, Work};
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_server::front::http::decode::{self, Op, Row};

/// A run over one gate.
pub(super) struct Session<'g> {
    gate: &'g Gate,
    writer: Writer,
    work: Work<'g>,
    buffer: FactsBuffer,
    pub(super) tally: Tally<'g>,
}

/// Why a row has no answer.
pub(super) type BadRow = String;

impl<'g> Session<'g> {
    pub(super) fn new(gate: &'g Gate, writer: Writer, tally: Tally<'g>) -> Self {
        Self { gate, writer, work: Work::default(), buffer: FactsBuffer::default(), tally }
    }

    /// Appends the answer to the row on line `number`.
    pub(super) fn answer(
        &mut self,
        number: u64,
        line: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), BadRow> {
        let row = decode::row(line).map_err(|bad| bad.to_string())?;
        match row.op {
            Op::Settle => self.end(&row, End::Settle(row.body.cost.unwrap_or(1)), out)?,
            Op::Cancel => self.end(&row, End::Cancel, out)?,
            _ => {
                let mut facts = self.gate.policy().facts(std::mem::take(&mut self.buffer));
                for (name, value) in &row.body.attributes {
                    facts.set(name, value).map_err(|bad| format!("`attributes.{name}`: {bad}"))?;
                }
                self.decide(number, &row, &facts, out);
                self.buffer = facts.into_buffer();
            }
        }
        self.tally.rows += 1;
        Ok(())
    }

    fn decide(&mut self, number: u64, row: &Row<'_>, facts: &Facts<'_>, out: &mut Vec<u8>) {
        let Self { gate, writer, work, tally, .. } = self;
        let (time_us, cost) = (row.time_us, row.body.cost.unwrap_or(1));
        let verdict = match row.op {
            Op::Peek => {
                let verdict = gate.peek(time_us, facts, cost, work);
                writer.verdict(out, time_us, &verdict, None);
                verdict
            }
            Op::Reserve => {
                let made;
                let id = match &row.body.reservation {
                    Some(id) => &**id,
                    None => {
                        made = format!("row-{number}");
                        &made
                    }
                };
                match gate.reserve(time_us, id, facts, cost, row.body.ttl_us, work) {
                    Ok((verdict, ttl_us)) => {
                        let reserved = ttl_us.map(|ttl_us| Reserved { id, ttl_us });
                        writer.verdict(out, time_us, &verdict, reserved);
                        tally.count(time_us, &verdict);
                        verdict
                    }
                    Err(error) => return writer.problem(out, time_us, error),
                }
            }
            _ => {
                let verdict = gate.check(time_us, facts, cost, work);
                writer.verdict(out, time_us, &verdict, None);
                tally.count(time_us, &verdict);
                verdict
            }
        };
        work.recycle(verdict);
    }

    fn end(&mut self, row: &Row<'_>, end: End, out: &mut Vec<u8>) -> Result<(), BadRow> {
        let id = row.body.reservation.as_deref().unwrap_or_default();
        match self.gate.end(row.time_us, id, end) {
            Ok(settled) => self.writer.settled(out, row.time_us, id, &settled),
            // What the check API answers with 400 is a mistake in the row, not an answer to it.
            Err(error @ ReservationError::CostTooLarge) => return Err(format!("`cost`: {error}")),
            Err(error) => self.writer.problem(out, row.time_us, error),
        }
        Ok(())
    }
}
