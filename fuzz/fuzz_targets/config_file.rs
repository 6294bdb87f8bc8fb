//! Any file as `tollgate.yaml`. Nothing panics, and memory is bounded. Reading the file twice gives
//! the same result, every finding points into the file, and a file without errors is a policy that
//! selects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::{Policy, PolicyOptions, Selection};
use tollgate_policy::settings::TierSource;
use tollgate_policy::{Compiled, Diagnostic, compile, lint};

/// Values to try for every attribute: text, an address, paths.
const VALUES: [&str; 5] = ["42", "203.0.113.7", "2001:db8::1", "/api/x", "/a/../%2f//b?c"];
/// Aliases repeat their anchors, within bounds that do not depend on the size of the file.
const BYTES_MAX: u64 = 64 << 20;

fuzz_target!(|input: &[u8]| {
    let mut read = None;
    let cost = allocation_counter::measure(|| read = Some(compile(input)));
    assert!(cost.bytes_max <= BYTES_MAX, "{} bytes for {}", cost.bytes_max, input.len());
    match (read, compile(input)) {
        (Some(Ok(compiled)), Ok(again)) => {
            assert_eq!(format!("{compiled:?}"), format!("{again:?}"));
            let warnings = lint(&compiled);
            assert_eq!(warnings, lint(&again));
            point_into(input, &warnings);
            selects(compiled);
        }
        (Some(Err(errors)), Err(again)) => {
            assert!(!errors.is_empty());
            assert_eq!(errors, again);
            point_into(input, &errors);
        }
        (read, again) => panic!("{read:?}, then {again:?}"),
    }
});

fn point_into(input: &[u8], found: &[Diagnostic]) {
    let breaks = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = String::from_utf8_lossy(input).split(breaks).count();
    for diagnostic in found {
        assert!(diagnostic.line >= 1 && diagnostic.column >= 1 && !diagnostic.message.is_empty());
        assert!(diagnostic.line as usize <= lines + 1, "line {} of {lines}", diagnostic.line);
    }
    assert!(found.is_sorted_by_key(|diagnostic| (diagnostic.line, diagnostic.column)));
}

/// A file that compiles is a policy that can select limits for any request.
fn selects(compiled: Compiled) {
    let Compiled { settings, limits, .. } = compiled;
    let mut options = PolicyOptions::default();
    options.ipv6_prefix = settings.client_address.ipv6_prefix;
    options.default_tier = settings.tiers.default.as_deref().map(String::from);
    if let Some(TierSource::Attribute(name)) = &settings.tiers.source {
        options.tier_attribute = Some(name.to_string());
    }
    let policy = match Policy::new(limits, options) {
        Ok(policy) => policy,
        // Later errors would have no position in the file.
        Err(why) => panic!("it has no errors, but {why}"),
    };
    let mut selection = Selection::default();
    for value in VALUES {
        let mut facts = policy.facts(Default::default());
        for (id, _) in policy.attributes() {
            let _ = facts.set_id(id, value);
        }
        for cost in [0, 1, u64::MAX] {
            policy.select(&facts, cost, &mut selection);
            assert_eq!(policy.selected(&selection).count(), selection.len());
            assert!(policy.selected(&selection).is_sorted_by_key(|selected| selected.index));
            for selected in policy.selected(&selection) {
                assert_ne!(selected.limit.mode, Mode::Off);
                assert_eq!(policy.position(&selected.limit.name), Some(selected.index));
                assert_eq!(policy.tier_params()[selected.params_index].id, selected.id);
            }
        }
    }
}
