//! `TG.RESERVE`, `TG.SETTLE` and `TG.CANCEL`.

use super::CommandKind;
use super::limit::{LimitCall, LimitCallError, NO_LIMIT, decision_integers, parse_unsigned};
use crate::front::base64::new_id;
use crate::front::resp::batch::Batch;
use crate::front::resp::encode::{self, RespVersion};
use crate::front::resp::session::RespState;
use crate::front::resp::session::Session;
use crate::front::shedding;
use std::ops::Range;
use tollgate::engine::{
    ReservationEnd, ReservationError, Rules, Source, UpstreamOutcome, UpstreamReport,
};
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest};

/// Limit of a reservation id, in bytes.
const ID_BYTES_MAX: usize = 512;
/// Limit of a reported latency: an hour.
const LATENCY_MS_MAX: u64 = 3_600_000;

/// The reason why a reservation was not made or not ended.
#[derive(Debug, thiserror::Error)]
enum ReservationCommandError {
    #[error(transparent)]
    Call(#[from] LimitCallError),
    #[error("{} {}", code(*.0), .0)]
    Reservation(ReservationError),
    #[error("ERR the system has no random numbers")]
    NoRandom,
}

impl RespState {
    /// Replies to one of the three commands. All earlier commands are already decided.
    pub(crate) async fn reservation(
        &self,
        batch: &mut Batch,
        (bytes, name, arguments): (&[u8], CommandKind, &[Range<usize>]),
        rules: &Rules,
        session: &Session,
    ) {
        let done = match name {
            CommandKind::Reserve => {
                self.reserve(batch, bytes, arguments, rules, session.version).await
            }
            _ => self.end(batch, bytes, name, arguments).await,
        };
        if let Err(failed) = done {
            batch.reply(failed.outcome(), |out| encode::error(out, failed));
        }
    }

    async fn reserve(
        &self,
        batch: &mut Batch,
        bytes: &[u8],
        arguments: &[Range<usize>],
        rules: &Rules,
        version: RespVersion,
    ) -> Result<(), ReservationCommandError> {
        let mut call = LimitCall::parse(bytes, arguments, rules, &mut batch.last_limit)?;
        let mut ttl_us = None;
        if let [cost, ttl] = call.rest {
            let ttl_ms = parse_unsigned(&bytes[ttl.clone()]).filter(|ttl_ms| *ttl_ms <= 3_600_000);
            ttl_us = Some(ttl_ms.filter(|ttl_ms| *ttl_ms > 0).ok_or(LimitCallError::Ttl)? * 1_000);
            call.rest = std::slice::from_ref(cost);
        }
        let cost = call.cost(bytes)?;
        let now_us = self.node.clock.now_us();
        let mut facts = rules.facts(std::mem::take(&mut batch.facts));
        call.set_key(bytes, rules, &mut facts)?;
        self.node.identify(rules, &mut facts, now_us).await;
        let id = new_id().map_err(|_| ReservationCommandError::NoRandom)?;
        let (limit, gate_buffers) = (call.limit, &mut batch.gate_buffers);
        let reserving = self.node.gate.reserve_one(
            rules,
            now_us,
            &id,
            limit,
            &facts,
            cost,
            ttl_us,
            gate_buffers,
        );
        let (mut verdict, mut kept_us) =
            reserving.await.map_err(ReservationCommandError::Reservation)?;
        let opened = kept_us.map(|ttl_us| (&*id, ttl_us));
        shedding::enter(&self.node, rules, (&facts, cost), &mut verdict, opened).await;
        kept_us = kept_us.filter(|_| verdict.allowed);
        if self.node.watches_decisions() {
            let (front, key, end_us) =
                (Front::Resp.name(), DecidedKey::Facts(&facts), self.node.clock.now_us());
            let (parent, request_id, is_peek, start_us) = (None, None, false, now_us);
            let decided =
                DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
            self.node.records.record(&self.node.keys, rules, &decided, &verdict);
        }
        let outcome = Outcome::of_verdict(&verdict);
        let shown = verdict.rows.first();
        let five = shown.map_or(NO_LIMIT, |row| {
            let mut outcome = row.outcome;
            if verdict.source == Source::Shed {
                outcome.retry_after_us = verdict.retry_after_us;
            }
            decision_integers(verdict.allowed, &outcome, row.limit.disclose)
        });
        batch.outcome_counts[outcome as usize] += 1;
        let out = &mut batch.output;
        encode::array(out, 6);
        five.into_iter().for_each(|value| encode::integer(out, value));
        match kept_us {
            Some(_) => encode::bulk(out, id.as_bytes()),
            None => encode::null(out, version),
        }
        batch.gate_buffers.recycle(verdict);
        batch.facts = facts.into_buffer();
        Ok(())
    }

    async fn end(
        &self,
        batch: &mut Batch,
        bytes: &[u8],
        name: CommandKind,
        arguments: &[Range<usize>],
    ) -> Result<(), ReservationCommandError> {
        let text = |place: usize| &bytes[arguments[place].clone()];
        let end = match name {
            CommandKind::Settle => {
                ReservationEnd::Settle(parse_unsigned(text(2)).ok_or(LimitCallError::Cost)?)
            }
            _ => ReservationEnd::Cancel,
        };
        let id = str::from_utf8(text(1)).ok().filter(|id| id.len() <= ID_BYTES_MAX);
        let id = id.ok_or(ReservationCommandError::Reservation(ReservationError::Unknown))?;
        let now_us = self.node.clock.now_us();
        let gate = &self.node.gate;
        let ending = match name {
            CommandKind::Settle => {
                gate.end_reporting(now_us, id, end, upstream_report(bytes, &arguments[3..])?)
            }
            _ => gate.end(now_us, id, end),
        };
        let settled = ending.await;
        let settled = settled.map_err(ReservationCommandError::Reservation)?;
        let five = settled.tightest().map_or(NO_LIMIT, |row| {
            decision_integers(!row.refuses(), &row.outcome, row.limit.disclose)
        });
        batch.reply(Outcome::Ok, |out| encode::decision(out, five));
        Ok(())
    }
}

impl ReservationCommandError {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Reservation(
                ReservationError::Undecided(_) | ReservationError::Full | ReservationError::Taken,
            )
            | Self::NoRandom => Outcome::Error,
            Self::Call(_) | Self::Reservation(_) => Outcome::Invalid,
        }
    }
}

/// Parses `[ok|overloaded [latency_ms]]`.
fn upstream_report(
    bytes: &[u8],
    arguments: &[Range<usize>],
) -> Result<UpstreamReport, LimitCallError> {
    let text = |place: &Range<usize>| &bytes[place.clone()];
    let (outcome, latency) = match arguments {
        [] => return Ok(UpstreamReport::new(UpstreamOutcome::Ok)),
        [outcome] => (text(outcome), None),
        [outcome, latency] => (text(outcome), Some(text(latency))),
        _ => return Err(LimitCallError::Report),
    };
    let outcome = match outcome {
        word if word.eq_ignore_ascii_case(b"ok") => UpstreamOutcome::Ok,
        word if word.eq_ignore_ascii_case(b"overloaded") => UpstreamOutcome::Overloaded,
        _ => return Err(LimitCallError::Report),
    };
    let latency_us = match latency.map(parse_unsigned) {
        None => None,
        Some(Some(latency_ms @ 0..=LATENCY_MS_MAX)) => Some(latency_ms * 1_000),
        Some(_) => return Err(LimitCallError::Report),
    };
    Ok(UpstreamReport::new(outcome).after(latency_us))
}

/// The first word of an error reply.
fn code(error: ReservationError) -> &'static str {
    match error {
        ReservationError::Unknown => "NOTFOUND",
        ReservationError::Ended => "CONFLICT",
        ReservationError::Undecided(_) => "UNAVAILABLE",
        ReservationError::Full | ReservationError::Taken => "BUSY",
        _ => "ERR",
    }
}
