//! Requests that need several calls, because no single call may use the keys of all their limits.
//!
//! All calls are sent in parallel, each all-or-nothing. If one refuses, the others give back their
//! charges. Until then, limits admit less than they could, never more. Giving back continues after
//! the caller is gone. A call that fails by the deadline neither admits nor refuses: its rows are
//! failed, and the caller decides for them.

use super::route::{ChargesByRoute, Route};
use super::{Cluster, group_by_slot, slot_of};
use crate::charge::GroupVerdicts;
use crate::raw::clock::instant_after;
use crate::redis::adjust::{ChangeBatch, give_back_of, rows};
use crate::redis::batch::queue::{ReplyReceiver, ReplySender, failed_rows};
use crate::redis::batch::rows::AdjustReply;
use crate::redis::batch::slot_returns::{UnreadReply, UnreadSlots};
use crate::redis::batch::{DecideRequest, REFUSE_ALL};
use crate::redis::client::control::ServerCommand;
use crate::redis::client::{connection_task_ended, read_reply};
use crate::{Answer, Change, StoreError, StoreErrorKind};
use futures_util::future::join_all;
use smallvec::smallvec;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

/// The share of the deadline that a refusal waits for the rows after giving back. Then it shows the
/// rows from before.
const RETURN_SHARE: u32 = 4;

/// The number of deadlines for which a give-back waits for a migrating slot.
const GIVE_BACK_DEADLINES: u32 = 40;

/// The part of a request that one call decides: the indexes of its charges, and its reply.
struct RequestPart {
    indexes: Vec<usize>,
    reply: Result<ReplyReceiver, StoreError>,
}

impl Cluster {
    /// Decides one request. Unlike on one server, a request that one call refuses may be counted by
    /// another for a moment.
    pub(super) fn decide_in_parts(
        self: &Arc<Self>,
        now_us: Option<u64>,
        deadline: Instant,
        request: DecideRequest,
        parts: ChargesByRoute,
    ) -> ReplyReceiver {
        let part = |(route, indexes): (Route, Vec<usize>)| {
            let charges = indexes.iter().map(|index| request.charges[*index].clone()).collect();
            let (intent, fence) = (request.intent, request.fence.clone());
            let requests = smallvec![DecideRequest { intent, charges, fence }];
            RequestPart { indexes, reply: self.push(&route, now_us, requests) }
        };
        let parts = parts.into_iter().map(part).collect();
        let (reply, answer) = oneshot::channel();
        tokio::spawn(merge_or_give_back(Arc::clone(self), now_us, deadline, request, parts, reply));
        answer
    }
}

/// Waits for every part until the deadline, then admits or gives back.
async fn merge_or_give_back(
    cluster: Arc<Cluster>,
    now_us: Option<u64>,
    deadline: Instant,
    request: DecideRequest,
    parts: Vec<RequestPart>,
    reply: ReplySender,
) {
    let waits = parts.into_iter().map(|part| async move {
        let decided = read_reply(part.reply, deadline).await;
        let decided = decided.and_then(|UnreadReply { mut rows, slots }| {
            Ok((rows.pop().ok_or_else(connection_task_ended)?, slots))
        });
        (part.indexes, decided)
    });
    let decided = join_all(waits).await;
    let error = decided.iter().find_map(|(_, decided)| decided.as_ref().err().cloned());
    let mut merged = vec![Answer::failed(StoreErrorKind::Protocol); request.charges.len()];
    let mut slots = UnreadSlots::default();
    for (indexes, decided) in decided {
        let (_, rows) = match decided {
            Ok((rows, own)) => {
                slots.append(own);
                rows
            }
            Err(error) => failed_rows(error.kind, indexes.len()),
        };
        indexes.into_iter().zip(rows).for_each(|(index, row)| merged[index] = row);
    }
    if let Some(error) = error.filter(|_| merged.iter().all(|row| row.failure().is_some())) {
        let _ = reply.send(Err(error));
        return;
    }
    let verdicts = verdicts_of(&request, &merged);
    slots.retain_charged(verdicts);
    let rows = request.charges.iter().zip(&merged).enumerate();
    let returned = rows.filter(|(_, (charge, _))| !verdicts.charges(charge.mode));
    let taken: Vec<(usize, Change)> = returned
        .filter_map(|(at, (charge, row))| Some((at, give_back_of(&charge.params, row)?)))
        .collect();
    let hash_slots = taken.iter().map(|(index, _)| slot_of(&request.charges[*index].name));
    let by_slot = group_by_slot(hash_slots);
    let returning = join_all(by_slot.into_iter().map(|(slot, own)| {
        let taken = own.into_iter().map(|at| &taken[at]).collect();
        give_back(&cluster, now_us, &request, slot, taken)
    }));
    if verdicts.admitted {
        let _ = reply.send(Ok(UnreadReply { rows: smallvec![(true, merged.into())], slots }));
        // No caller waits for the units of candidates.
        returning.await;
        return;
    }
    let mut returning = pin!(returning);
    let show_until = instant_after(cluster.shared.options.deadline / RETURN_SHARE);
    let returned = timeout_at(show_until.min(deadline), &mut returning).await;
    let late = returned.is_err();
    returned.into_iter().flatten().flatten().for_each(|(index, row)| merged[index] = row);
    for (charge, row) in request.charges.iter().zip(&mut merged) {
        if !verdicts.charges(charge.mode) {
            row.receipt = None;
        }
    }
    let _ = reply.send(Ok(UnreadReply { rows: smallvec![(false, merged.into())], slots }));
    if late {
        returning.await;
    }
}

/// The verdicts on a request from the rows of its charges. Only the caller knows the answer of a
/// limit whose server failed, unless the limit admits nothing.
fn verdicts_of(request: &DecideRequest, rows: &[Answer]) -> GroupVerdicts {
    let mut verdicts = GroupVerdicts::ADMITTED;
    for (charge, row) in request.charges.iter().zip(rows) {
        let admits = match row.failure() {
            None => row.outcome.admitted,
            Some(_) => charge.params != REFUSE_ALL,
        };
        verdicts.add(charge.mode, admits, row.blocked);
    }
    verdicts
}

/// Gives back charges of one slot. Returns the rows afterwards.
async fn give_back(
    cluster: &Arc<Cluster>,
    now_us: Option<u64>,
    request: &DecideRequest,
    slot: u16,
    taken: Vec<&(usize, Change)>,
) -> Vec<(usize, Answer)> {
    let charges = || taken.iter().map(|(index, change)| (&request.charges[*index], change));
    let changes = ChangeBatch::new(charges());
    let call = changes.call(now_us, cluster.shared.options.ttl_margin);
    let limit = cluster.shared.options.deadline * GIVE_BACK_DEADLINES;
    let returned = timeout(limit, cluster.run(slot, &mut ServerCommand::Script(call))).await;
    let returned = returned.unwrap_or_else(|_| Err(connection_task_ended()));
    let rows = returned.and_then(AdjustReply::read).and_then(|adjusted| rows(charges(), &adjusted));
    taken.iter().map(|(index, _)| *index).zip(rows.unwrap_or_default()).collect()
}
