use super::chain::ChainFile;
use super::writer::UsageWriter;
use super::{UsageLine, UsageRow, UsageTrail};
use crate::tests::{TestNode, answer_now};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate::engine::{AdmissionOptions, GateBuffers, ReservationEnd};
use tollgate_policy::settings;

const MINUTE: u64 = 60_000_000;
/// The start of a minute.
const START: u64 = 1_700_000_040_000_000;

/// A folder, and a node with a usage trail in that folder.
struct UsageWorld {
    folder: PathBuf,
    node: TestNode,
    settings: settings::Usage,
}

impl UsageWorld {
    fn new(name: &str, usage: &str, limits: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tollgate-usage-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = format!(
            "usage: {{file: usage.jsonl, {usage}}}\ntiers: {{from: plan}}\nlimits: [{limits}]"
        );
        let node = TestNode::in_folder(&folder, &file);
        let settings = node.settings.usage.clone().unwrap();
        Self { folder, node, settings }
    }

    fn trail(&self) -> Arc<UsageTrail> {
        self.node.usage.clone().unwrap()
    }

    fn open(&self, now_us: u64) -> UsageWriter {
        UsageWriter::open(&self.settings, &self.folder, now_us).unwrap()
    }

    fn check(&self, now_us: u64, attributes: &[(&str, &str)], cost: u64) -> bool {
        self.node.check(now_us, attributes, cost)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("usage.jsonl")
    }
}

fn lines(path: &Path) -> Vec<UsageLine> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rows(path: &Path) -> Vec<UsageRow> {
    let row = |line| match line {
        UsageLine::Row(row) => Some(row),
        _ => None,
    };
    lines(path).into_iter().filter_map(row).collect()
}

/// Units by minute, limit and user.
type Sums = BTreeMap<(String, String, String), [u64; 3]>;

fn sums(path: &Path) -> Sums {
    let mut sums = Sums::new();
    for row in rows(path) {
        let user = row.key.and_then(|key| key.get("user").cloned()).unwrap_or_default();
        let sum = sums.entry((row.time, row.limit, user)).or_default();
        for (sum, units) in sum.iter_mut().zip([row.admitted, row.refused, row.given_back]) {
            *sum += units;
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The file has the exact count of the same decisions, in the same minutes.
    #[test]
    fn the_file_has_the_exact_count(asked in prop::collection::vec((0_u64..150, 0_usize..4, 1_u64..4), 1..80)) {
        let limits = "{name: a, key: [user], rate: 20/min, algorithm: fixed-window, show_keys: true}";
        let world = UsageWorld::new("exact", "every: 1m", limits);
        let mut writer = world.open(START);
        let (mut expected, mut now_us) = (Sums::new(), START);
        for (seconds, user, cost) in asked {
            now_us += seconds * 1_000_000;
            writer.write_over(&world.node, &world.trail(), now_us, &mut || {});
            let user = ["u0", "u1", "u2", "u3"][user];
            let admitted = world.check(now_us, &[("user", user)], cost);
            let minute = crate::time::rfc3339(now_us / MINUTE * MINUTE);
            let sum = expected.entry((minute, "a".into(), user.into())).or_default();
            sum[usize::from(!admitted)] += cost;
        }
        writer.stop(&world.node, &world.trail(), now_us);
        prop_assert_eq!(sums(&world.path()), expected);
    }
}

#[test]
fn a_limit_that_another_one_overrules_took_nothing() {
    let limits = "{name: wide, key: [user], rate: 100/min}, {name: tight, key: [user], rate: 1/min, tiers: {pro: 2/min}}";
    let world = UsageWorld::new("overruled", "every: 1m", limits);
    let mut writer = world.open(START);
    for _ in 0..3 {
        world.check(START, &[("user", "a"), ("plan", "pro")], 1);
    }
    writer.stop(&world.node, &world.trail(), START);
    let mut rows = rows(&world.path());
    rows.sort_by(|a, b| a.limit.cmp(&b.limit));
    let units: Vec<_> = rows.iter().map(|row| (&*row.limit, row.admitted, row.refused)).collect();
    assert_eq!(units, [("tight", 2, 1), ("wide", 2, 0)]);
    assert!(rows.iter().all(|row| row.tier.as_deref() == Some("pro")));
    let key = rows[0].key.as_ref().unwrap();
    assert!(key["user"].starts_with('~'), "hashed unless it is shown: {key:?}");
}

#[test]
fn reservations_give_back_what_they_did_not_use() {
    let limits = "{name: l, key: [user], rate: 100/min, tiers: {pro: 200/min}}";
    let world = UsageWorld::new("reserved", "every: 1m", limits);
    let mut writer = world.open(START);
    let rules = world.node.gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    facts.set("plan", "pro").unwrap();
    for (id, used) in [("less", 2), ("more", 15)] {
        let mut work = GateBuffers::default();
        let gate = &world.node.gate;
        answer_now(gate.reserve(&rules, START, id, &facts, 10, None, &mut work)).unwrap();
        for _ in 0..2 {
            let end = ReservationEnd::Settle(used);
            answer_now(gate.end(START, id, end)).unwrap();
        }
    }
    writer.stop(&world.node, &world.trail(), START);
    let [row] = &rows(&world.path())[..] else { panic!("one key and tier") };
    assert_eq!((row.admitted, row.given_back), (25, 8), "a repeated call counts once");
    assert_eq!(row.tier.as_deref(), Some("pro"));
}

#[test]
fn refunds_and_settlements_have_the_tier_of_their_charge() {
    let limits = concat!(
        "{name: l, key: [user], rate: 100/min, tiers: {pro: 200/min}, ",
        "cost: {estimate: 10, response: {json: n}}}"
    );
    let world = UsageWorld::new("adjusted", "every: 1m", limits);
    let (mut writer, gate) = (world.open(START), &world.node.gate);
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    facts.set("plan", "pro").unwrap();
    for used in [4, 25] {
        let (mut work, options) = (GateBuffers::default(), AdmissionOptions::default());
        let admitted = gate.admit(&rules, START, &facts, &options, &mut work);
        let mut held = answer_now(admitted).1.expect("an estimate");
        held.settle(0, used);
        assert!(gate.finish_now(|| START, held).is_none());
    }
    writer.stop(&world.node, &world.trail(), START);
    let [row] = &rows(&world.path())[..] else { panic!("one key and tier") };
    let units = (row.tier.as_deref(), row.admitted, row.given_back);
    assert_eq!(units, (Some("pro"), 35, 6));
}

#[test]
fn each_file_names_the_hash_of_the_one_before() {
    let limits = "{name: l, key: [user], rate: 1000/min}";
    let world = UsageWorld::new("chain", "every: 1m, rotate: {size: 4KiB}", limits);
    let mut writer = world.open(START);
    for minute in 0..6 {
        for user in 0..20 {
            world.check(START + minute * MINUTE, &[("user", &format!("user-{user}"))], 1);
        }
        writer.write_over(&world.node, &world.trail(), START + (minute + 1) * MINUTE, &mut || {});
    }
    writer.stop(&world.node, &world.trail(), START + 6 * MINUTE);
    let (mut path, mut files, mut total) = (world.path(), 1, 0);
    loop {
        total += rows(&path).iter().map(|row| row.admitted).sum::<u64>();
        let UsageLine::Header(header) = lines(&path).remove(0) else { panic!("a header") };
        let Some(previous) = header.previous else { break };
        path = world.folder.join(&previous.file);
        let hash: String = Sha256::digest(fs::read(&path).unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hash, previous.sha256, "{}", path.display());
        files += 1;
    }
    assert!(files >= 3 && total == 120, "{files} files, {total} units");
    assert_eq!(fs::read_dir(&world.folder).unwrap().count(), files);
}

#[test]
fn a_rotation_that_fails_leaves_the_file_open() {
    let limits = "{name: l, key: [user], rate: 1000/min}";
    let world = UsageWorld::new("no-rotation", "every: 1m, rotate: {age: 1m}", limits);
    let (mut writer, trail) = (world.open(START), world.trail());
    // The next file cannot be created.
    let next = world.folder.join("usage.jsonl.new");
    fs::create_dir(&next).unwrap();
    for minute in 0..2 {
        world.check(START + minute * MINUTE, &[("user", "a")], 1);
        writer.write_over(&world.node, &trail, START + (minute + 1) * MINUTE, &mut || {});
    }
    let is_closed = |line: &UsageLine| matches!(line, UsageLine::Closed { .. });
    assert_eq!(rows(&world.path()).len(), 2);
    assert!(!lines(&world.path()).iter().any(is_closed), "{:?}", lines(&world.path()));
    fs::remove_dir(&next).unwrap();
    writer.write_over(&world.node, &trail, START + 3 * MINUTE, &mut || {});
    assert_eq!(lines(&world.path()).len(), 1, "the next file has begun");
}

/// Writes a minute, moves the file out of its path, and writes the next minute.
fn move_file(name: &str, move_it: impl FnOnce(&Path)) -> UsageWorld {
    let limits = "{name: l, key: [user], rate: 1000/min}";
    let world = UsageWorld::new(name, "every: 1m", limits);
    let (mut writer, trail) = (world.open(START), world.trail());
    for user in ["a", "b"] {
        world.check(START, &[("user", user)], 1);
    }
    writer.write_over(&world.node, &trail, START + MINUTE, &mut || {});
    move_it(&world.path());
    world.check(START + MINUTE, &[("user", "a")], 1);
    for minute in 2..4 {
        writer.write_over(&world.node, &trail, START + minute * MINUTE, &mut || {});
    }
    writer.stop(&world.node, &trail, START + 4 * MINUTE);
    world
}

#[test]
fn a_removed_file_is_followed_by_one_that_says_so() {
    let world = move_file("removed", |path| fs::remove_file(path).unwrap());
    let [UsageLine::Header(header), UsageLine::Gap { gap }, UsageLine::Row(row), ..] =
        &lines(&world.path())[..]
    else {
        panic!("{:?}", lines(&world.path()))
    };
    assert!(header.previous.is_some());
    assert_eq!(gap.from.as_deref(), Some("2023-11-14T22:14:00.000000Z"));
    assert!(gap.reason.contains("removed"), "{gap:?}");
    assert_eq!(row.admitted, 1);
    assert_eq!(world.trail().stats().lost_rows, 2);
    assert_eq!(fs::read_dir(&world.folder).unwrap().count(), 1, "one file, begun once");
}

#[test]
fn a_renamed_file_is_closed_and_followed() {
    let world = move_file("renamed", |path| {
        fs::rename(path, path.with_file_name("old")).unwrap();
        fs::write(path, "another file").unwrap();
    });
    let [UsageLine::Header(header), UsageLine::Row(_), ..] = &lines(&world.path())[..] else {
        panic!("{:?}", lines(&world.path()))
    };
    let old = world.folder.join("old");
    let hash: String =
        Sha256::digest(fs::read(&old).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header.previous.as_ref().unwrap().sha256, hash);
    assert!(matches!(lines(&old).last(), Some(UsageLine::Closed { .. })));
    assert_eq!((rows(&old).len(), world.trail().stats().lost_rows), (2, 0));
    // The file that took the path is kept aside.
    assert_eq!(fs::read_dir(&world.folder).unwrap().count(), 3);
}

#[test]
fn a_start_after_a_crash_tells_of_the_gap_and_continues_the_chain() {
    let limits = "{name: l, key: [user], rate: 1000/min}";
    let world = UsageWorld::new("crash", "every: 1m", limits);
    let mut writer = world.open(START);
    world.check(START, &[("user", "a")], 1);
    writer.write_over(&world.node, &world.trail(), START + MINUTE, &mut || {});
    world.check(START + MINUTE, &[("user", "a")], 1);
    drop(writer);
    let mut next = world.open(START + 3 * MINUTE);
    let [UsageLine::Header(header), UsageLine::Gap { gap }] = &lines(&world.path())[..] else {
        panic!("{:?}", lines(&world.path()))
    };
    assert!(header.previous.is_some());
    assert_eq!(gap.from.as_deref(), Some("2023-11-14T22:15:00.000000Z"));
    assert_eq!(gap.to, "2023-11-14T22:17:00.000000Z");
    next.stop(&world.node, &world.trail(), START + 3 * MINUTE);
    drop(next);
    world.open(START + 4 * MINUTE);
    assert_eq!(lines(&world.path()).len(), 1, "an orderly end leaves no gap");
}

/// The clock went back by an hour between two processes: the chain continues, and rows have the
/// time of the clock.
#[test]
fn a_clock_that_went_back_loses_no_row() {
    let limits = "{name: l, key: [user], rate: 1000/min, show_keys: true}";
    let world = UsageWorld::new("clock", "every: 1m", limits);
    let mut writer = world.open(START);
    world.check(START, &[("user", "a")], 1);
    writer.stop(&world.node, &world.trail(), START + MINUTE);
    drop(writer);
    let (earlier, first) = (START - 60 * MINUTE, rows(&world.path()));
    assert_eq!(first.len(), 1);
    let mut writer = world.open(earlier);
    let other = UsageWorld::new("clock-2", "every: 1m", limits);
    other.check(earlier, &[("user", "a")], 2);
    writer.stop(&other.node, &other.trail(), earlier + MINUTE);
    let [UsageLine::Header(header), ..] = &lines(&world.path())[..] else { panic!("no header") };
    assert!(header.previous.is_some(), "the chain goes on");
    let second = rows(&world.path());
    assert_eq!((second.len(), second[0].admitted), (1, 2));
    assert!(second[0].time < first[0].time, "{second:?}");
}

#[test]
fn a_crash_before_a_clock_that_went_back_has_a_gap_without_a_start() {
    let world = UsageWorld::new("clock-crash", "every: 1m", "{name: l, rate: 1/min}");
    drop(world.open(START + MINUTE));
    let (_, earlier) = ChainFile::begin(&world.path(), 60, START).unwrap();
    let earlier = earlier.unwrap();
    assert_eq!(earlier.last_time(), Some("2023-11-14T22:15:00.000000Z"), "the header's");
    let gap = earlier.crash_gap(START);
    assert_eq!((gap.from, &*gap.to), (None, "2023-11-14T22:14:00.000000Z"));
    let gap = earlier.crash_gap(START + 2 * MINUTE);
    assert_eq!(gap.from.as_deref(), earlier.last_time());
}

#[test]
fn two_processes_do_not_share_a_file() {
    let world = UsageWorld::new("lock", "every: 1m", "{name: l, rate: 1/min}");
    let _first = world.open(START);
    let second = UsageWriter::open(&world.settings, &world.folder, START);
    let error = second.expect_err("the first one holds it").to_string();
    assert!(error.contains("another process writes to it"), "{error}");
}

#[test]
fn a_file_that_takes_nothing_costs_rows_and_no_memory() {
    let limits = "{name: l, key: [user], rate: 1000/min}";
    let world = UsageWorld::new("full", "every: 1m", limits);
    let (mut writer, trail) = (world.open(START), world.trail());
    writer.break_file();
    for minute in 0..5 {
        world.check(START + minute * MINUTE, &[("user", "a")], 1);
        writer.write_over(&world.node, &trail, START + (minute + 1) * MINUTE, &mut || {});
        assert!(writer.waiting() <= 1);
    }
    assert_eq!(trail.stats().lost_rows, 4);
    writer.mend_file();
    writer.stop(&world.node, &trail, START + 5 * MINUTE);
    let all = lines(&world.path());
    let gap = all.iter().find_map(|line| match line {
        UsageLine::Gap { gap } => Some(gap.clone()),
        _ => None,
    });
    let gap = gap.expect("the file has a gap");
    assert_eq!(gap.from.as_deref(), Some("2023-11-14T22:14:00.000000Z"));
    assert_eq!(gap.to, "2023-11-14T22:18:00.000000Z");
    assert_eq!((rows(&world.path()).len(), trail.stats().written_rows), (1, 1));
}

#[test]
fn keys_beyond_the_most_are_counted_without_a_name() {
    let limits = "{name: l, key: [user], rate: 1000000/min}";
    for keys_max in [1, 1_000] {
        let usage = format!("every: 1m, max_keys: {keys_max}");
        let world = UsageWorld::new("overflow", &usage, limits);
        let (mut writer, trail) = (world.open(START), world.trail());
        for minute in 0..2 {
            for user in 0..5_000 {
                world.check(START + minute * MINUTE, &[("user", &user.to_string())], 1);
            }
        }
        writer.stop(&world.node, &trail, START + MINUTE);
        let rows = rows(&world.path());
        assert_eq!(rows.iter().map(|row| row.admitted).sum::<u64>(), 10_000, "no unit is lost");
        // Each minute has its own quota.
        let named = rows.iter().filter(|row| row.key.is_some()).count();
        assert_eq!((named, rows.len() - named), (2 * keys_max, 2));
        assert_eq!(trail.stats().overflowed, 10_000 - 2 * keys_max as u64);
    }
}

#[test]
fn control_characters_and_html_stay_inside_their_line() {
    let limits = "{name: l, key: [user], rate: 1000/min, show_keys: true}";
    let world = UsageWorld::new("html", "every: 1m", limits);
    let mut writer = world.open(START);
    let user = "<script>\n{\"x\":1}\u{1b}[2J";
    world.check(START, &[("user", user)], 1);
    writer.stop(&world.node, &world.trail(), START);
    let text = fs::read_to_string(world.path()).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(rows(&world.path())[0].key.as_ref().unwrap()["user"], user);
}

#[test]
fn a_chain_that_ended_between_two_renames_goes_on() {
    let world = UsageWorld::new("renames", "every: 1m", "{name: l, rate: 1/min}");
    let (first, _) = ChainFile::begin(&world.path(), 60, START).unwrap();
    drop(first);
    fs::rename(world.path(), world.folder.join("usage.jsonl.new")).unwrap();
    let (_second, earlier) = ChainFile::begin(&world.path(), 60, START).unwrap();
    assert!(earlier.is_some(), "the file under the other name is the earlier one");
}

/// The writer holds no lock between the blocks of an interval. So decisions can add to every shard
/// meanwhile, and none waits for a disk.
#[test]
fn decisions_go_on_while_an_interval_is_written() {
    const KEYS: u64 = 20_000;
    let world = UsageWorld::new("blocks", "every: 1m", "{name: l, key: [user], rate: 9/h}");
    let (mut writer, trail) = (world.open(START), world.trail());
    let check = |n: u64, at_us| world.check(at_us, &[("user", &format!("user-{n}"))], 1);
    for n in 0..KEYS {
        assert!(check(n, START));
    }
    let (mut blocks, mut next) = (0, 0);
    writer.write_over(&world.node, &trail, START + MINUTE, &mut || {
        blocks += 1;
        // 2,000 keys reach all 256 shards.
        for _ in 0..2_000 {
            assert!(check(next % KEYS, START + MINUTE));
            next += 1;
        }
    });
    assert!(blocks >= 8, "{blocks} blocks for {KEYS} rows");
    assert_eq!(rows(&world.path()).len() as u64, KEYS);
    writer.stop(&world.node, &trail, START + MINUTE + 1);
    let rows = rows(&world.path());
    let admitted = |minute: &str| {
        let rows = rows.iter().filter(|row| row.time.contains(minute));
        rows.map(|row| row.admitted).sum::<u64>()
    };
    assert_eq!((admitted("22:14:00"), admitted("22:15:00")), (KEYS, next));
}
