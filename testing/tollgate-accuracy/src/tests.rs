use crate::arguments::{Arguments, Input};
use crate::contestant::{Contestant, Limit};
use crate::tally::Tally;
use crate::traffic::{START_US, Traffic};
use crate::{generated, logs, page, picture};
use std::path::PathBuf;

const LIMIT: Limit = Limit { count: 100, window_us: 60_000_000 };

fn small(seed: u64) -> Traffic {
    Traffic { seed, sources: 400, requests: 600_000, limit: LIMIT }
}

fn tally_of<'t>(name: &str, tallies: &'t [Tally]) -> &'t Tally {
    let all = Contestant::all(LIMIT);
    let place = all.iter().position(|one| page::title(one) == name).unwrap();
    &tallies[place]
}

#[test]
fn the_same_seed_gives_the_same_page() {
    let all = Contestant::all(LIMIT);
    let pages = [1, 1, 2].map(|seed| {
        let tallies = generated(&small(seed), &all);
        page::page(&small(seed), &all, &tallies) + &picture::draw(&all, &tallies, LIMIT)
    });
    assert!(pages[0] == pages[1] && pages[0] != pages[2]);
}

#[test]
fn no_algorithm_exceeds_its_bound_and_the_log_is_never_wrong() {
    let all = Contestant::all(LIMIT);
    let tallies = generated(&small(7), &all);
    for (contestant, tally) in all.iter().zip(&tallies) {
        assert!(tally.most <= contestant.bound, "{}", page::title(contestant));
        assert_eq!(tally.most > LIMIT.count, tally.above > 0);
    }
    let log = tally_of("sliding-log", &tallies);
    assert_eq!((log.wrongly_admitted, log.wrongly_refused, log.above), (0, 0, 0));
    assert_eq!((log.difference, log.most), (0, LIMIT.count));
    let fixed = tally_of("fixed-window", &tallies);
    assert_eq!(fixed.most, 2 * LIMIT.count, "the attackers get what they come for");
    let reduced = tally_of("gcra, rate 80, burst 20", &tallies);
    assert_eq!(reduced.above, 0);
    // Token bucket and GCRA decide alike.
    assert_eq!(tally_of("token-bucket", &tallies), tally_of("gcra", &tallies));
}

/// Compares with a tally computed from the definition of a window, with all instants kept and
/// examined for each request.
#[test]
fn a_tally_is_what_counting_by_hand_gives() {
    let all = Contestant::all(LIMIT);
    let traffic = Traffic { sources: 30, requests: 30_000, ..small(3) };
    let mut expected = Tally::default();
    for source in 0..traffic.sources {
        let (mut admitted, mut exact): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for time_us in traffic.times(source) {
            let of_window = |at: &&u64| **at / LIMIT.window_us == time_us / LIMIT.window_us;
            let used = admitted.iter().filter(of_window).count() as u64;
            let recent = |at: &&u64| time_us - **at < LIMIT.window_us;
            let real = admitted.iter().filter(recent).count() as u64;
            let is_exact = (exact.iter().filter(recent).count() as u64) < LIMIT.count;
            exact.extend(is_exact.then_some(time_us));
            expected.exactly_admitted += u64::from(is_exact);
            expected.requests += 1;
            expected.real += real;
            expected.difference += used.abs_diff(real);
            if used < LIMIT.count {
                admitted.push(time_us);
                expected.admitted += 1;
                expected.wrongly_admitted += u64::from(!is_exact);
                expected.above += u64::from(real >= LIMIT.count);
                expected.most = expected.most.max(real + 1);
            } else {
                expected.wrongly_refused += u64::from(is_exact);
            }
        }
    }
    let tallies = generated(&traffic, &all);
    let fixed = tally_of("fixed-window", &tallies).clone();
    expected.sources = traffic.sources;
    assert_eq!(fixed, expected);
}

#[test]
fn traffic_has_about_the_requests_asked_for_in_order() {
    let traffic = small(5);
    let counts: Vec<u64> =
        (0..traffic.sources).map(|source| traffic.times(source).count() as u64).collect();
    let total: u64 = counts.iter().sum();
    assert!((450_000..900_000).contains(&total), "{total}");
    for source in 0..traffic.sources {
        let times: Vec<u64> = traffic.times(source).collect();
        assert!(times.is_sorted(), "source {source}");
        let within = |us: &u64| (START_US..traffic.end_us()).contains(us);
        assert!(times.iter().all(within), "source {source}");
    }
    assert!(counts[0] > 20 * counts[99], "{} and {}", counts[0], counts[99]);
}

#[test]
fn logs_are_counted_by_address() {
    let log = std::env::temp_dir().join(format!("accuracy-{}.log", std::process::id()));
    let line = |second: u64, host: u64| {
        format!(
            "192.0.2.{host} - - [14/Nov/2023:10:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n"
        )
    };
    let text: String = (0..60).flat_map(|s| (0..12).map(move |n| line(s, n % 4))).collect();
    std::fs::write(&log, text).unwrap();
    let limit = Limit { count: 10, window_us: 60_000_000 };
    let all = Contestant::all(limit);
    let tallies = logs(std::slice::from_ref(&log), Some("nginx"), &all, limit);
    std::fs::remove_file(log).unwrap();
    let tallies = tallies.unwrap();
    assert_eq!((tallies[2].sources, tallies[2].requests, tallies[2].admitted), (4, 720, 40));
    let missing = logs(&[PathBuf::from("no.log")], None, &all, limit).unwrap_err();
    assert!(missing.contains("no.log"), "{missing}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let parse = |line: &str| Arguments::parse(line.split_whitespace().map(String::from));
    for line in ["--seed", "--seed x", "--limit 5/min", "--limit 100", "--sources 0", "--fast 1"] {
        assert!(parse(line).is_err(), "{line}");
    }
    let parsed = parse("--log a --log b --format nginx --limit 30/s").unwrap();
    assert_eq!(parsed.limit, Limit { count: 30, window_us: 1_000_000 });
    assert!(matches!(parsed.input, Input::Logs { files, .. } if files.len() == 2));
}
