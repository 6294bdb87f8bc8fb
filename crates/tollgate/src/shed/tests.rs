//! Tests of the shared shedder.

mod endless;
mod order;
mod outages;
mod parts;
mod properties;
mod simulation;

use super::*;
use std::task::{Context, Waker};

fn enter(shedder: &AdaptiveShedder, now_us: u64, class: u8) -> Entry {
    shedder.enter(now_us, ShedRequest { class, client: 0 })
}

/// A shedder whose two slots are taken.
fn full(classes: u8) -> (AdaptiveShedder, Vec<ShedTicket>) {
    let shedder = AdaptiveShedder::new(AdaptiveSettings::new(classes).between(2, 2));
    let tickets = (0..2).map(|_| match enter(&shedder, 1, 0) {
        Entry::Admitted(ticket) => ticket,
        other => panic!("a free slot is refused: {other:?}"),
    });
    let tickets = tickets.collect();
    (shedder, tickets)
}

fn queued(entry: Entry) -> QueuedEntry {
    match entry {
        Entry::Queued(entry) => entry,
        other => panic!("not queued: {other:?}"),
    }
}

fn poll(entry: &mut QueuedEntry) -> Option<Result<ShedTicket, ShedRefusal>> {
    let mut context = Context::from_waker(Waker::noop());
    match std::pin::Pin::new(entry).poll(&mut context) {
        std::task::Poll::Ready(result) => Some(result),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn a_freed_slot_goes_to_the_most_important_class() {
    let (shedder, mut tickets) = full(3);
    let mut waiting: Vec<_> = [2, 1, 0].map(|class| queued(enter(&shedder, 2, class))).into();
    for class in [2, 1] {
        tickets.remove(0).finish(3, UpstreamOutcome::Ok);
        let ticket = poll(&mut waiting[class]).expect("granted").expect("not shed");
        assert!(waiting[..class].iter_mut().all(|entry| poll(entry).is_none()));
        tickets.push(ticket);
    }
    assert_eq!(shedder.snapshot().in_flight, 2);
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let (shedder, tickets) = full(1);
    let entry = queued(enter(&shedder, 2, 0));
    assert_eq!(entry.deadline_us(), 2 + 220_000);
    let refusal = entry.expire().expect_err("no slot was free");
    assert_eq!(refusal.reason, ShedReason::Queue);
    assert!((1_000_000..3_000_000).contains(&refusal.retry_after_us), "{refusal:?}");
    assert_eq!(shedder.snapshot().classes[0].shed_queue, 1);
    assert_eq!(shedder.snapshot().in_flight, 2);
    drop(tickets);
}

#[test]
fn a_request_that_leaves_takes_nothing() {
    let (shedder, mut tickets) = full(1);
    let (first, second) = (queued(enter(&shedder, 2, 0)), queued(enter(&shedder, 2, 0)));
    drop(first);
    assert_eq!(shedder.snapshot().waiting, 1);
    tickets.remove(0).finish(3, UpstreamOutcome::Ok);
    assert_eq!(shedder.snapshot().in_flight, 2, "the second got the slot");
    drop(second);
    assert_eq!(shedder.snapshot().in_flight, 1, "and gave it back, although nobody polled it");
}

#[test]
fn an_abandoned_call_keeps_its_slot_until_a_later_one_ends() {
    let shedder = AdaptiveShedder::new(AdaptiveSettings::new(1).between(2, 2));
    let mut tickets = [1, 2].map(|now_us| match enter(&shedder, now_us, 0) {
        Entry::Admitted(ticket) => Some(ticket),
        other => panic!("a free slot is refused: {other:?}"),
    });
    drop(tickets[0].take());
    assert_eq!(shedder.snapshot().in_flight, 2, "the upstream may still work on it");
    let later = tickets[1].take().expect("not taken yet");
    later.finish(3, UpstreamOutcome::Ok);
    assert_eq!(shedder.snapshot().in_flight, 0);
}

#[test]
fn an_abandoned_call_frees_its_slot_some_time() {
    let (shedder, tickets) = full(1);
    drop(tickets);
    let waits = queued(enter(&shedder, 200_000, 0));
    drop(waits);
    assert_eq!(shedder.snapshot().in_flight, 2);
    let Entry::Admitted(_ticket) = enter(&shedder, 1_200_000, 0) else { panic!("still taken") };
    assert_eq!(shedder.snapshot().in_flight, 1);
}

#[test]
fn clients_who_leave_do_not_keep_others_out_after_a_slow_call() {
    let shedder = AdaptiveShedder::new(AdaptiveSettings::new(1).between(2, 2));
    let Entry::Admitted(slow) = enter(&shedder, 1, 0) else { panic!("a free slot is refused") };
    slow.finish(2_000_001, UpstreamOutcome::Ok);
    // Nobody stays for longer than 30 ms, so no call says how long calls take now.
    let second = |from_us: u64| {
        let entries = (0..25).filter(|n| {
            let now_us = from_us + n * 40_000;
            match enter(&shedder, now_us, 0) {
                Entry::Admitted(ticket) => {
                    ticket.finish(now_us + 30_000, UpstreamOutcome::Abandoned);
                    true
                }
                _ => false,
            }
        });
        entries.count()
    };
    let admitted: Vec<_> = (2..14).map(|seconds| second(seconds * 1_000_000 + 10_000)).collect();
    assert!(admitted[0] <= 4, "as many as hold a slot for a second: {admitted:?}");
    assert!(admitted[11] >= 15, "the time falls: {admitted:?}");
}

#[test]
fn an_abandoned_upload_frees_its_slot() {
    let (shedder, mut tickets) = full(1);
    let mut upload = tickets.remove(0);
    upload.set_paused(2, true);
    drop(upload);
    assert_eq!(shedder.snapshot().in_flight, 1, "the upstream has no whole request");
}

/// A fresh shedder whose calls all fail. Half of them are reported 200 ms after the limit fell.
fn limit_after_late_reports(latency_us: Option<u64>) -> u32 {
    let shedder = AdaptiveShedder::new(AdaptiveSettings::new(1));
    let mut tickets: Vec<_> = (0..16)
        .map(|_| match enter(&shedder, 1, 0) {
            Entry::Admitted(ticket) => ticket,
            other => panic!("a free slot is refused: {other:?}"),
        })
        .collect();
    for ticket in tickets.drain(8..) {
        ticket.finish(100_000, UpstreamOutcome::Overloaded);
    }
    let _ = enter(&shedder, 200_000, 0);
    for ticket in tickets {
        ticket.finish_after(400_000, UpstreamOutcome::Overloaded, latency_us);
    }
    let _ = enter(&shedder, 500_000, 0);
    shedder.snapshot().limit
}

#[test]
fn a_call_that_is_reported_late_counts_when_it_ended() {
    let start = AdaptiveShedder::new(AdaptiveSettings::new(1)).snapshot().limit;
    let (at_once, late) = (limit_after_late_reports(None), limit_after_late_reports(Some(90_000)));
    assert!(at_once < late && late < start, "{at_once}, {late}, {start}");
}

#[test]
fn retries_are_spread() {
    let (shedder, _tickets) = full(1);
    let refusals = (0..100).map(|_| queued(enter(&shedder, 2, 0)).expire().expect_err("full"));
    let mut waits: Vec<_> = refusals.map(|refusal| refusal.retry_after_us).collect();
    waits.sort();
    assert!(waits[90] - waits[10] > 1_000_000, "{waits:?}");
}

/// Two slots, a completed call every two milliseconds, and a request of class 1 every millisecond:
/// twice what the upstream does. Returns the time at which two seconds have passed.
fn overload(shedder: &AdaptiveShedder, tickets: &mut Vec<ShedTicket>) -> u64 {
    let mut waiting = std::collections::VecDeque::new();
    for ms in 1..2_000 {
        let now_us = ms * 1_000;
        if ms % 2 == 0
            && let Some(ticket) = tickets.pop()
        {
            ticket.finish(now_us, UpstreamOutcome::Ok);
        }
        match enter(shedder, now_us, 1) {
            Entry::Queued(entry) => waiting.push_back(entry),
            Entry::Admitted(ticket) => tickets.push(ticket),
            Entry::Shed(_) => {}
        }
        waiting.retain_mut(|entry| match poll(entry) {
            Some(result) => {
                tickets.extend(result);
                false
            }
            None => true,
        });
    }
    2_000_000
}

/// The place of the first of three requests of class 1 that gets a slot.
fn first_of_three(shedder: &AdaptiveShedder, tickets: &mut Vec<ShedTicket>, now_us: u64) -> usize {
    let mut waiting: Vec<QueuedEntry> = Vec::new();
    // In an overload part of the class is shed at once.
    for attempt in 0..1_000 {
        if let Entry::Queued(entry) = enter(shedder, now_us + attempt, 1) {
            waiting.push(entry);
        }
        if waiting.len() == 3 {
            break;
        }
    }
    tickets.remove(0).finish(now_us + 1_001, UpstreamOutcome::Ok);
    let granted = |entry: &mut QueuedEntry| poll(entry).is_some_and(|result| result.is_ok());
    waiting.iter_mut().position(granted).expect("a slot is free")
}

#[test]
fn the_newest_goes_first_when_late_and_the_oldest_otherwise() {
    let (shedder, mut tickets) = full(2);
    assert_eq!(first_of_three(&shedder, &mut tickets, 2), 0, "the upstream keeps up");
    let (shedder, mut tickets) = full(2);
    let now_us = overload(&shedder, &mut tickets);
    assert!(shedder.snapshot().is_overloaded, "{:?}", shedder.snapshot());
    assert_eq!(first_of_three(&shedder, &mut tickets, now_us), 2, "most are shed");
}
