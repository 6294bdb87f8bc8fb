//! Rows in, answers out: decoded and decided as by the check API, at the row's own time.

use super::row_writer::{RowOutcome, RowResult};
use super::tally::Tally;
use tollgate::engine::{Gate, ReservationEnd, ReservationError, Rules, Work};
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_policy::settings::AmbiguousPaths;
use tollgate_server::front::http::decode::{self, Op, Row};

/// A run over one gate.
pub(super) struct Session<'g> {
    gate: &'g Gate,
    rules: &'g Rules,
    ambiguous_paths: AmbiguousPaths,
    work: Work,
    buffer: FactsBuffer,
    pub(super) tally: Tally<'g>,
}

/// Why a row has no answer.
pub(super) type BadRow = String;

impl<'g> Session<'g> {
    pub(super) fn new(
        gate: &'g Gate,
        rules: &'g Rules,
        ambiguous_paths: AmbiguousPaths,
        tally: Tally<'g>,
    ) -> Self {
        let (work, buffer) = (Work::default(), FactsBuffer::default());
        Self { gate, rules, ambiguous_paths, work, buffer, tally }
    }

    /// Answers the row on line `number`.
    pub(super) fn answer(&mut self, number: u64, line: &[u8]) -> Result<RowResult<'g>, BadRow> {
        let row = decode::row(line).map_err(|bad| bad.to_string())?;
        let outcome = match row.op {
            Op::Settle => self.end(&row, ReservationEnd::Settle(row.body.cost.unwrap_or(1)))?,
            Op::Cancel => self.end(&row, ReservationEnd::Cancel)?,
            _ => {
                let mut facts = self.rules.facts(std::mem::take(&mut self.buffer));
                facts.set_ambiguous_paths(self.ambiguous_paths);
                for (name, value) in &row.body.attributes {
                    facts.set(name, value).map_err(|bad| format!("`attributes.{name}`: {bad}"))?;
                }
                self.rules.identify(&mut facts);
                let outcome = self.decide(number, &row, &facts);
                self.buffer = facts.into_buffer();
                outcome
            }
        };
        self.tally.rows += 1;
        Ok(RowResult { time_us: row.time_us, outcome })
    }

    /// Takes the buffers of an answer that has been written.
    pub(super) fn recycle(&mut self, answer: RowResult<'g>) {
        if let RowOutcome::Decided(verdict, _) = answer.outcome {
            self.work.recycle(verdict);
        }
    }

    fn decide(&mut self, number: u64, row: &Row<'_>, facts: &Facts<'_>) -> RowOutcome<'g> {
        let Self { gate, rules, work, tally, .. } = self;
        let (time_us, cost) = (row.time_us, row.body.cost.unwrap_or(1));
        let (verdict, reserved) = match row.op {
            Op::Peek => {
                let verdict = gate.peek(rules, time_us, facts, cost, work).now();
                return RowOutcome::Decided(verdict, None);
            }
            Op::Reserve => {
                let id: Box<str> = match &row.body.reservation {
                    Some(id) => Box::from(&**id),
                    None => format!("row-{number}").into(),
                };
                match gate.reserve(rules, time_us, &id, facts, cost, row.body.ttl_us, work).now() {
                    Ok((verdict, ttl_us)) => (verdict, ttl_us.map(|ttl_us| (id, ttl_us))),
                    Err(error) => return RowOutcome::Problem(error),
                }
            }
            _ => (gate.check(rules, time_us, facts, cost, work).now(), None),
        };
        tally.count(time_us, &verdict);
        RowOutcome::Decided(verdict, reserved)
    }

    fn end(&mut self, row: &Row<'_>, end: ReservationEnd) -> Result<RowOutcome<'g>, BadRow> {
        let id = row.body.reservation.as_deref().unwrap_or_default();
        match self.gate.end(row.time_us, id, end).now() {
            Ok(settled) => Ok(RowOutcome::Ended(settled, id.into())),
            // What the check API answers with 400 is a mistake in the row, not an answer to it.
            Err(error @ ReservationError::CostTooLarge) => Err(format!("`cost`: {error}")),
            Err(error) => Ok(RowOutcome::Problem(error)),
        }
    }
}
