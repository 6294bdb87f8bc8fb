//! The choice as a policy file with comments.

use super::answer::{Answers, Given, Purpose, StoreFailure};
use super::rule::{Choice, Numbers};
use std::fmt::Write;
use tollgate_policy::raw::Algorithm;

/// The number of nodes in an example fleet.
const NODES: u32 = 3;

/// Writes the policy for these answers. `given` has those that matter.
pub(super) fn text(given: Given, answers: Answers) -> String {
    let choice = Choice::new(answers);
    let mut out = format!("# {}\n", command(given));
    out.push_str(match choice.purpose {
        Purpose::Fair | Purpose::Protect => {
            "# The numbers are examples: `tollgate suggest access.log` finds some that fit your traffic.\n"
        }
        Purpose::Shape | Purpose::Bill => "# The numbers are examples: put in your own.\n",
    });
    settings(&mut out, &choice);
    limit(&mut out, &choice);
    out.push_str("# Why no other algorithm:\n");
    for (name, why) in choice.rejected(answers) {
        let _ = writeln!(out, "# {name}: {why}");
    }
    out
}

/// The command that leads to the same choice.
pub(super) fn command(given: Given) -> String {
    let flags = given.flags().map(|(flag, word)| format!(" --{flag} {word}"));
    format!("tollgate choose{}", flags.collect::<String>())
}

fn settings(out: &mut String, choice: &Choice) {
    if choice.is_shared {
        out.push_str(
            "\n# All nodes count in one Redis or Valkey.\n\
             store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}\n",
        );
    } else if choice.has_little_memory {
        out.push_str(
            "\n# One process counts in its own memory, up to this size. Idle keys make room first.\n\
             store: {memory: {max_bytes: 64MiB}}\n",
        );
    } else {
        out.push_str(
            "\n# One process counts in its own memory. A restart begins at zero.\nstore: memory\n",
        );
    }
    if choice.is_audited {
        out.push_str(
            "# Who used how much in each minute, in files chained by hash: `tollgate usage report`.\n\
             usage: {file: usage.jsonl, every: 1m}\n",
        );
        if !choice.is_shared {
            out.push_str(
                "# Files have keys hashed with this secret: long, random, and the same after each start.\n\
                 keys_secret: {env: TOLLGATE_KEYS_SECRET}\n",
            );
        }
    }
    match choice.purpose {
        Purpose::Bill => out.push_str(
            "# `account` is named by callers of the check API. For a gateway, take it from a verified token:\n\
             # identity: {account: jwt.sub}, jwt: {keys: jwks.json}.\n",
        ),
        Purpose::Fair | Purpose::Protect => out.push_str(
            "# Your proxies and load balancers: only they may name a client's address.\n\
             trusted_proxies: [127.0.0.0/8]\n",
        ),
        Purpose::Shape => {}
    }
}

fn limit(out: &mut String, choice: &Choice) {
    let numbers = choice.numbers;
    let _ = writeln!(out, "limits:\n  # {}: {}.", choice.algorithm.word(), choice.why);
    out.push_str(match choice.purpose {
        Purpose::Fair => "  - name: per-client\n    key: [ip]                # or [user], from a verified token\n",
        Purpose::Protect => "  - name: protection\n    key: [ip]                # without a key: all clients together\n",
        Purpose::Shape => "  - name: pace               # without a key: all requests share one pace\n",
        Purpose::Bill => "  - name: plan\n    key: [account]\n    on_missing: refuse       # a request without an account has no quota\n",
    });
    let _ = writeln!(out, "    algorithm: {}", choice.algorithm.word());
    match (choice.algorithm, numbers.period) {
        (_, None) => {
            let _ = writeln!(out, "    rate: {:<18} # requests in flight", numbers.rate);
            out.push_str("    ttl: 30s                 # a slot that is not released is free again after this\n");
        }
        (algorithm, Some(period)) => {
            let rate = format!("{}/{period}", numbers.rate);
            let note = match (choice.is_audited, algorithm, numbers.burst) {
                (true, _, Some(burst)) => {
                    format!(
                        "and a burst of {burst}: at most {}/{period} in any window",
                        numbers.rate + burst
                    )
                }
                (true, Algorithm::FixedWindow, _) => "exactly this in each month".into(),
                (true, ..) => "at most this in any window, wherever it starts".into(),
                (false, ..) => "sustained".into(),
            };
            let _ = writeln!(out, "    rate: {rate:<18} # {note}");
        }
    }
    if let Some(burst) = numbers.burst {
        let _ = writeln!(out, "    burst: {burst:<17} # at once, after a pause");
    }
    if let Some(queue) = numbers.queue {
        let _ = writeln!(out, "    queue: {queue:<17} # may wait for their turn; more are refused");
    }
    if choice.purpose == Purpose::Bill {
        out.push_str("    time_zone: UTC           # whose months count, such as Europe/Berlin\n");
    }
    if let Some(failure) = choice.store_failure {
        store_failure(out, failure, choice);
    }
}

fn store_failure(out: &mut String, failure: StoreFailure, choice: &Choice) {
    let comment = match (failure, choice.is_audited) {
        (StoreFailure::Open, true) => {
            "Requests pass while Redis fails: an audit has to except that time."
        }
        (StoreFailure::Open, false) => "Requests pass while Redis fails.",
        (StoreFailure::Closed, _) => "Requests get 503 while Redis fails.",
        (StoreFailure::Local, true) => {
            "Each of 3 nodes enforces a third while Redis fails. Counts begin at zero then."
        }
        (StoreFailure::Local, false) => "Each of 3 nodes enforces a third while Redis fails.",
    };
    let value = match (failure, choice.algorithm, choice.numbers) {
        (StoreFailure::Open, ..) => "open".into(),
        (StoreFailure::Closed, ..) => "closed".into(),
        // A third of a burst of 1 is 0, which would refuse everything.
        (_, Algorithm::LeakyBucket, Numbers { rate, period: Some(period), burst: None, .. }) => {
            format!("{{local: {{rate: {}/{period}}}}}", rate / NODES)
        }
        (StoreFailure::Local, ..) => format!("{{local: {{nodes: {NODES}}}}}"),
    };
    let _ = writeln!(out, "    # {comment}\n    on_store_failure: {value}");
}
