use super::{ConfigOptions, Configs, Unit};
use crate::limit::{Counting, Mode, OnStoreFailure};

const FILE: &[u8] = include_bytes!("../../tests/fixtures/ratelimit/good/everything.yaml");

fn configs() -> Configs {
    Configs::read(&[("edge.yaml", FILE)], ConfigOptions::default()).unwrap()
}

/// Returns the requests per unit and the key that `find` yields for a descriptor.
fn found(entries: &[(&str, &str)]) -> Option<(u32, Vec<u8>)> {
    let (configs, mut key) = (configs(), Vec::new());
    let rule = configs.find("edge", entries, &mut key)?;
    Some((configs.rules()[rule].requests_per_unit, key))
}

#[test]
fn exact_values_come_before_patterns_and_patterns_before_none() {
    let of = |value| found(&[("path", value)]).map(|found| found.0);
    assert_eq!(of("/api/login"), Some(2), "exact, though last in the file");
    assert_eq!(of("/api/users"), Some(0), "the first pattern that fits");
    assert_eq!(of("/api/"), Some(0), "a star may be nothing");
    assert_eq!(of("/other"), Some(3));
    assert_eq!(of(""), Some(3), "a star matches an empty value, as in the original");
}

#[test]
fn only_the_end_of_the_path_counts() {
    assert_eq!(found(&[("plan", "free")]).unwrap().0, 10);
    assert_eq!(found(&[("plan", "free"), ("user", "ann")]).unwrap().0, 100);
    assert!(found(&[("plan", "free"), ("user", "ann"), ("more", "x")]).is_none(), "too deep");
    assert!(found(&[("user", "ann")]).is_none(), "not at the top");
    assert!(found(&[("plan", "pro")]).is_none());
    assert!(found(&[("empty", "x")]).is_none(), "no limit there");
    assert!(found(&[]).is_none());
    assert!(configs().find("other", &[("plan", "free")], &mut Vec::new()).is_none());
}

#[test]
fn every_value_has_its_own_count_unless_it_is_shared() {
    let key = |entries: &[(&str, &str)]| found(entries).unwrap().1;
    assert_ne!(key(&[("path", "/a")]), key(&[("path", "/b")]));
    assert_eq!(key(&[("path", "/api/a")]), key(&[("path", "/api/b")]), "share_threshold");
    let user = |name| key(&[("plan", "free"), ("user", name)]);
    assert_ne!(user("ann"), user("bob"));
}

#[test]
fn descriptors_that_the_original_confuses_stay_apart() {
    let (configs, mut key) = (configs(), Vec::new());
    let mut state = |entry| {
        let rule = configs.find("edge", &[entry], &mut key).unwrap();
        let limit = configs.rules()[rule].limit.clone().unwrap();
        (limit.name.clone(), limit.state_id(&limit.params.unwrap()), key.clone())
    };
    let (one, other) = (state(("a_b", "c")), state(("a", "b_c")));
    assert_eq!((&*one.0, &*other.0), ("edge.a_b_c", "edge.a_b_c#2"));
    assert_ne!(one.1, other.1);
}

#[test]
fn a_limit_is_replaced_by_whoever_names_it() {
    let (configs, mut key) = (configs(), Vec::new());
    let mut find = |entries: &[(&str, &str)]| configs.find("edge", entries, &mut key).unwrap();
    let (free, user) = (find(&[("plan", "free")]), find(&[("plan", "free"), ("user", "ann")]));
    assert!(configs.is_replaced(free, [free, user]));
    assert!(!configs.is_replaced(free, [free]));
    assert!(!configs.is_replaced(user, [free, user]), "it has no name");
}

#[test]
fn limits_are_what_the_options_say() {
    let all = configs();
    let limit = |n: usize| all.rules()[n].limit.clone().unwrap();
    assert_eq!((limit(0).mode, limit(1).mode), (Mode::Shadow, Mode::Enforce));
    assert!(all.rules()[2].limit.is_none() && all.rules()[2].unit.is_none(), "unlimited");
    assert!(all.rules().iter().any(|rule| rule.quota));
    assert_eq!(limit(0).counting, Counting::Requested);
    let options = ConfigOptions { strict: true, on_store_failure: OnStoreFailure::Closed };
    let strict = Configs::read(&[("edge.yaml", FILE)], options).unwrap();
    let limit = strict.rules()[0].limit.clone().unwrap();
    assert_eq!(
        (limit.counting, limit.on_store_failure),
        (Counting::Admitted, OnStoreFailure::Closed)
    );
    let debt = b"{domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, debt: true}}]}";
    let owing = Configs::read(&[("debt.yaml", debt)], options).unwrap();
    assert_eq!(owing.rules()[0].limit.clone().unwrap().counting, Counting::Debt);
}

#[test]
fn units_are_those_of_the_protocol() {
    for unit in Unit::ALL {
        assert_eq!(Unit::of_number(unit as i32), Some(unit));
        assert_eq!(Unit::parse(&unit.name().to_lowercase()), Some(unit));
        assert_eq!(Unit::of_period_us(unit.period_us()), Some(unit));
    }
    assert_eq!(
        (Unit::parse("unknown"), Unit::of_number(0), Unit::of_number(8)),
        (None, None, None)
    );
    assert_eq!(Unit::Month.period_us(), 30 * Unit::Day.period_us());
    assert_eq!(Unit::Year.period_us(), 365 * Unit::Day.period_us());
}

/// Reads a file whose one limit is `depth` descriptors deep.
fn nested(depth: usize) -> Result<Configs, Vec<super::InvalidConfig>> {
    let mut text = "domain: edge\n".to_owned();
    for level in 0..depth {
        let indent = "  ".repeat(level);
        text += &format!("{indent}descriptors:\n{indent}- key: k{level}\n");
    }
    text += &format!("{}rate_limit: {{unit: day, requests_per_unit: 7}}\n", "  ".repeat(depth));
    Configs::read(&[("edge.yaml", text.as_bytes())], ConfigOptions::default())
}

#[test]
fn descriptors_nest_as_deep_as_a_request_has_entries() {
    let names: Vec<String> = (0..64).map(|level| format!("k{level}")).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
    let configs = nested(64).unwrap();
    let rule = configs.find("edge", &entries, &mut Vec::new()).unwrap();
    assert_eq!(configs.rules()[rule].requests_per_unit, 7);
    // The deepest metadata that is read. Any result will do, as long as a small stack does not
    // overflow.
    let lists = format!("domain: edge\nmetadata: {}{}\n", "[".repeat(158), "]".repeat(158));
    let _ = Configs::read(&[("edge.yaml", lists.as_bytes())], ConfigOptions::default());
    let bad = nested(300).unwrap_err();
    let said = &bad[0].diagnostics[0];
    assert_eq!(said.code, "TG007");
    assert!(said.message.contains("nested too deeply"), "{}", said.message);
    assert!(said.help.contains("160 levels"), "{}", said.help);
}
