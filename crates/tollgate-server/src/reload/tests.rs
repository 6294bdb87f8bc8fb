use super::Reloader;
use crate::Node;
use crate::config::Config;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tollgate::engine::limit::Mode;
use tollgate::engine::{GateBuffers, ModeOverride};
use tollgate_observe::ObservedNode;
use tollgate_observe::log::{LogFormat, LogLevel, capture};
use tollgate_observe::metrics::{ExpositionFormat, MetricsSnapshot};

const NOW_US: u64 = 1_700_000_000_000_000;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A folder of files, and a node that runs on its `tollgate.yaml`.
struct World {
    folder: PathBuf,
    node: Arc<Node>,
    reloader: Reloader,
}

impl World {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let process = std::process::id();
        let folder = std::env::temp_dir().join(format!("tollgate-reload-{process}-{name}"));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let config = Config::file(folder.join("tollgate.yaml"));
        let loaded = config.load().unwrap();
        let node = Arc::new(Node::new(loaded.compiled.clone(), loaded.setup()).unwrap());
        let reloader = Reloader::new(
            node.clone(),
            None,
            super::reload_channel(&config).0.shared_origin(),
            config,
            loaded,
        );
        Self { folder, node, reloader }
    }

    /// Renames a file into place.
    fn put(&self, name: &str, text: &str) {
        let next = self.folder.join("next");
        fs::write(&next, text).unwrap();
        fs::rename(&next, self.folder.join(name)).unwrap();
    }

    /// Polls until all changes have settled.
    fn look(&mut self) {
        (0..10).for_each(|_| self.reloader.poll());
    }

    /// The number of admitted requests out of `count` by a user.
    fn admitted(&self, user: &str, count: usize) -> usize {
        let rules = self.node.gate.rules();
        let mut work = GateBuffers::default();
        let mut allowed = || {
            let mut facts = rules.facts(Default::default());
            facts.set("user", user).unwrap();
            rules.identify(&mut facts);
            block_on(self.node.gate.check(&rules, NOW_US, &facts, 1, &mut work)).allowed
        };
        (0..count).filter(|_| allowed()).count()
    }

    /// Successful and failed reloads.
    fn reloads(&self) -> (u64, u64) {
        let text =
            self.node.metrics.exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
        let count = |result: &str| {
            let name = format!("tollgate_reload_total{{result=\"{result}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&name));
            line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
        };
        (count("ok"), count("error"))
    }

    fn detail(&self) -> String {
        let detail = self.node.health.problems();
        detail.iter().map(|(subject, text)| format!("{subject}: {text}\n")).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn policy(rate: &str) -> String {
    format!("limits: [{{name: per-user, key: [user], algorithm: fixed-window, rate: {rate}}}]")
}

#[test]
fn a_changed_file_is_put_in_force_and_counts_stay() {
    let mut world = World::new("changed", &[("tollgate.yaml", &policy("5/h"))]);
    assert_eq!(world.admitted("42", 9), 5);
    world.put("tollgate.yaml", &policy("8/h"));
    world.look();
    assert_eq!(world.admitted("42", 9), 3, "five of the eight were used before");
    assert_eq!((world.reloads(), world.detail().as_str()), ((1, 0), ""));
}

#[test]
fn a_file_that_says_the_same_is_not_reloaded_unless_someone_asks() {
    let mut world = World::new("same", &[("tollgate.yaml", &policy("5/h"))]);
    world.look();
    world.put("tollgate.yaml", &policy("5/h"));
    world.look();
    assert_eq!(world.reloads(), (0, 0));
    let in_force = world.reloader.reload().unwrap();
    assert_eq!((in_force.generation, in_force.limits), (2, 1));
    assert_eq!(world.reloads(), (1, 0));
}

#[test]
fn a_bad_file_leaves_the_last_good_one_and_says_so_once() {
    let mut world = World::new("bad", &[("tollgate.yaml", &policy("5/h"))]);
    world.put("tollgate.yaml", "limits: [{name: per-user, rat: 1/h}]");
    world.look();
    world.look();
    assert_eq!(world.reloads(), (0, 1));
    let detail = world.detail();
    assert!(detail.contains("tollgate.yaml:1:27: error[TG002]: unknown field `rat`"), "{detail}");
    assert_eq!(world.admitted("42", 9), 5);
    assert!(world.reloader.reload().is_err());
    assert_eq!(world.reloads(), (0, 2));

    world.put("tollgate.yaml", &policy("5/h"));
    world.look();
    assert_eq!(world.detail(), "", "the file in force again, so the error is cleared");
    assert_eq!(world.reloads(), (1, 2));
}

#[test]
fn a_file_that_is_gone_leaves_the_last_good_one() {
    let mut world = World::new("gone", &[("tollgate.yaml", &policy("5/h"))]);
    world.look();
    fs::remove_file(world.folder.join("tollgate.yaml")).unwrap();
    world.look();
    assert!(world.detail().contains("policy: cannot read "), "{}", world.detail());
    assert_eq!((world.reloads(), world.admitted("42", 9)), ((0, 1), 5));
}

#[test]
fn a_bad_file_does_not_make_the_node_unready() {
    let mut world = World::new("ready", &[("tollgate.yaml", &policy("5/h"))]);
    world.node.health.set_serving(true);
    world.put("tollgate.yaml", "limits: 7");
    world.look();
    assert!(world.node.health.is_ready() && !world.detail().is_empty());
}

#[test]
fn what_needs_a_restart_is_named_and_the_rest_applies() {
    let mut world = World::new("restart", &[("tollgate.yaml", &policy("5/h"))]);
    let changed = format!(
        "{}\nlisten: {{http: '127.0.0.1:1'}}\nstore: {{memory: {{max_bytes: 1MiB}}}}\nheaders: none",
        policy("7/h")
    );
    world.put("tollgate.yaml", &changed);
    let in_force = world.reloader.reload().unwrap();
    assert_eq!(in_force.restart_for, ["listen", "store"]);
    assert_eq!(world.admitted("42", 9), 7);
    assert_eq!(world.node.file().settings.headers, ["none"]);
    let again = world.reloader.reload().unwrap();
    assert_eq!(again.restart_for, ["listen", "store"], "it is still what it was started with");
}

#[test]
fn a_mode_that_an_operator_set_stays() {
    let mut world = World::new("mode", &[("tollgate.yaml", &policy("5/h"))]);
    world.node.gate.set_overrides(vec![ModeOverride::new("per-user", Mode::Off)]);
    world.put("tollgate.yaml", &policy("6/h"));
    world.look();
    assert_eq!(world.admitted("42", 9), 9);
    world.node.gate.set_overrides(Vec::new());
    assert_eq!(world.admitted("42", 9), 6);
}

const TIERED: &str = "tiers: {file: {path: tiers.yaml}}
limits: [{name: per-user, key: [user], algorithm: fixed-window, rate: 2/h, tiers: {pro: 6/h}}]";

#[test]
fn the_tier_file_is_watched_too() {
    let files = [("tollgate.yaml", TIERED), ("tiers.yaml", "{by: user, map: {'42': pro}}")];
    let mut world = World::new("tiers", &files);
    assert_eq!((world.admitted("42", 9), world.admitted("43", 9)), (6, 2));
    world.put("tiers.yaml", "{by: user, map: {'43': pro}}");
    world.look();
    assert_eq!(world.admitted("43", 9), 4, "two of its six were used before");
    assert_eq!(world.reloads(), (1, 0));

    world.put("tiers.yaml", "{map: {'43': free}}");
    world.look();
    assert!(world.detail().contains("tiers: ") && world.detail().contains("`by` is missing"));
    assert_eq!(world.admitted("44", 9), 2);
    assert_eq!(world.reloads(), (1, 1));
    world.put("tiers.yaml", "{by: user, map: {'45': pro}}");
    world.look();
    assert_eq!((world.detail().as_str(), world.admitted("45", 9)), ("", 6));
}

#[test]
fn tiers_change_while_the_policy_is_bad() {
    let files = [("tollgate.yaml", TIERED), ("tiers.yaml", "{by: user, map: {}}")];
    let mut world = World::new("apart", &files);
    world.put("tollgate.yaml", "limits: 7");
    world.look();
    world.put("tiers.yaml", "{by: user, map: {'42': pro}}");
    world.look();
    assert_eq!(world.admitted("42", 9), 6);
    assert!(world.detail().starts_with("policy: "), "{}", world.detail());
}

#[test]
fn another_tier_file_is_watched_from_when_it_is_named() {
    let files =
        [("tollgate.yaml", policy("2/h")), ("tiers.yaml", "{by: user, map: {'42': pro}}".into())];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let mut world = World::new("named", &files);
    world.put("tollgate.yaml", TIERED);
    world.look();
    assert_eq!(world.admitted("42", 9), 6);
    world.put("tiers.yaml", "{by: user, map: {'43': pro}}");
    world.look();
    assert_eq!(world.admitted("43", 9), 6);
    world.put("tollgate.yaml", &policy("2/h"));
    world.look();
    fs::remove_file(world.folder.join("tiers.yaml")).unwrap();
    world.look();
    assert_eq!(world.detail(), "", "the policy no longer names it");
}

#[test]
fn a_policy_whose_tier_file_is_bad_is_bad() {
    let mut world = World::new("both", &[("tollgate.yaml", &policy("2/h"))]);
    world.put("tollgate.yaml", TIERED);
    world.look();
    assert!(world.detail().contains("error[TG071]: cannot read "), "{}", world.detail());
    assert!(world.detail().contains("tiers.yaml"));
    assert_eq!(world.reloads(), (0, 1));
    world.look();
    assert_eq!(world.reloads(), (0, 1), "it is said once");
    world.put("tiers.yaml", "{by: 7");
    world.look();
    assert_eq!(world.reloads(), (0, 2));
    world.put("tiers.yaml", "{by: user, map: {'42': pro}}");
    world.look();
    assert_eq!((world.detail().as_str(), world.admitted("42", 9)), ("", 6));
    assert_eq!(world.reloads(), (1, 2));
}

#[test]
fn of_a_file_that_is_waited_for_no_more_is_read_than_of_any_other() {
    let mut world = World::new("huge", &[("tollgate.yaml", &policy("2/h"))]);
    let tiers = fs::File::create(world.folder.join("tiers.yaml")).unwrap();
    tiers.set_len(crate::reload::poll::BYTES_MAX * 4).unwrap();
    world.put("tollgate.yaml", TIERED);
    world.look();
    let awaited = world.reloader.blocking_file.as_ref().unwrap();
    assert_eq!(awaited.applied_bytes.len() as u64, crate::reload::poll::BYTES_MAX);
}

#[test]
fn the_headers_of_an_answer_are_of_the_file_that_decided_it() {
    let mut world = World::new("headers", &[("tollgate.yaml", &policy("2/h"))]);
    let under_way = world.node.gate.rules();
    let before = under_way.profiles().to_vec();
    world.put("tollgate.yaml", &format!("{}\nheaders: github", policy("2/h")));
    world.look();
    assert_eq!(under_way.profiles(), before, "a request under way answers as it began");
    let after = world.node.gate.rules().profiles().to_vec();
    assert!(after != before && after.len() == 1, "{after:?}");
}

#[test]
fn a_limit_that_counts_otherwise_keeps_its_overflows() {
    let small = |rate: &str| format!("{}\nstore: {{memory: {{max_bytes: 1MiB}}}}", policy(rate));
    let mut world = World::new("overflow", &[("tollgate.yaml", &small("1/h"))]);
    let overflowed = |world: &World| {
        let page = world.node.snapshot().limits;
        page.iter().map(|limit| limit.overflowed).sum::<u64>()
    };
    let mut user = 0;
    while overflowed(&world) == 0 {
        for n in user..user + 1000 {
            world.admitted(&n.to_string(), 2);
        }
        user += 1000;
    }
    let before = overflowed(&world);
    world.put("tollgate.yaml", &small("1/d"));
    world.look();
    assert_eq!(overflowed(&world), before);
    world.put("tollgate.yaml", &small("1/h"));
    world.look();
    assert_eq!(overflowed(&world), before, "none counts twice");
}

#[test]
fn keys_are_watched_and_bad_ones_change_nothing() {
    const POLICY: &str = "jwt: {keys: secret, algorithms: HS256}\nlimits: []";
    let file = [("tollgate.yaml", POLICY), ("secret", "a secret of thirty-two bytes, ok")];
    let mut world = World::new("keys", &file);
    // The reloader starts with the state that the node was started with.
    world.reloader.reload().unwrap();
    let first = world.node.tokens().unwrap();
    world.put("secret", "another secret of 32 bytes, yes!");
    world.look();
    let second = world.node.tokens().unwrap();
    assert!(!Arc::ptr_eq(&first, &second), "the new keys are in force");
    world.put("secret", "short");
    world.look();
    assert!(Arc::ptr_eq(&second, &world.node.tokens().unwrap()), "the last good ones stay");
    assert!(
        world.detail().contains("keys: ") && world.detail().contains("32 bytes"),
        "{}",
        world.detail()
    );
    world.put("secret", "a third secret of 32 bytes, good");
    world.look();
    assert!(!Arc::ptr_eq(&second, &world.node.tokens().unwrap()));
    assert_eq!(world.detail(), "");
    world.put("tollgate.yaml", "limits: []");
    world.look();
    assert!(world.node.tokens().is_none(), "a file without `jwt` believes no token");
}

/// A map with an unknown tier would silently change nothing for its keys.
#[test]
fn a_tier_that_no_limit_has_leaves_the_map_as_it_was() {
    let policy = TIERED.replace("{file: {path: tiers.yaml}}", "{by: user, file: tiers.yaml}");
    let mut world =
        World::new("unknown", &[("tollgate.yaml", &policy), ("tiers.yaml", "'42': pro\n")]);
    assert_eq!(world.admitted("42", 9), 6);
    world.put("tiers.yaml", "'43': pro\n'44': prp\n");
    world.look();
    let detail = world.detail();
    assert!(detail.contains("tiers.yaml:2:7: error[TG080]"), "{detail}");
    assert!(detail.contains("did you mean `pro`?"), "{detail}");
    assert_eq!((world.admitted("43", 9), world.reloads()), (2, (0, 1)));
    // The tier arrives with another policy, which reloads the map.
    world.put("tollgate.yaml", &policy.replace("{pro: 6/h}", "{pro: 6/h, prp: 3/h}"));
    world.look();
    assert_eq!((world.admitted("44", 9), world.detail().as_str()), (3, ""));
}

#[test]
fn a_reload_removes_all_limits_only_in_writing() {
    let mut world = World::new("gone", &[("tollgate.yaml", &policy("2/h"))]);
    let all_cut_short = ["", "# limits: are below\n", "limits:\n", "listen:\n", "headers: none\n"];
    for (at, cut_short) in (1..).zip(all_cut_short) {
        world.put("tollgate.yaml", cut_short);
        world.look();
        let detail = world.detail();
        assert!(detail.contains("1 is in force") && detail.contains("`limits: []`"), "{detail}");
        assert!(world.reloader.reload().is_err(), "{cut_short:?}");
        assert_eq!(world.reloads(), (0, 2 * at), "{cut_short:?}");
    }
    assert_eq!(world.admitted("42", 9), 2);
    world.put("tollgate.yaml", "limits: []");
    world.look();
    assert_eq!((world.detail().as_str(), world.admitted("42", 9)), ("", 9));
    world.put("tollgate.yaml", "headers: none");
    world.look();
    assert_eq!(world.detail(), "", "there are none to lose");
}

/// The file set and the watch of the refused file would both reload.
#[test]
fn each_bad_edit_of_a_ratelimit_file_is_logged_once() {
    let good =
        "{domain: a, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]}";
    let policy = "envoy: {configs: 'edge.yml'}";
    let mut world = World::new("logged-once", &[("tollgate.yaml", policy), ("edge.yml", good)]);
    world.look();
    for bad in ["domain: ''", "domain: [", "{domain: a, descriptors: 1}"] {
        fs::write(world.folder.join("edge.yml"), bad).unwrap();
        let log = capture(LogFormat::Json, "warn".parse().unwrap(), || world.look());
        assert_eq!(log.matches("not reloaded").count(), 1, "{bad}: {log}");
    }
    fs::write(world.folder.join("edge.yml"), good).unwrap();
    let log = capture(LogFormat::Json, LogLevel::default(), || world.look());
    assert_eq!(log.matches("policy in force").count(), 1, "{log}");
}

#[test]
fn a_shedder_is_no_limit_that_a_reload_could_remove() {
    let shed = "shed: {adaptive: {}}\n";
    let mut world = World::new("shed", &[("tollgate.yaml", shed)]);
    world.put("tollgate.yaml", &format!("{shed}drain: 3s\n"));
    let in_force = world.reloader.reload().unwrap();
    assert_eq!((in_force.generation, in_force.limits), (2, 0));
    assert_eq!((world.reloads(), world.detail().as_str()), ((1, 0), ""));
}
