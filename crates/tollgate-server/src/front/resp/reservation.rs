//! `TG.RESERVE`, `TG.SETTLE` and `TG.CANCEL`.

use super::command::Name;
use super::encode::{self, Version};
use super::limit::{BadCall, Call, NOTHING, integers, unsigned};
use super::session::Session;
use super::table::Table;
use super::talk::Shared;
use crate::front::http::reservation::id;
use crate::metrics::Outcome;
use std::fmt;
use std::ops::Range;
use tollgate::{End, ReservationError, Rules, Source};

/// The longest name that a reservation has, in bytes.
const ID_BYTES_MAX: usize = 512;

/// Why there is no reservation, or no end of one.
enum Failed {
    Call(BadCall),
    Reservation(ReservationError),
    NoRandom,
}

impl Shared {
    /// Answers one of the three. Nothing waits to be decided before it.
    pub(super) async fn reservation(
        &self,
        table: &mut Table,
        (bytes, name, arguments): (&[u8], Name, &[Range<usize>]),
        rules: &Rules,
        session: &Session,
    ) {
        let done = match name {
            Name::Reserve => self.reserve(table, bytes, arguments, rules, session.version).await,
            _ => self.end(table, bytes, name, arguments).await,
        };
        if let Err(failed) = done {
            table.say(failed.outcome(), |out| encode::error(out, failed));
        }
    }

    async fn reserve(
        &self,
        table: &mut Table,
        bytes: &[u8],
        arguments: &[Range<usize>],
        rules: &Rules,
        version: Version,
    ) -> Result<(), Failed> {
        let mut call = Call::read(bytes, arguments, rules, &mut table.named)?;
        let mut ttl_us = None;
        if let [cost, ttl] = call.rest {
            let ttl_ms = unsigned(&bytes[ttl.clone()]).filter(|ttl_ms| *ttl_ms <= 3_600_000);
            ttl_us = Some(ttl_ms.filter(|ttl_ms| *ttl_ms > 0).ok_or(BadCall::Ttl)? * 1_000);
            call.rest = std::slice::from_ref(cost);
        }
        let cost = call.cost(bytes)?;
        let now_us = self.node.clock.now_us();
        let mut facts = rules.facts(std::mem::take(&mut table.facts));
        call.identify(bytes, rules, &mut facts)?;
        let tier = self.node.tier(&facts, now_us).await;
        if let Some(tier) = &tier {
            facts.set_tier(tier);
        }
        let id = id().map_err(|_| Failed::NoRandom)?;
        let (limit, work) = (call.limit, &mut table.work);
        let reserving =
            self.node.gate.reserve_one(rules, now_us, &id, limit, &facts, cost, ttl_us, work);
        let (verdict, kept_us) = reserving.await.map_err(Failed::Reservation)?;
        let outcome = match (verdict.allowed, verdict.source) {
            (true, _) => Outcome::Admitted,
            (false, Source::FailClosed) => Outcome::FailClosed,
            (false, _) => Outcome::Refused,
        };
        let shown = verdict.rows.first();
        let five = shown
            .map_or(NOTHING, |row| integers(verdict.allowed, &row.outcome, row.limit.disclose));
        table.tally[outcome as usize] += 1;
        let out = &mut table.output;
        encode::array(out, 6);
        five.into_iter().for_each(|value| encode::integer(out, value));
        match kept_us {
            Some(_) => encode::bulk(out, id.as_bytes()),
            None => encode::null(out, version),
        }
        table.work.recycle(verdict);
        table.facts = facts.into_buffer();
        Ok(())
    }

    async fn end(
        &self,
        table: &mut Table,
        bytes: &[u8],
        name: Name,
        arguments: &[Range<usize>],
    ) -> Result<(), Failed> {
        let text = |place: usize| &bytes[arguments[place].clone()];
        let end = match name {
            Name::Settle => End::Settle(unsigned(text(2)).ok_or(BadCall::Cost)?),
            _ => End::Cancel,
        };
        let id = str::from_utf8(text(1)).ok().filter(|id| id.len() <= ID_BYTES_MAX);
        let id = id.ok_or(Failed::Reservation(ReservationError::Unknown))?;
        let now_us = self.node.clock.now_us();
        let settled = self.node.gate.end(now_us, id, end).await.map_err(Failed::Reservation)?;
        let tightest = settled.tightest();
        let five = tightest
            .map_or(NOTHING, |row| integers(!row.refuses(), &row.outcome, row.limit.disclose));
        table.say(Outcome::Ok, |out| encode::five(out, five));
        Ok(())
    }
}

impl Failed {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Call(_) => Outcome::Invalid,
            Self::Reservation(
                ReservationError::Undecided(_) | ReservationError::Full | ReservationError::Taken,
            )
            | Self::NoRandom => Outcome::Error,
            Self::Reservation(_) => Outcome::Invalid,
        }
    }
}

impl From<BadCall> for Failed {
    fn from(bad: BadCall) -> Self {
        Self::Call(bad)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(bad) => bad.fmt(f),
            Self::NoRandom => f.write_str("ERR the system has no random bytes"),
            Self::Reservation(error) => {
                let code = match error {
                    ReservationError::Unknown => "NOTFOUND",
                    ReservationError::Ended => "CONFLICT",
                    ReservationError::Undecided(_) => "UNAVAILABLE",
                    ReservationError::Full | ReservationError::Taken => "BUSY",
                    _ => "ERR",
                };
                write!(f, "{code} {error}")
            }
        }
    }
}
