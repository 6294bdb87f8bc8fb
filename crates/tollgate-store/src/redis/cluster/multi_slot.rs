//! Requests whose limits are in several slots.
//!
//! The slots are asked in parallel, each all-or-nothing. Where one refused, or could not decide,
//! the others give back what they took: in between they admit less than they could, and never more.
//! Whoever asked may go away meanwhile; giving back goes on.

use super::pipeline::ChargesBySlot;
use super::{Cluster, NodeCommand};
use crate::redis::adjust::{ChangeBatch, rows};
use crate::redis::batch::queue::{BatchRows, ReplyReceiver};
use crate::redis::batch::reply::AdjustReply;
use crate::redis::batch::{DecideRequest, NamedCharge};
use crate::redis::client::connection::ScriptCall;
use crate::redis::script;
use crate::{Answer, Change, StoreError, StoreErrorKind};
use futures_util::future::join_all;
use smallvec::smallvec;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A refusal waits this part of the deadline for the numbers after giving back; then it shows those
/// from before.
const RETURN_SHARE: u32 = 4;

/// For so many deadlines a give-back waits for a slot that is on its way.
const GIVE_BACK_DEADLINES: u32 = 40;

/// What one slot decides of a request: its lines by their places, and the answer to come.
struct SlotPart {
    slot: u16,
    places: Vec<usize>,
    reply: Result<ReplyReceiver, StoreError>,
}

impl Cluster {
    /// Has one request decided. The answer is as good as that of one server, except that a request
    /// refused by one slot may for a moment be counted by another.
    pub(crate) fn decide_across_slots(
        self: &Arc<Self>,
        now_us: Option<u64>,
        ask: DecideRequest,
        parts: ChargesBySlot,
    ) -> ReplyReceiver {
        let part = |(slot, places): (u16, Vec<usize>)| {
            let charges = places.iter().map(|place| ask.charges[*place].clone()).collect();
            let reply =
                self.push(slot, now_us, smallvec![DecideRequest { intent: ask.intent, charges }]);
            SlotPart { slot, places, reply }
        };
        let parts = parts.into_iter().map(part).collect();
        let (reply, answer) = oneshot::channel();
        tokio::spawn(merge_or_give_back(Arc::clone(self), now_us, ask, parts, reply));
        answer
    }
}

/// Waits for every slot, then answers or gives back.
async fn merge_or_give_back(
    cluster: Arc<Cluster>,
    now_us: Option<u64>,
    ask: DecideRequest,
    parts: Vec<SlotPart>,
    reply: oneshot::Sender<Result<BatchRows, StoreError>>,
) {
    let deadline = cluster.shared.options.deadline;
    let waits = parts.into_iter().map(|part| async move {
        let decided = match part.reply {
            Err(error) => Err(error),
            Ok(reply) => match timeout(deadline, reply).await {
                Ok(Ok(decided)) => decided.and_then(|mut rows| rows.pop().ok_or_else(no_answer)),
                Ok(Err(_)) => Err(no_answer()),
                Err(_) => Err(StoreError::new(StoreErrorKind::Timeout, "")),
            },
        };
        (part.slot, part.places, decided)
    });
    let decided = join_all(waits).await;
    let failed = decided.iter().find_map(|(_, _, decided)| decided.as_ref().err().cloned());
    let admitted = decided.iter().all(|(_, _, decided)| matches!(decided, Ok((true, _))));
    let mut merged = vec![None; ask.charges.len()];
    let mut taken = Vec::new();
    for (slot, places, decided) in decided {
        let Ok((_, rows)) = decided else { continue };
        let lines = places.iter().map(|place| &ask.charges[*place]);
        taken.push((slot, places.clone(), changes(lines, &rows)));
        places.into_iter().zip(rows).for_each(|(place, row)| merged[place] = Some(row));
    }
    let returning = join_all(taken.iter().map(|part| give_back(&cluster, now_us, &ask, part)));
    if let Some(error) = failed {
        // Nobody needs to wait for what only concerns the count.
        let _ = reply.send(Err(error));
        returning.await;
        return;
    }
    if admitted {
        let _ = reply.send(answer(true, merged));
        return;
    }
    let mut returning = pin!(returning);
    let returned = timeout(deadline / RETURN_SHARE, &mut returning).await;
    let late = returned.is_err();
    returned.into_iter().flatten().flatten().for_each(|(place, row)| merged[place] = Some(row));
    merged.iter_mut().flatten().for_each(|row| row.receipt = None);
    let _ = reply.send(answer(false, merged));
    if late {
        returning.await;
    }
}

fn answer(admitted: bool, rows: Vec<Option<Answer>>) -> Result<BatchRows, StoreError> {
    let rows: Option<_> = rows.into_iter().collect();
    rows.map(|rows| smallvec![(admitted, rows)]).ok_or_else(no_answer)
}

pub(crate) fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "")
}

/// What has to be given back of a part: for each line, if anything.
fn changes<'a>(
    lines: impl Iterator<Item = &'a NamedCharge>,
    rows: &[Answer],
) -> Vec<Option<Change>> {
    let change = |(line, row): (&NamedCharge, &Answer)| {
        let receipt = row.receipt?;
        Some(Change::GiveBack { units: receipt.cost, receipt, charged_params: line.params })
    };
    lines.zip(rows).map(change).collect()
}

/// Gives back what one slot took, and answers with the rows afterwards.
async fn give_back(
    cluster: &Arc<Cluster>,
    now_us: Option<u64>,
    ask: &DecideRequest,
    (slot, places, changes): &(u16, Vec<usize>, Vec<Option<Change>>),
) -> Vec<(usize, Answer)> {
    let pairs = places.iter().zip(changes);
    let taken: Vec<_> =
        pairs.filter_map(|(place, change)| Some((*place, change.as_ref()?))).collect();
    if taken.is_empty() {
        return Vec::new();
    }
    let lines = || taken.iter().map(|(place, change)| (&ask.charges[*place], *change));
    let changes = ChangeBatch::new(lines());
    let spare = cluster.shared.options.ttl_margin;
    let call = ScriptCall::new(&script::ADJUST, &changes.tables, changes.program(), now_us, spare);
    let patience = cluster.shared.options.deadline * GIVE_BACK_DEADLINES;
    let returned = timeout(patience, cluster.run(*slot, &mut NodeCommand::Script(call))).await;
    let returned = returned.unwrap_or_else(|_| Err(no_answer()));
    let rows = returned.and_then(AdjustReply::read).and_then(|adjusted| rows(lines(), &adjusted));
    taken.iter().map(|(place, _)| *place).zip(rows.unwrap_or_default()).collect()
}
