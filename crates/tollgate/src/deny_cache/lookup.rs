//! Looks up the rows of a request, and learns rows from the store's answer.

use super::entry::{CachedAnswer, CachedRow, DenyEntry, EntryRole, MissBudget};
use super::single_flight::FlightRole;
use super::{DenyCache, SingleFlight, lock};
use crate::gate::{DecisionRequest, FromAnswer, RequestedLimit};
use crate::{Row, Rules, Source};
use smallvec::SmallVec;
use tollgate_core::LimitParams;
use tollgate_policy::limit::{Counting, Mode};
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Charge, Origin, StateKey};

/// Where rows go, which limit each of them is of, and the number of the first limit.
pub(crate) type RowSink<'t, R> = (&'t mut Vec<R>, &'t mut SmallVec<[usize; 4]>, usize);

impl DenyCache {
    /// Adds the rows of a request that is known to be refused. `None` where the store has to be
    /// asked, in `flight` for others too.
    ///
    /// A row is left out only where it is not known and the refused key has made requests ask for
    /// such rows too often.
    pub(crate) fn lookup<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        &DecisionRequest { rules, now_us, .. }: &DecisionRequest<'_, 'r>,
        asked: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        (rows, order, first): RowSink<'_, R>,
        flight: &mut SingleFlight<'c>,
    ) -> Option<()> {
        let line = |(one, charge): (&RequestedLimit<'_>, &Charge<'_>)| {
            self.lookup_charge(rules, now_us, &one.selected, charge)
        };
        let lines: SmallVec<[CachedAnswer; 4]> = asked.iter().zip(charges).map(line).collect();
        let refusing = lines.iter().position(CachedAnswer::refuses)?;
        if lines.iter().any(|line| matches!(line, CachedAnswer::Counts)) {
            return None;
        }
        let is_fresh = |line: &CachedAnswer| {
            line.row().is_some_and(|row| row.refuses && row.age_us < self.max_age_us)
        };
        let oldest_us = if lines.iter().any(is_fresh) {
            self.max_age_us
        } else if self.waits_for_refresh(now_us, charges, &lines, flight) {
            // While another request asks, all rows stay as they were.
            u64::MAX
        } else {
            return None;
        };
        let is_known =
            |line: &CachedAnswer| line.row().is_some_and(|row| row.exact && row.age_us < oldest_us);
        if !lines.iter().all(is_known) && self.may_ask(now_us, &charges[refusing]) {
            return None;
        }
        for (place, (one, line)) in asked.iter().zip(&lines).enumerate() {
            if let Some(row) = line.row().filter(|row| row.refuses || row.age_us < oldest_us) {
                rows.push(cached_row(rules, &one.selected, row).into());
                order.push(first + place);
            }
        }
        Some(())
    }

    fn lookup_charge(
        &self,
        rules: &Rules,
        now_us: u64,
        one: &Selected<'_>,
        charge: &Charge<'_>,
    ) -> CachedAnswer {
        if one.missing {
            return CachedAnswer::Row(CachedRow::of_missing(charge, now_us));
        }
        let (shard, name) = self.locate(charge.limit, charge.key);
        let shard = lock(&self.shards[shard]);
        shard.entries.get(&name).map_or(CachedAnswer::Unknown, |entry| {
            entry.recall(rules, now_us, self.max_age_us, one, charge)
        })
    }

    /// Lets one request ask the store when a refusal is too old. Returns whether this request is
    /// refused meanwhile.
    fn waits_for_refresh<'c>(
        &'c self,
        now_us: u64,
        charges: &[Charge<'_>],
        lines: &[CachedAnswer],
        flight: &mut SingleFlight<'c>,
    ) -> bool {
        let (mut leaves, mut waits) = (SingleFlight::default(), false);
        for (charge, _) in charges.iter().zip(lines).filter(|(_, line)| line.refuses()) {
            let (shard, name) = self.locate(charge.limit, charge.key);
            if flight.is_for(shard, name) || leaves.is_for(shard, name) {
                continue;
            }
            let mut entries = lock(&self.shards[shard]);
            let Some(entry) = entries.entries.get_mut(&name) else { continue };
            // It may have been replaced meanwhile.
            let is_fresh = now_us.saturating_sub(entry.learnt_us) < self.max_age_us;
            match if is_fresh { FlightRole::Follower } else { entry.flight_role(now_us) } {
                FlightRole::Leader => leaves.add(self, shard, name),
                FlightRole::Follower => waits = true,
                FlightRole::TimedOut => {}
            }
        }
        // A refused request does not ask the store, so it gives its turns back.
        if !waits {
            flight.merge(leaves);
        }
        waits
    }

    /// Whether a request that this key refuses may ask the store for rows that are not known.
    fn may_ask(&self, now_us: u64, charge: &Charge<'_>) -> bool {
        let (shard, name) = self.locate(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        shard.entries.get_mut(&name).is_none_or(|entry| entry.misses.take(now_us))
    }

    /// Remembers the rows of a request that an enforced limit refused, unless something was
    /// forgotten since the `moment` before the store was asked.
    pub(crate) fn learn(
        &self,
        &DecisionRequest { rules, now_us, .. }: &DecisionRequest<'_, '_>,
        asked: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        answers: &[Answer],
        place: impl Fn(&Charge<'_>) -> StateKey,
        moment: &[u64],
    ) {
        let lines = asked.iter().map(|one| one.selected).zip(charges).zip(answers);
        let role = |((one, charge), answer): ((Selected<'_>, &Charge<'_>), &Answer)| {
            role(rules, &one, charge, answer)
        };
        // Rows are shown beside a refusal that is remembered, and never alone.
        if !lines.clone().any(|line| role(line) == EntryRole::Refuses) {
            return;
        }
        for (((one, charge), answer), forgets) in lines.zip(moment.iter().copied()) {
            // In the grace period after a failover the row is not the limit's state.
            if one.missing || answer.origin == Origin::GracePeriod {
                continue;
            }
            // A cost that never fits is refused for the longest time.
            let wait_us = match answer.outcome {
                outcome if outcome.admitted => self.max_age_us,
                outcome => outcome.retry_after_us.unwrap_or(self.max_age_us).min(self.max_age_us),
            };
            let entry = DenyEntry {
                state_hash: self.state_hash(&place(charge)),
                generation: rules.generation(),
                params_index: one.params_index,
                enforced: charge.mode.is_enforced(),
                cost: charge.cost,
                learnt_us: now_us,
                expires_us: now_us.saturating_add(wait_us),
                outcome: answer.outcome,
                blocked: answer.blocked,
                role: role(((one, charge), answer)),
                spent: false,
                refresh_started_us: None,
                is_refreshing: false,
                misses: MissBudget::default(),
                other_waits: [None; 3],
            };
            self.insert(charge, entry, forgets);
        }
    }
}

/// How a row may be used. Slots come back at any moment, and a leased limit's store has its own
/// memory. Inline limits, and limits that count their refusals, need the store each time.
fn role(rules: &Rules, one: &Selected<'_>, charge: &Charge<'_>, answer: &Answer) -> EntryRole {
    let refuses = charge.mode.is_enforced() && !answer.outcome.admitted;
    let is_slots = matches!(charge.params, LimitParams::Concurrency(_));
    let is_own = one.index == usize::MAX || one.limit.counting == Counting::Requested;
    if refuses && charge.penalty.is_some() && !answer.blocked {
        EntryRole::Counts
    } else if refuses && !(is_slots || is_own || one.missing || rules.is_leased(one)) {
        EntryRole::Refuses
    } else {
        EntryRole::Shows
    }
}

fn cached_row<'r>(rules: &'r Rules, one: &Selected<'_>, row: &CachedRow) -> Row<'r> {
    let CachedRow { outcome, blocked, .. } = *row;
    let answer = Answer { outcome, blocked, receipt: None, origin: Origin::CachedRefusal };
    let source = match one.limit.mode {
        Mode::Shadow if !outcome.admitted => Source::Shadow,
        _ => Source::DenyCache,
    };
    rules.row_from(one, &answer, source)
}
