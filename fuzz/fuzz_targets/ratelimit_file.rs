//! Any file as a file of envoyproxy/ratelimit. Nothing panics, and memory is bounded. Reading the
//! file twice gives the same result, every finding points into the file, and every limit can be
//! looked up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::envoy::{Configs, ConfigOptions};
use tollgate_policy::import::limitador;

/// Aliases repeat their anchors, within bounds that do not depend on the size of the file.
const BYTES_MAX: u64 = 64 << 20;
/// Values to try with every key.
const VALUES: [&str; 5] = ["", "*", "a", "b_c", "/api/x"];

fuzz_target!(|input: &[u8]| {
    let files = [("fuzzed.yaml", input)];
    let mut read = None;
    let cost = allocation_counter::measure(|| {
        read = Some(Configs::read(&files, ConfigOptions::default()));
    });
    assert!(cost.bytes_max <= BYTES_MAX, "{} bytes for {}", cost.bytes_max, input.len());
    match (read, Configs::read(&files, ConfigOptions::default())) {
        (Some(Ok(configs)), Ok(again)) => {
            assert_eq!(format!("{configs:?}"), format!("{again:?}"));
            look_up(&configs);
        }
        (Some(Err(bad)), Err(again)) => {
            assert_eq!(bad, again);
            let found = &bad[0].diagnostics;
            assert!(found.iter().all(|one| one.line >= 1 && one.column >= 1));
            assert!(!found.is_empty() && found.is_sorted_by_key(|one| (one.line, one.column)));
        }
        (read, again) => panic!("{read:?}, then {again:?}"),
    }
    if let Ok(imported) = limitador(input) {
        let compiled = tollgate_policy::compile(imported.text.as_bytes());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{}\n{errors:?}", imported.text));
        assert_eq!(compiled.limits.len(), imported.limits);
    }
});

/// The path of each limit finds that limit, for any values.
fn look_up(configs: &Configs) {
    let mut key = Vec::new();
    for rule in configs.rules() {
        let Some(limit) = &rule.limit else { continue };
        let (domain, path) = limit.key.split_first().expect("a domain");
        for value in VALUES {
            let entries: Vec<(&str, &str)> = path
                .chunks(2)
                .map(|pair| (&*pair[0], if pair[1].is_empty() { value } else { &*pair[1] }))
                .collect();
            if let Some(found) = configs.find(domain, &entries, &mut key) {
                assert!(found < configs.rules().len());
                assert!(!key.is_empty() || entries.is_empty());
            }
        }
    }
}
