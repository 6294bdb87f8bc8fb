//! Valid files, and the policies that they compile to.

use super::fixtures;
use tollgate_core::algorithm::{
    CalendarWindow, Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow,
    TokenBucket,
};
use tollgate_core::{CalendarUnit, LimitParams, Penalty, Rate};
use tollgate_policy::limit::{
    Consistency, CostRule, Limit, LocalRate, Mode, OnMissing, OnStoreFailure, ResponseCost,
    Statuses,
};
use tollgate_policy::match_spec::{Condition, MatchSpec};
use tollgate_policy::settings::{Secret, SecretSource};
use tollgate_policy::{Compiled, compile};

mod candidate;
mod settings;
mod shed;

/// Compiles the fixture with this name.
fn good(name: &str) -> Compiled {
    let path = fixtures("good").into_iter().find(|path| path.file_stem().unwrap() == name);
    let bytes = std::fs::read(path.expect(name)).unwrap();
    compile(&bytes).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"))
}

fn limit<'a>(compiled: &'a Compiled, name: &str) -> &'a Limit {
    &compiled.limits.iter().find(|(limit, _)| &*limit.name == name).expect(name).0
}

fn rate(count: u64, period_us: u64) -> Rate {
    Rate::try_new(count, period_us).unwrap()
}

const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Days and weeks without a time zone stay aligned to the epoch.
#[test]
fn windows_of_the_calendar() {
    let compiled = good("calendar");
    let calendar = |count, unit, zone: &str| {
        let zone = tollgate_policy::time_zone(zone).unwrap();
        Some(LimitParams::CalendarWindow(CalendarWindow::new(count, unit, zone)))
    };
    let params = |name: &str| limit(&compiled, name).params;
    assert_eq!(params("months"), calendar(1_000, CalendarUnit::Month, "UTC"));
    assert_eq!(params("days"), calendar(1_000, CalendarUnit::Day, "Europe/Berlin"));
    assert_eq!(params("weeks"), calendar(1_000, CalendarUnit::Week, "America/New_York"));
    let tiers = limit(&compiled, "tiers");
    assert_eq!(tiers.params, calendar(10, CalendarUnit::Day, "Asia/Kolkata"));
    let of_tiers: Vec<_> = tiers.tiers.iter().map(|(_, params)| *params).collect();
    let months = calendar(1_000, CalendarUnit::Month, "Asia/Kolkata");
    assert_eq!(of_tiers, [months, None, calendar(0, CalendarUnit::Week, "Asia/Kolkata")]);
    let plain = compile(b"limits: [{name: a, algorithm: fixed-window, rate: 5/day}]").unwrap();
    let epoch = FixedWindow::new(rate(5, DAY));
    assert_eq!(plain.limits[0].0.params, Some(LimitParams::FixedWindow(epoch)));
}

#[test]
fn a_time_zone_is_part_of_whose_state_it_is() {
    let id = |rest: &str| {
        let file = format!("limits: [{{name: a, key: [user], algorithm: fixed-window, {rest}}}]");
        let compiled = compile(file.as_bytes()).unwrap();
        let limit = &compiled.limits[0].0;
        limit.state_id(&limit.params.unwrap())
    };
    let ids = [
        id("rate: 5/day"),
        id("rate: 5/day, time_zone: UTC"),
        id("rate: 5/day, time_zone: Europe/Berlin"),
        id("rate: 5/day, time_zone: Europe/Paris"),
        id("rate: 5/week, time_zone: Europe/Berlin"),
        id("rate: 5/month"),
    ];
    let distinct: std::collections::BTreeSet<u64> = ids.into_iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    assert_eq!(id("rate: 5/month"), id("rate: 9/month, time_zone: UTC"));
    assert_eq!(id("rate: 5/day, time_zone: europe/berlin"), ids[2]);
}

#[test]
fn all_good_files_compile() {
    for path in fixtures("good") {
        let errors = compile(&std::fs::read(&path).unwrap()).err();
        assert!(errors.is_none(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn the_example_of_the_design_has_its_limits_in_order() {
    let compiled = good("design");
    let names: Vec<&str> = compiled.limits.iter().map(|(limit, _)| &*limit.name).collect();
    assert_eq!(
        names,
        [
            "per-user",
            "spike",
            "export",
            "login/ip+username",
            "login/ip",
            "login/username",
            "in-flight",
            "hot"
        ]
    );
    assert_eq!(compiled.entries, [0, 1, 2, 3, 3, 3, 4, 5]);
    let login = limit(&compiled, "login/ip+username");
    assert_eq!(login.on_store_failure, OnStoreFailure::Closed);
    assert!(!login.disclose);
    assert_eq!(login.penalty, Some(Penalty::try_new(3, MINUTE, 2_000, HOUR).unwrap()));
    assert_eq!(limit(&compiled, "export").mode, Mode::Shadow);
    assert_eq!(compiled.file.limits.as_ref().unwrap()[0].name.as_ref().unwrap().at.line, 26);
}

#[test]
fn algorithms_get_their_numbers() {
    let compiled = good("algorithms");
    let bucket = |burst| Some(TokenBucket::try_new(rate(20, SECOND), burst).unwrap());
    let leaky = |b, q| Some(LeakyBucket::try_new(rate(10, SECOND), b, q).unwrap());
    for (name, expected) in [
        ("default", Some(LimitParams::SlidingWindow(SlidingWindow::new(rate(100, MINUTE))))),
        (
            "sliding-window",
            Some(LimitParams::SlidingWindow(SlidingWindow::new(rate(1_000_000, DAY)))),
        ),
        ("fixed-window", Some(LimitParams::FixedWindow(FixedWindow::new(rate(3, MS))))),
        ("sliding-log", Some(LimitParams::SlidingLog(SlidingLog::new(rate(7, MINUTE))))),
        ("token-bucket", bucket(Some(50)).map(LimitParams::TokenBucket)),
        ("token-bucket-n", bucket(Some(20)).map(LimitParams::TokenBucket)),
        ("gcra", Gcra::try_new(rate(4_294_967_295, 366 * DAY), None).ok().map(LimitParams::Gcra)),
        ("leaky-bucket", leaky(Some(1), Some(0)).map(LimitParams::LeakyBucket)),
        ("leaky-queue", leaky(Some(2), Some(5)).map(LimitParams::LeakyBucket)),
        ("concurrency", Concurrency::try_new(20, 30 * SECOND).ok().map(LimitParams::Concurrency)),
        (
            "concurrency-ttl",
            Concurrency::try_new(20, 2 * MINUTE).ok().map(LimitParams::Concurrency),
        ),
        ("unlimited", None),
        ("zero", Some(LimitParams::SlidingWindow(SlidingWindow::new(rate(0, SECOND))))),
        ("zero-bucket", Gcra::try_new(rate(0, SECOND), None).ok().map(LimitParams::Gcra)),
    ] {
        assert_eq!(limit(&compiled, name).params, expected, "{name}");
    }
}

#[test]
fn what_a_tier_does_not_say_it_takes_from_the_limit() {
    let compiled = good("tiers");
    let bucket = |count, burst, period| {
        let params = TokenBucket::try_new(rate(count, period), Some(burst)).unwrap();
        Some(LimitParams::TokenBucket(params))
    };
    let limit_ = limit(&compiled, "bucket");
    let expected = [
        ("string", bucket(100, 5, SECOND)),
        ("map", bucket(100, 5, SECOND)),
        ("both", bucket(100, 50, SECOND)),
        ("burst", bucket(10, 7, SECOND)),
        ("free", None),
        ("hourly", bucket(1_000, 5, HOUR)),
    ];
    assert_eq!(limit_.tiers.len(), expected.len());
    for ((name, params), (tier, actual)) in expected.iter().zip(&limit_.tiers) {
        assert_eq!((*name, params), (&**tier, actual));
    }
    let no_burst = Gcra::try_new(rate(100, SECOND), Some(100)).unwrap();
    assert_eq!(limit(&compiled, "no-burst").tiers[0].1, Some(LimitParams::Gcra(no_burst)));
    let slots = Concurrency::try_new(50, 10 * SECOND).unwrap();
    assert_eq!(limit(&compiled, "slots").tiers[0].1, Some(LimitParams::Concurrency(slots)));
    let queue = LeakyBucket::try_new(rate(5, SECOND), None, Some(9)).unwrap();
    assert_eq!(limit(&compiled, "queue").tiers[0].1, Some(LimitParams::LeakyBucket(queue)));
    assert!(limit(&compiled, "base-unlimited").params.is_none());
    assert!(limit(&compiled, "base-unlimited").tiers[0].1.is_some());
}

#[test]
fn state_belongs_to_name_key_algorithm_and_period() {
    let id = |fields: &str| {
        let text = format!("limits: [{{{fields}}}]");
        let compiled = compile(text.as_bytes()).unwrap();
        let limit = &compiled.limits[0].0;
        limit.state_id(&limit.params.unwrap())
    };
    let base = id("name: a, key: [user], algorithm: gcra, rate: 5/min");
    for same in [
        "name: a, key: [user], algorithm: gcra, rate: 6/min",
        "name: a, key: [user], algorithm: gcra, rate: 5/60s",
        "name: a, key: [user], algorithm: gcra, rate: 5/min, burst: 9",
        "name: a, key: [user], algorithm: gcra, rate: 5/min, tiers: {pro: 7/min}",
        "name: a, key: [user], algorithm: gcra, rate: 5/min, mode: shadow, cost: 3",
    ] {
        assert_eq!(id(same), base, "{same}");
    }
    for other in [
        "name: b, key: [user], algorithm: gcra, rate: 5/min",
        "name: a, key: [ip], algorithm: gcra, rate: 5/min",
        "name: a, algorithm: gcra, rate: 5/min",
        "name: a, key: [user], algorithm: token-bucket, rate: 5/min",
        "name: a, key: [user], algorithm: gcra, rate: 5/s",
    ] {
        assert_ne!(id(other), base, "{other}");
    }
    let compiled = good("tiers");
    let bucket = limit(&compiled, "bucket");
    let base = bucket.state_id(&bucket.params.unwrap());
    for (tier, params) in &bucket.tiers {
        let own_period = &**tier == "hourly";
        let id = params.map(|params| bucket.state_id(&params));
        assert_eq!(id.is_some_and(|id| id != base), own_period, "{tier}");
    }
}

#[test]
fn keys_become_several_limits() {
    let compiled = good("keys");
    let keys: Vec<(&str, Vec<&str>, OnMissing)> = compiled
        .limits
        .iter()
        .map(|(limit, _)| {
            (&*limit.name, limit.key.iter().map(|part| &**part).collect(), limit.on_missing)
        })
        .collect();
    assert_eq!(
        keys,
        [
            ("shared", vec![], OnMissing::Skip),
            ("one", vec!["user"], OnMissing::Refuse),
            ("list", vec!["ip", "header.x-device"], OnMissing::Share),
            ("many/ip+username", vec!["ip", "username"], OnMissing::Skip),
            ("many/ip", vec!["ip"], OnMissing::Skip),
            ("many/username", vec!["username"], OnMissing::Skip),
        ]
    );
}

#[test]
fn matches_are_plain_data() {
    let condition = |attribute: &str, patterns: &[&str]| Condition {
        attribute: attribute.into(),
        patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
    };
    let compiled = good("match");
    let specs: Vec<&MatchSpec> = compiled.limits.iter().map(|(_, spec)| spec).collect();
    assert_eq!(
        specs[0].conditions,
        [
            condition("path", &["/login"]),
            condition("method", &["POST"]),
            condition("ip", &["10.0.0.0/8"]),
            condition("header.x-debug", &["true"]),
            condition("version", &["2"]),
        ]
    );
    assert_eq!(
        *specs[1],
        MatchSpec {
            conditions: vec![
                condition("path", &["/api/**", "/v?/*"]),
                condition("ip", &["10.0.0.1/32", "2001:db8::/32"]),
            ],
            not: vec![vec![condition("path", &["/api/health"])]],
        }
    );
    assert_eq!(
        specs[2].not,
        [
            vec![condition("path", &["/a"]), condition("method", &["GET"])],
            vec![condition("host", &["*.internal"])],
        ]
    );
}

#[test]
fn costs_have_three_forms() {
    let compiled = good("costs");
    let header = |default, max| CostRule::Attribute { name: "header.x-cost".into(), default, max };
    let estimate = |estimate, response| CostRule::Estimate { estimate, response };
    for (name, expected) in [
        ("default", CostRule::Fixed(1)),
        ("fixed", CostRule::Fixed(5)),
        ("free", CostRule::Fixed(0)),
        ("header", header(1, 1_000)),
        ("header-default", header(1, u32::MAX.into())),
        ("json", estimate(500, ResponseCost::Json("usage.total_tokens".into()))),
        ("response-header", estimate(1, ResponseCost::Header("x-used".into()))),
    ] {
        assert_eq!(limit(&compiled, name).cost, expected, "{name}");
    }
}

#[test]
fn the_other_fields_of_a_limit() {
    let compiled = good("limit-options");
    let per_minute = Rate::try_new(20, 60_000_000).unwrap();
    for (name, mode, failure, disclose) in [
        ("defaults", Mode::Enforce, OnStoreFailure::Local { nodes: 3 }, true),
        ("off", Mode::Off, OnStoreFailure::Open, true),
        ("shadow", Mode::Shadow, OnStoreFailure::Closed, false),
        ("enforce", Mode::Enforce, OnStoreFailure::Local { nodes: 1 }, true),
        ("local", Mode::Enforce, OnStoreFailure::Local { nodes: 4 }, true),
        ("rate", Mode::Enforce, OnStoreFailure::LocalRate(LocalRate::Per(per_minute)), true),
        ("slots", Mode::Enforce, OnStoreFailure::LocalRate(LocalRate::Slots(2)), true),
    ] {
        let limit = limit(&compiled, name);
        assert_eq!((limit.mode, limit.on_store_failure), (mode, failure), "{name}");
        assert_eq!((limit.disclose, limit.penalty), (disclose, None), "{name}");
        assert_eq!(limit.show_keys, name == "shadow", "{name}");
    }
    let secret = compiled.settings.keys_secret.as_ref().map(Secret::expose);
    assert!(matches!(secret, Some(SecretSource::Env(name)) if **name == *"TOLLGATE_KEYS_SECRET"));
    for (name, block, factor_milli, max) in [
        ("penalty", MINUTE, 1_500, HOUR),
        ("penalty-defaults", MINUTE, 2_000, HOUR),
        ("penalty-long", 2 * HOUR, 2_000, 2 * HOUR),
    ] {
        let expected = Penalty::try_new(3, block, factor_milli, max).unwrap();
        assert_eq!(limit(&compiled, name).penalty, Some(expected), "{name}");
    }
    let leased = |lifetime, min_limit, quiet| Consistency::Leased {
        lifetime_us: lifetime * MS,
        min_limit,
        quiet_us: quiet * MS,
    };
    assert_eq!(limit(&compiled, "defaults").consistency, Consistency::Exact);
    assert_eq!(limit(&compiled, "leased").consistency, leased(500, 100, 1_500));
    assert_eq!(limit(&compiled, "leased-form").consistency, leased(200, 50, 975));
}

#[test]
fn anchors_and_merges_work() {
    let compiled = good("anchors");
    let second = limit(&compiled, "second");
    let expected = SlidingWindow::new(rate(6, MINUTE));
    assert_eq!(second.params, Some(LimitParams::SlidingWindow(expected)));
    assert_eq!(&*second.key[0], "user");
    assert!(compiled.limits.iter().all(|(_, spec)| spec == &compiled.limits[0].1));
}

#[test]
fn answers_change_what_was_counted_and_refusals_have_words() {
    let compiled = good("answers");
    let login = &limit(&compiled, "login").on_response;
    let among = |list: &[Statuses], status| list.iter().any(|one| one.contains(status));
    for (status, refund, penalty) in [
        (200, true, false),
        (299, true, false),
        (304, true, false),
        (301, false, false),
        (401, false, true),
    ] {
        assert_eq!(
            (among(&login.refund, status), among(&login.penalty, status)),
            (refund, penalty),
            "{status}"
        );
    }
    assert!(limit(&compiled, "plain").on_response.is_empty());
    let refusal = compiled.settings.refusal.expect("a template");
    assert_eq!(&*refusal.body, "{status}: again in {retry_after} s");
    assert_eq!(&*refusal.content_type, "text/html");
    assert_eq!(good("empty").settings.refusal, None);
}
