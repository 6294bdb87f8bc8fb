//! Decodes rows and decides them as the check API does, each at its own time.

use super::row_writer::{RowOutcome, RowResult};
use super::shed_run::ShedRun;
use super::shed_tally::ShedTally;
use super::tally::Tally;
use super::upstream::UpstreamModel;
use tollgate::engine::{Gate, GateBuffers, ReservationEnd, ReservationError, Rules};
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_policy::settings::AmbiguousPaths;
use tollgate_server::front::http::decode::{self, Op, Row};

/// A run over one gate.
pub(super) struct Session<'g> {
    gate: &'g Gate,
    rules: &'g Rules,
    ambiguous_paths: AmbiguousPaths,
    work: GateBuffers,
    buffer: FactsBuffer,
    pub(super) tally: Tally<'g>,
    answers: AnswerSource<'g>,
}

/// The source of results.
enum AnswerSource<'g> {
    /// Each row is decided at once; holds the result that is not written yet.
    Decision(Option<RowResult<'g>>),
    /// Checks wait for an upstream.
    Upstream(Box<ShedRun<'g>>),
}

/// Why a row is invalid.
pub(super) type BadRow = String;

impl<'g> Session<'g> {
    pub(super) fn new(
        gate: &'g Gate,
        rules: &'g Rules,
        ambiguous_paths: AmbiguousPaths,
        tally: Tally<'g>,
        upstream: Option<UpstreamModel>,
    ) -> Self {
        let (work, buffer) = (GateBuffers::default(), FactsBuffer::default());
        let answers = match upstream {
            Some(upstream) => AnswerSource::Upstream(Box::new(ShedRun::new(gate, rules, upstream))),
            None => AnswerSource::Decision(None),
        };
        Self { gate, rules, ambiguous_paths, work, buffer, tally, answers }
    }

    /// The counts of shedders, if there is an upstream.
    pub(super) fn shed(&self) -> Option<&ShedTally> {
        match &self.answers {
            AnswerSource::Upstream(run) => Some(&run.tally),
            AnswerSource::Decision(_) => None,
        }
    }

    /// The summary of the run, as lines.
    pub(super) fn summary(&self) -> String {
        let shed = self.shed().map(ToString::to_string).unwrap_or_default();
        format!("{}{shed}", self.tally)
    }

    /// Returns the next result in the order of the rows, if it is known.
    pub(super) fn next_answer(&mut self) -> Option<RowResult<'g>> {
        match &mut self.answers {
            AnswerSource::Decision(answer) => answer.take(),
            AnswerSource::Upstream(run) => run.next_answer(),
        }
    }

    /// Waits in virtual time for all calls to the upstream.
    pub(super) fn finish(&mut self) {
        if let AnswerSource::Upstream(run) = &mut self.answers {
            run.finish(&mut self.tally);
        }
    }

    /// Decides the row on line `number`, or lets it wait for the upstream.
    pub(super) fn answer(&mut self, number: u64, line: &[u8]) -> Result<(), BadRow> {
        let row = decode::row(line).map_err(|bad| bad.to_string())?;
        if let AnswerSource::Upstream(run) = &mut self.answers {
            run.advance(row.time_us, &mut self.tally);
        }
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
                if let AnswerSource::Upstream(run) = &mut self.answers
                    && row.op == Op::Check
                {
                    let asked = (row.time_us, row.body.cost.unwrap_or(1));
                    run.check(asked, &facts, &mut self.work, &mut self.tally);
                    self.buffer = facts.into_buffer();
                    self.tally.rows += 1;
                    return Ok(());
                }
                let outcome = self.decide(number, &row, &facts);
                self.buffer = facts.into_buffer();
                outcome
            }
        };
        self.tally.rows += 1;
        self.push(RowResult { time_us: row.time_us, outcome });
        Ok(())
    }

    fn push(&mut self, answer: RowResult<'g>) {
        match &mut self.answers {
            AnswerSource::Decision(next) => *next = Some(answer),
            AnswerSource::Upstream(run) => run.push_answer(answer),
        }
    }

    /// Takes back the buffers of a written result.
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
            // Errors for which the check API answers 400 are errors of the row, not results.
            Err(error @ ReservationError::CostTooLarge) => Err(format!("`cost`: {error}")),
            Err(error) => Ok(RowOutcome::Problem(error)),
        }
    }
}
