//! One turn of the conversation: the commands that have come, decided together, and their answers.

use super::command::{self, Described, Name};
use super::decode::{self, Next};
use super::encode;
use super::limit::{self, Call};
use super::session::Session;
use super::table::{Item, Table};
use super::talk::Shared;
use super::throttle::Dialect;
use crate::Node;
use crate::metrics::{Front, Outcome};
use crate::trace;
use std::ops::Range;
use std::time::Duration;
use tollgate::store::Ticket;
use tollgate::{Reply, Rules, SingleCheck, Source};
use tollgate_core::{Intent, Numbers};
use tollgate_policy::policy::Selection;

const NOAUTH: &str = "NOAUTH Authentication required.";

/// How far a turn came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// Bytes that have been answered.
    pub(super) used: usize,
    /// Bytes that the next command has at least.
    pub(super) least: usize,
    /// Whether there may be more commands in the bytes: the answers have to be sent first.
    pub(super) more: bool,
}

/// Where a command stands in the bytes of a turn.
#[derive(Clone, Copy)]
struct Here<'a> {
    /// Its own bytes; arguments are places in them.
    bytes: &'a [u8],
    /// Where it starts.
    at: usize,
}

impl Shared {
    /// Answers commands until there are no more, or enough for one turn. The answers are in the table's output.
    pub(super) async fn turn(
        &self,
        table: &mut Table,
        bytes: &mut [u8],
        session: &mut Session,
    ) -> Turn {
        let mut turn = Turn::default();
        let rules = self.node.gate.rules();
        while !session.is_over {
            let at = turn.used;
            let mut arguments = std::mem::take(&mut table.arguments);
            match decode::next(&mut bytes[at..], session.caps(), &mut arguments) {
                Ok(Next::Command(size)) => {
                    turn.used += size;
                    let here = Here { bytes: &bytes[at..at + size], at };
                    match self.recognise(table, here, &arguments, session).map(|one| one.name) {
                        None => {}
                        // First and without waiting: it is what most commands are.
                        Some(Name::Throttle(dialect)) => {
                            self.throttle(table, here, dialect, &arguments);
                        }
                        Some(name @ (Name::Check | Name::Peek)) => {
                            let take = matches!(name, Name::Check);
                            let intent = if take { Intent::Take } else { Intent::Peek };
                            self.limit(table, here, &arguments, &rules, intent).await;
                        }
                        Some(name @ (Name::Reserve | Name::Settle | Name::Cancel)) => {
                            // These change what the commands before them are decided by. In a box,
                            // so that all other commands are not moved with room for them.
                            let reservation = async {
                                self.decide(table, bytes, &rules).await;
                                let call = (here.bytes, name, &*arguments);
                                self.reservation(table, call, &rules, session).await;
                            };
                            Box::pin(reservation).await;
                        }
                        Some(name) => {
                            self.introduce(table, here.bytes, name, &arguments, session);
                        }
                    }
                }
                Ok(Next::Part(least)) => turn.least = least,
                Err(malformed) => {
                    table.say(Outcome::Invalid, |out| {
                        encode::error(out, format_args!("ERR Protocol error: {malformed}"));
                    });
                    session.is_over = true;
                }
            }
            table.arguments = arguments;
            turn.more = turn.least == 0 && table.is_full();
            if turn.least > 0 || turn.more {
                break;
            }
        }
        self.decide(table, bytes, &rules).await;
        for (outcome, count) in Outcome::ALL.into_iter().zip(&mut table.tally) {
            self.node.metrics.requests_of(Front::Resp, outcome, std::mem::take(count));
        }
        turn
    }

    /// The command that this is, if it can be answered; one that cannot be has been.
    #[inline]
    fn recognise(
        &self,
        table: &mut Table,
        here: Here<'_>,
        arguments: &[Range<usize>],
        session: &mut Session,
    ) -> Option<&'static Described> {
        let word = &here.bytes[arguments.first()?.clone()];
        let Some(known) = command::find(word) else {
            self.unknown(table, word, session);
            return None;
        };
        if !session.is_known() && !known.flags.contains(&"no_auth") {
            table.say(Outcome::Invalid, |out| encode::error(out, NOAUTH));
            return None;
        }
        if !known.takes(arguments.len()) {
            wrong_number(table, known);
            return None;
        }
        Some(known)
    }

    /// Puts a call among those that are to be decided.
    #[inline]
    fn throttle(
        &self,
        table: &mut Table,
        here: Here<'_>,
        dialect: Dialect,
        arguments: &[Range<usize>],
    ) {
        let read = dialect.read(here.bytes, arguments).and_then(|(key, spec, cost)| {
            let numbers = table.numbers(spec, &self.node.gate, &self.enrolled)?;
            let key = here.at + key.start..here.at + key.end;
            Ok(Item::Own { key, numbers, cost, dialect })
        });
        match read {
            Ok(item) => table.items.push(item),
            Err(bad) => table.say(Outcome::Invalid, |out| {
                encode::error(out, dialect.complaint(bad));
            }),
        }
    }

    /// Puts a limit of the policy among those that are to be decided, once the tier is known.
    fn limit<'a>(
        &'a self,
        table: &'a mut Table,
        here: Here<'a>,
        arguments: &[Range<usize>],
        rules: &'a Rules,
        intent: Intent,
    ) -> Reply<'a, (), ()> {
        let mut facts = rules.facts(std::mem::take(&mut table.facts));
        let read = Call::read(here.bytes, arguments, rules, &mut table.named).and_then(|call| {
            let cost = call.cost(here.bytes)?;
            call.identify(here.bytes, rules, &mut facts)?;
            Ok((call.limit, cost))
        });
        let (limit, cost) = match read {
            Ok(read) => read,
            Err(bad) => {
                table.say(Outcome::Invalid, |out| encode::error(out, bad));
                return Reply::Now(());
            }
        };
        self.node.tier(&facts, self.node.clock.now_us()).map(move |tier| {
            let mut facts = facts;
            if let Some(tier) = &tier {
                facts.set_tier(tier);
            }
            let selection = table.select(rules, limit, &facts, cost);
            table.facts = facts.into_buffer();
            let disclose = rules.policy().limits()[limit].disclose;
            table.items.push(Item::Limit { selection, intent, disclose });
        })
    }

    /// Has everything decided that waits for it, and writes the answers.
    pub(super) async fn decide(&self, table: &mut Table, bytes: &[u8], rules: &Rules) {
        if table.items.is_empty() {
            return;
        }
        let Node { gate, clock, metrics, .. } = &*self.node;
        let now_us = clock.now_us();
        let Table { items, said, output, numbers, selections, work, tally, .. } = &mut *table;
        let asked = checks(items, numbers, selections, bytes);
        gate.check_batch(rules, now_us, asked, work).await;
        let (count, mut decided, mut from) = (work.decided().len(), work.decided().iter(), 0);
        for item in &*items {
            if let Item::Said(end) = item {
                output.extend_from_slice(&said[from..*end]);
                from = *end;
                continue;
            }
            let Some(decided) = decided.next() else { continue };
            tally[outcome(decided) as usize] += 1;
            match item {
                Item::Own { numbers: place, cost, dialect, .. } => {
                    dialect.answer(output, decided, &numbers[*place].0, *cost);
                }
                Item::Limit { disclose, .. } => limit::answer(output, decided, *disclose),
                Item::Said(_) => {}
            }
        }
        let end_us = clock.now_us();
        if trace::enabled() {
            let asked = checks(items, numbers, selections, bytes);
            record(rules, asked, work.decided(), now_us, end_us);
        }
        let elapsed_us = end_us.saturating_sub(now_us);
        metrics.observe_of(Front::Resp, Duration::from_micros(elapsed_us), count as u64);
        table.clear();
    }

    #[cold]
    fn unknown(&self, table: &mut Table, word: &[u8], session: &mut Session) {
        // A browser that was tricked into talking to this port: what follows is not its own, and none of it is to be obeyed.
        if word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"HOST:") {
            session.is_over = true;
            return;
        }
        let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
        table.say(Outcome::Invalid, |out| match session.is_known() {
            true => encode::error(out, format_args!("ERR unknown command '{word}'")),
            false => encode::error(out, NOAUTH),
        });
    }
}

/// What the engine is asked.
fn checks<'a>(
    items: &'a [Item],
    numbers: &'a [(Numbers, Ticket)],
    selections: &'a [Selection],
    bytes: &'a [u8],
) -> impl Iterator<Item = SingleCheck<'a>> {
    let check = move |item: &Item| match item {
        Item::Own { key, numbers: place, cost, .. } => {
            let ((numbers, ticket), key) = (&numbers[*place], &bytes[key.clone()]);
            Some(SingleCheck::Inline { key, numbers, ticket: *ticket, cost: *cost })
        }
        Item::Limit { selection, intent, .. } => {
            Some(SingleCheck::Limit { selection: &selections[*selection], intent: *intent })
        }
        Item::Said(_) => None,
    };
    items.iter().filter_map(check)
}

#[cold]
pub(super) fn wrong_number(table: &mut Table, known: &Described) {
    table.say(Outcome::Invalid, |out| {
        let text = format_args!("ERR wrong number of arguments for '{}' command", known.word);
        encode::error(out, text);
    });
}

/// A span for each decision of a batch, as long as the batch took.
#[cold]
fn record<'a>(
    rules: &Rules,
    singles: impl Iterator<Item = SingleCheck<'a>>,
    decided: &[tollgate::Decided],
    start_us: u64,
    end_us: u64,
) {
    for (single, decided) in singles.zip(decided) {
        let (name, key) = match single {
            SingleCheck::Inline { key, .. } => ("CL.THROTTLE", key),
            SingleCheck::Limit { selection, .. } => match rules.policy().selected(selection).next()
            {
                Some(selected) => (&*selected.limit.name, selected.key),
                None => continue,
            },
            _ => continue,
        };
        let (front, key_hash) = (Front::Resp.name(), trace::bytes_hash(key));
        let span = trace::Decided { front, parent: None, key_hash, start_us, end_us };
        let tollgate::Decided { allowed, source, outcome, .. } = decided;
        let limit = Some((name, outcome));
        trace::single(&span, &trace::Shown { allowed: *allowed, source: *source, limit });
    }
}

/// How a decision counts.
fn outcome(decided: &tollgate::Decided) -> Outcome {
    match (decided.allowed, decided.source) {
        (true, _) => Outcome::Admitted,
        (false, Source::FailClosed) => Outcome::FailClosed,
        (false, _) => Outcome::Refused,
    }
}
