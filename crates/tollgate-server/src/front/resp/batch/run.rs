//! Runs a batch: decodes commands, queues them, decides them together, replies in order.

use super::{Batch, BatchItem};
use crate::Node;
use crate::front::resp::command::limit::{self, LimitCall};
use crate::front::resp::command::throttle::Dialect;
use crate::front::resp::command::{self, CommandKind, CommandSpec};
use crate::front::resp::decode::{self, DecodeStatus};
use crate::front::resp::session::RespState;
use crate::front::resp::session::Session;
use std::ops::Range;
use std::time::Duration;
use tollgate::engine::{Rules, SingleCheck, SingleVerdict};
use tollgate::store::ParamsId;
use tollgate_core::{Intent, LimitParams};
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest};
use tollgate_policy::policy::Selection;

const NOAUTH: &str = "NOAUTH Authentication required.";

/// The progress of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchProgress {
    /// Bytes of the commands with replies.
    pub(crate) consumed: usize,
    /// The least number of bytes that the next command needs.
    pub(crate) needed: usize,
    /// Whether the bytes may contain more commands. The replies must be sent first.
    pub(crate) has_more: bool,
}

/// A command in the bytes of a batch.
#[derive(Clone, Copy)]
struct CommandBytes<'a> {
    /// The command's own bytes. Arguments are ranges in them.
    bytes: &'a [u8],
    /// The command's start in the bytes of the batch.
    at: usize,
}

impl RespState {
    /// Runs commands until there are no more, or the batch is full. The batch's output has the
    /// replies.
    pub(crate) async fn run_batch(
        &self,
        batch: &mut Batch,
        bytes: &mut [u8],
        session: &mut Session,
    ) -> BatchProgress {
        let mut progress = BatchProgress::default();
        let rules = self.node.gate.rules();
        while !session.is_closing && progress.consumed < bytes.len() {
            let at = progress.consumed;
            let mut arguments = std::mem::take(&mut batch.arguments);
            match decode::next_command(&mut bytes[at..], session.caps(), &mut arguments) {
                Ok(DecodeStatus::Complete(size)) => {
                    progress.consumed += size;
                    let raw = CommandBytes { bytes: &bytes[at..at + size], at };
                    match self.find_command(batch, raw, &arguments, session).map(|one| one.kind) {
                        None => {}
                        // The most frequent commands, which never wait.
                        Some(CommandKind::Throttle(dialect)) => {
                            self.queue_throttle(batch, raw, dialect, &arguments);
                        }
                        Some(name @ (CommandKind::Check | CommandKind::Peek)) => {
                            let take = matches!(name, CommandKind::Check);
                            let intent = if take { Intent::Take } else { Intent::Peek };
                            self.queue_limit(batch, raw, &arguments, &rules, intent).await;
                        }
                        Some(name) if name.is_reservation() => {
                            // Earlier commands are decided first, because these change the state.
                            // Boxed, so that the futures of other commands stay small.
                            let reservation = async {
                                self.flush(batch, bytes, &rules).await;
                                let call = (raw.bytes, name, &*arguments);
                                self.reservation(batch, call, &rules, session).await;
                            };
                            Box::pin(reservation).await;
                        }
                        Some(name) => {
                            self.connection_command(batch, raw.bytes, name, &arguments, session);
                        }
                    }
                }
                Ok(DecodeStatus::Partial(least)) => progress.needed = least,
                Err(malformed) => {
                    batch.reply_error(format_args!("ERR Protocol error: {malformed}"));
                    session.is_closing = true;
                }
            }
            batch.arguments = arguments;
            progress.has_more = progress.needed == 0 && batch.is_full();
            if progress.needed > 0 || progress.has_more {
                break;
            }
        }
        self.flush(batch, bytes, &rules).await;
        for (outcome, count) in Outcome::ALL.into_iter().zip(&mut batch.outcome_counts) {
            self.node.metrics.count_requests(Front::Resp, outcome, std::mem::take(count));
        }
        progress
    }

    /// The command to run. Replies with the error of an unknown or forbidden one.
    #[inline]
    fn find_command(
        &self,
        batch: &mut Batch,
        raw: CommandBytes<'_>,
        arguments: &[Range<usize>],
        session: &mut Session,
    ) -> Option<&'static CommandSpec> {
        let word = &raw.bytes[arguments.first()?.clone()];
        let Some(known) = command::find(word) else {
            self.unknown_command(batch, word, session);
            return None;
        };
        if !session.is_authenticated() && !known.flags.contains(&"no_auth") {
            batch.reply_error(NOAUTH);
            return None;
        }
        if !known.accepts(arguments.len()) {
            let name = known.name;
            batch.reply_error(format_args!("ERR wrong number of arguments for '{name}' command"));
            return None;
        }
        Some(known)
    }

    /// Queues a `CL.THROTTLE` or `GCRA`.
    #[inline]
    fn queue_throttle(
        &self,
        batch: &mut Batch,
        raw: CommandBytes<'_>,
        dialect: Dialect,
        arguments: &[Range<usize>],
    ) {
        let read = dialect.parse(raw.bytes, arguments).and_then(|(key, spec, cost)| {
            let params = batch.params_index(spec, &self.node.gate, &self.enrolled)?;
            let key = raw.at + key.start..raw.at + key.end;
            Ok(BatchItem::Inline { key, params, cost, dialect })
        });
        match read {
            Ok(item) => batch.items.push(item),
            Err(bad) => batch.reply_error(dialect.error_message(bad)),
        }
    }

    /// Queues a `TG.CHECK` or `TG.PEEK`, once the tier is known.
    async fn queue_limit(
        &self,
        batch: &mut Batch,
        raw: CommandBytes<'_>,
        arguments: &[Range<usize>],
        rules: &Rules,
        intent: Intent,
    ) {
        let mut facts = rules.facts(std::mem::take(&mut batch.facts));
        let read =
            LimitCall::parse(raw.bytes, arguments, rules, &mut batch.last_limit).and_then(|call| {
                let cost = call.cost(raw.bytes)?;
                call.set_key(raw.bytes, rules, &mut facts)?;
                Ok((call.limit, cost))
            });
        let (limit, cost) = match read {
            Ok(read) => read,
            Err(bad) => {
                batch.reply_error(bad);
                return;
            }
        };
        self.node.identify(rules, &mut facts, self.node.clock.now_us()).await;
        let selection = batch.select(rules, limit, &facts, (cost, intent));
        batch.facts = facts.into_buffer();
        let disclose = rules.policy().limits()[limit].disclose;
        batch.items.push(BatchItem::Limit { selection, intent, disclose });
    }

    /// Decides all queued commands, and writes their replies.
    pub(crate) async fn flush(&self, batch: &mut Batch, bytes: &[u8], rules: &Rules) {
        if batch.items.is_empty() {
            return;
        }
        let node = &*self.node;
        let Node { gate, clock, metrics, .. } = node;
        let now_us = clock.now_us();
        let Batch {
            items,
            replies: said,
            output,
            params,
            selections,
            gate_buffers,
            outcome_counts: tally,
            ..
        } = &mut *batch;
        let asked = checks(items, params, selections, bytes);
        gate.check_batch(rules, now_us, asked, gate_buffers).await;
        let (count, mut decided, mut from) =
            (gate_buffers.verdicts().len(), gate_buffers.verdicts().iter(), 0);
        for item in &*items {
            if let BatchItem::Replied(end) = item {
                output.extend_from_slice(&said[from..*end]);
                from = *end;
                continue;
            }
            let Some(decided) = decided.next() else { continue };
            tally[Outcome::of_single(decided) as usize] += 1;
            match item {
                BatchItem::Inline { params: place, cost, dialect, .. } => {
                    dialect.write_decision(output, decided, &params[*place].0, *cost);
                }
                BatchItem::Limit { disclose, .. } => {
                    limit::write_decision(output, decided, *disclose)
                }
                BatchItem::Replied(_) => {}
            }
        }
        let end_us = clock.now_us();
        if node.watches_decisions() {
            let asked = checks(items, params, selections, bytes);
            show_decisions(node, rules, asked, gate_buffers.verdicts(), (now_us, end_us));
        }
        let elapsed_us = end_us.saturating_sub(now_us);
        metrics.observe_n(Front::Resp, Duration::from_micros(elapsed_us), count as u64);
        batch.clear();
    }

    #[cold]
    fn unknown_command(&self, batch: &mut Batch, word: &[u8], session: &mut Session) {
        // A web page made a browser connect to this port. None of its commands may run.
        if word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"HOST:") {
            session.is_closing = true;
            return;
        }
        let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
        if session.is_authenticated() {
            batch.reply_error(format_args!("ERR unknown command '{word}'"));
        } else {
            batch.reply_error(NOAUTH);
        }
    }
}

/// The checks of the queued commands.
fn checks<'a>(
    items: &'a [BatchItem],
    params: &'a [(LimitParams, ParamsId)],
    selections: &'a [Selection],
    bytes: &'a [u8],
) -> impl Iterator<Item = SingleCheck<'a>> {
    let check = move |item: &BatchItem| match item {
        BatchItem::Inline { key, params: place, cost, .. } => {
            let ((params, params_id), key) = (&params[*place], &bytes[key.clone()]);
            Some(SingleCheck::Inline { key, params, params_id: *params_id, cost: *cost })
        }
        BatchItem::Limit { selection, intent, .. } => {
            Some(SingleCheck::Limit { selection: &selections[*selection], intent: *intent })
        }
        BatchItem::Replied(_) => None,
    };
    items.iter().filter_map(check)
}

/// Records a span and a line of the decision log for each decision, with the times of the batch.
#[cold]
fn show_decisions<'a>(
    node: &Node,
    rules: &Rules,
    singles: impl Iterator<Item = SingleCheck<'a>>,
    decided: &[SingleVerdict],
    (start_us, end_us): (u64, u64),
) {
    for (single, decided) in singles.zip(decided) {
        let Some(selected) = single.selected(rules) else { continue };
        let key = DecidedKey::Limit { key_index: selected.key_index, key: selected.key };
        let is_peek = matches!(
            single,
            SingleCheck::Limit { intent: Intent::Peek, .. } | SingleCheck::Inline { cost: 0, .. }
        );
        let (front, parent, request_id) = (Front::Resp.name(), None, None);
        let shown = DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
        node.records.record(&node.keys, rules, &shown, &decided.verdict(&selected));
    }
}
