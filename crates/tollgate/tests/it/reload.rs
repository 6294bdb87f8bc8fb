use crate::fixture::{NOW_US, fixture, rows, setup};
use tollgate::MemoryStore;
use tollgate::engine::limit::Mode;
use tollgate::engine::{Gate, GateBuffers, ModeOverride, ReservationEnd, Source, Verdict};
use tollgate_policy::{TierMap, TierRules};

const TWO: &str = "  - {name: l, key: [user], rate: 2/h, algorithm: fixed-window}\n";

fn check<T>(gate: &Gate, user: &str, look: impl FnOnce(&Verdict<'_>) -> T) -> T {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    rules.identify(&mut facts);
    look(&gate.check(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now())
}

fn gate(limits: &str) -> Gate {
    Gate::new(setup(limits), MemoryStore::default()).unwrap()
}

#[test]
fn a_reload_keeps_counts_where_the_state_is_the_same() {
    let gate = gate(TWO);
    check(&gate, "a", |verdict| assert!(verdict.allowed));
    gate.replace(setup(&TWO.replace("2/h", "5/h"))).unwrap();
    check(&gate, "a", |verdict| assert_eq!(rows(verdict), [("l", true, 3)]));
    gate.replace(setup(&TWO.replace("2/h", "5/min"))).unwrap();
    check(&gate, "a", |verdict| assert_eq!(rows(verdict), [("l", true, 4)], "another period"));
    assert_eq!(gate.counts()[0].1.admitted, 3, "the counters belong to the name");
    assert_eq!(gate.rules().generation(), 3);
}

#[test]
fn whoever_holds_the_old_rules_is_answered_by_them() {
    let desk = fixture(setup(TWO));
    desk.gate.replace(setup("  - {name: other, rate: 0/s}\n")).unwrap();
    let facts = crate::fixture::facts(&desk, &[("user", "a")]);
    let old = desk.gate.check(&desk.rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now();
    assert_eq!(rows(&old), [("l", true, 1)]);
    check(&desk.gate, "a", |verdict| assert!(!verdict.allowed));
}

#[test]
fn a_mode_is_overridden_at_once_and_until_it_is_cleared() {
    let gate = gate(TWO);
    gate.set_overrides(vec![ModeOverride::new("l", Mode::Off)]);
    check(&gate, "a", |verdict| assert_eq!(verdict.source, Source::None));
    gate.replace(setup(TWO)).unwrap();
    check(&gate, "a", |verdict| assert_eq!(verdict.source, Source::None, "kept across reloads"));
    gate.set_overrides(vec![ModeOverride::new("l", Mode::Shadow)]);
    for allowed in [true; 3] {
        check(&gate, "a", |verdict| assert_eq!(verdict.allowed, allowed));
    }
    assert_eq!(gate.counts()[0].1.shadow_refused, 1);
    let generation = gate.rules().generation();
    gate.set_overrides(vec![ModeOverride::new("l", Mode::Shadow)]);
    assert_eq!(gate.rules().generation(), generation, "nothing changed");
    gate.set_overrides(Vec::new());
    check(&gate, "a", |verdict| assert!(!verdict.allowed));
}

#[test]
fn a_limit_that_is_off_can_be_switched_on() {
    let gate = gate("  - {name: l, key: [user], rate: 0/h, mode: off}\n");
    check(&gate, "a", |verdict| assert!(verdict.allowed));
    gate.set_overrides(vec![ModeOverride::new("l", Mode::Enforce)]);
    check(&gate, "a", |verdict| assert!(!verdict.allowed));
}

#[test]
fn the_last_override_that_applies_decides() {
    let gate = gate(concat!(
        "  - {name: login, keys: [[ip], [user]], rate: 1/h}\n",
        "  - {name: login-slow, rate: 1/h}\n",
        "  - {name: other, rate: 1/h}\n",
    ));
    let modes = |overrides: &[(&str, Mode)]| {
        gate.set_overrides(overrides.iter().map(|one| ModeOverride::new(one.0, one.1)).collect());
        gate.rules().policy().limits().iter().map(|limit| limit.mode).collect::<Vec<_>>()
    };
    use Mode::{Enforce, Off, Shadow};
    assert_eq!(modes(&[("login", Off)]), [Off, Off, Enforce, Enforce], "what `keys` made of it");
    assert_eq!(modes(&[("login/ip", Off)]), [Off, Enforce, Enforce, Enforce]);
    assert_eq!(modes(&[("*", Off)]), [Off; 4]);
    assert_eq!(modes(&[("*", Off), ("login/ip", Shadow)]), [Shadow, Off, Off, Off]);
    assert_eq!(modes(&[("login/ip", Shadow), ("*", Off)]), [Off; 4], "the later word counts");
    assert_eq!(modes(&[("login/ip", Shadow), ("login", Off)]), [Off, Off, Enforce, Enforce]);
    assert_eq!(modes(&[("log", Off), ("*ther", Off)]), [Enforce; 4]);
}

#[test]
fn an_override_waits_for_its_limit() {
    let gate = gate(TWO);
    gate.set_overrides(vec![ModeOverride::new("later", Mode::Off)]);
    check(&gate, "a", |verdict| assert_eq!(verdict.rows.len(), 1));
    gate.replace(setup(&TWO.replace("name: l,", "name: later,"))).unwrap();
    check(&gate, "a", |verdict| assert_eq!(verdict.source, Source::None));
}

#[test]
fn tiers_come_from_a_map_that_can_change() {
    let limits = "  - {name: l, key: [user], rate: 1/h, tiers: {pro: 5/h}}\n";
    let text = format!("tiers: {{default: free, file: {{path: t.yaml}}}}\nlimits:\n{limits}");
    let compiled = tollgate::engine::policy::compile(text.as_bytes()).unwrap();
    let rules = TierRules::of(&compiled);
    let tiers = |tier| {
        TierMap::read(format!("{{by: user, map: {{a: {tier}}}}}").as_bytes(), &rules).unwrap()
    };
    let setup = tollgate::engine::GateSetup::of(&compiled).with_tiers(tiers("pro"));
    let gate = Gate::new(setup, MemoryStore::default()).unwrap();
    check(&gate, "a", |verdict| assert_eq!(rows(verdict), [("l", true, 4)]));
    check(&gate, "b", |verdict| assert_eq!(rows(verdict), [("l", true, 0)]));
    gate.set_tiers(Some(tiers("free"))).unwrap();
    check(&gate, "a", |verdict| assert_eq!(rows(verdict), [("l", false, 0)]));
    gate.set_tiers(None).unwrap();
    check(&gate, "c", |verdict| assert_eq!(rows(verdict), [("l", true, 0)]));
}

#[test]
fn reservations_settle_across_reloads() {
    let gate = gate(TWO);
    {
        let rules = gate.rules();
        let mut facts = rules.facts(Default::default());
        facts.set("user", "a").unwrap();
        gate.reserve(&rules, NOW_US, "r", &facts, 2, None, &mut GateBuffers::default())
            .now()
            .unwrap();
    }
    gate.replace(setup(&format!("  - {{name: first, rate: 9/s}}\n{TWO}"))).unwrap();
    let settled = gate.end(NOW_US, "r", ReservationEnd::Cancel).now().unwrap();
    let names: Vec<_> = settled.rows().map(|row| row.limit.name.to_string()).collect();
    assert_eq!(names, ["l"]);
    gate.replace(setup("")).unwrap();
    assert_eq!(
        gate.end(NOW_US, "r", ReservationEnd::Cancel).now().unwrap().rows().len(),
        1,
        "the same answer"
    );
}

/// A reservation of 5 units of `10/h` ends after the limit has changed. Returns the number of units
/// that the new limit admits at once.
fn admitted_after(algorithm: &str, changed: &str, end: ReservationEnd) -> u64 {
    let unit = if algorithm == "concurrency" { "" } else { "/h" };
    let before = format!("  - {{name: l, key: [user], rate: 10{unit}, algorithm: {algorithm}}}\n");
    let gate = gate(&before);
    {
        let rules = gate.rules();
        let mut facts = rules.facts(Default::default());
        facts.set("user", "a").unwrap();
        rules.identify(&mut facts);
        let mut buffers = GateBuffers::default();
        let reserved = gate.reserve(&rules, NOW_US, "r", &facts, 5, None, &mut buffers);
        assert!(reserved.now().unwrap().1.is_some(), "{algorithm}");
    }
    let after = format!("  - {{name: l, key: [user], {changed}}}\n");
    gate.replace(setup(if changed.is_empty() { "" } else { &after })).unwrap();
    for _ in 0..2 {
        let ended = gate.end(NOW_US, "r", end).now().unwrap();
        let rows: Vec<_> = ended.rows().map(|row| row.limit.name.to_string()).collect();
        assert_eq!(rows, ["l"], "{algorithm} to {changed:?}: rows of the limit that was charged");
    }
    gate.end(NOW_US, "r", ReservationEnd::Settle(9)).now().unwrap_err();
    if changed.is_empty() {
        gate.replace(setup(&before)).unwrap();
    }
    (0..100).filter(|_| check(&gate, "a", |verdict| verdict.allowed)).count() as u64
}

/// A settlement changes only the state that was charged.
#[test]
fn a_reservation_ends_in_the_state_that_it_charged() {
    use ReservationEnd::{Cancel, Settle};
    let windows = ["fixed-window", "sliding-window", "sliding-log"];
    let buckets = ["gcra", "token-bucket"];
    for algorithm in windows.into_iter().chain(buckets).chain(["concurrency"]) {
        for (end, used) in [(Cancel, 0), (Settle(2), 2), (Settle(5), 5), (Settle(8), 8)] {
            // The end frees every slot.
            let used = if algorithm == "concurrency" { 0 } else { used };
            let unit = if algorithm == "concurrency" { "" } else { "/h" };
            for count in [20_u64, 6] {
                let changed = format!("rate: {count}{unit}, algorithm: {algorithm}");
                // Buckets keep the used share.
                let share =
                    if buckets.contains(&algorithm) { (used * count).div_ceil(10) } else { used };
                let left = count.saturating_sub(share);
                assert_eq!(admitted_after(algorithm, &changed, end), left, "{changed} {end:?}");
            }
            let other = if algorithm == "gcra" { "fixed-window" } else { "gcra" };
            for changed in [format!("rate: 10/h, algorithm: {other}"), "rate: 10/min".into()] {
                let left = admitted_after(algorithm, &changed, end);
                assert_eq!(left, 10, "{algorithm} to {changed} {end:?}: fresh state");
            }
            let left = admitted_after(algorithm, "", end);
            assert_eq!(left, 10 - used, "{algorithm} {end:?}: a removed limit that comes back");
        }
    }
}

/// The example of the reference: the units left of `1000/day` for a key that has used 9 of
/// `10/day`.
#[test]
fn a_change_keeps_what_the_reference_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (_, section) = page.split_once("### Changes of a limit").unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with("| --- |")).skip(1);
    let mut seen = 0;
    for row in table.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let left: u64 = cells[2].parse().unwrap();
        for algorithm in cells[1].split('`').skip(1).step_by(2) {
            let unit = if algorithm == "concurrency" { "" } else { "/day" };
            let limits = |count: u32| {
                format!(
                    "  - {{name: l, key: [user], rate: {count}{unit}, algorithm: {algorithm}}}\n"
                )
            };
            let gate = gate(&limits(10));
            (0..9).for_each(|_| check(&gate, "a", |verdict| assert!(verdict.allowed)));
            gate.replace(setup(&limits(1000))).unwrap();
            // The check itself takes one unit.
            let expected = [("l", true, left - 1)];
            check(&gate, "a", |verdict| assert_eq!(rows(verdict), expected, "{algorithm}"));
            seen += 1;
        }
    }
    assert_eq!(seen, 6, "every algorithm with one number");
}

/// A tier changes the parameters like a reload.
#[test]
fn another_tier_keeps_the_same() {
    for (algorithm, left) in [("fixed-window", 991), ("gcra", 100)] {
        let text = format!(
            "tiers: {{from: plan}}\nlimits:\n  - {{name: l, key: [user], rate: 10/day, \
             algorithm: {algorithm}, tiers: {{pro: 1000/day}}}}\n"
        );
        let compiled = tollgate::engine::policy::compile(text.as_bytes()).unwrap();
        let gate =
            Gate::new(tollgate::engine::GateSetup::of(&compiled), MemoryStore::default()).unwrap();
        let rules = gate.rules();
        let ask = |plan: &str, cost: u64| {
            let mut facts = rules.facts(Default::default());
            facts.set("user", "a").unwrap();
            facts.set("plan", plan).unwrap();
            let verdict =
                gate.check(&rules, NOW_US, &facts, cost, &mut GateBuffers::default()).now();
            verdict.rows[0].outcome.remaining
        };
        assert_eq!(ask("", 9), 1, "{algorithm}");
        assert_eq!(ask("pro", 0), left, "{algorithm}");
    }
}
