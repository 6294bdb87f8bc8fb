//! Files of envoyproxy/ratelimit: errors of bad files, with their positions.

use super::{committed, fixtures};
use tollgate_policy::diagnostic::codes;
use tollgate_policy::envoy::{ConfigOptions, Configs};

#[test]
fn bad_files_say_what_the_original_says() {
    for path in fixtures("ratelimit/bad") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let files: [(&str, &[u8]); 2] = [("first.yaml", b"domain: already"), (name, &bytes)];
        let bad = Configs::read(&files, ConfigOptions::default()).expect_err(name);
        assert!(bad.len() == 1 && bad[0].file == 1, "{name}: {bad:?}");
        let errors = &bad[0].diagnostics;
        let shown: String = errors.iter().map(|error| error.render(name).to_string()).collect();
        for error in errors {
            assert!(!error.help.is_empty(), "{name}: no help for {}", error.code);
            assert!(codes::ALL.iter().any(|known| known.code == error.code), "{}", error.code);
        }
        committed(&path.with_extension("txt"), &shown);
    }
}

/// The original's message for each file, as far as it is deterministic.
const WORDS: [(&str, &str); 18] = [
    ("duplicate-descriptor", "duplicate descriptor composite key 'edge.plan_free.user'"),
    ("duplicate-domain", "duplicate domain 'already' in config file"),
    ("empty-domain", "config file cannot have empty domain"),
    ("empty-key", "descriptor has empty key"),
    ("empty-replaces", "should not have an empty replaces entry"),
    ("fraction", "error checking config"),
    ("key-not-text", "config error, key is not of type string: 4"),
    ("limit-not-a-map", "cannot unmarshal !!str `5/minute` into config.YamlRateLimit"),
    ("list-of-texts", "config error, yaml file contains list of type other than map: a"),
    ("no-domain", "config file cannot have empty domain"),
    ("not-a-map", "cannot unmarshal !!seq into map[interface {}]interface {}"),
    ("not-yaml", "error loading config file: yaml: "),
    ("replaces-itself", "replaces should not contain name of same descriptor"),
    ("share-threshold", "but found key 'a_fixed'"),
    ("types", "cannot unmarshal !!int `4294967296` into uint32"),
    ("unit", "invalid rate limit unit 'fortnight'"),
    ("unknown-key", "config error, unknown key 'ratelimit'"),
    ("unlimited-unit", "should not specify rate limit unit when unlimited"),
];

#[test]
fn every_bad_file_has_the_words_of_the_original() {
    let known: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
    for path in fixtures("ratelimit/bad") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(known.contains(&name), "{name}: what does the original say?");
    }
    for (name, words) in WORDS {
        let shown = std::fs::read_to_string(fixture(name)).unwrap();
        assert!(shown.contains(words), "{name}: {shown}");
        if words.contains("unmarshal") {
            assert!(
                shown.contains("error loading config file: yaml: unmarshal errors: "),
                "{name}"
            );
        }
    }
}

/// The messages for a bad file, which [`bad_files_say_what_the_original_says`] checks.
fn fixture(name: &str) -> std::path::PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/ratelimit/bad");
    std::path::Path::new(folder).join(name).with_extension("txt")
}

#[test]
fn good_files_are_read_unchanged() {
    for path in fixtures("ratelimit/good") {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let configs = Configs::read(&[(name, &bytes)], ConfigOptions::default()).expect(name);
        assert!(configs.has_domain("edge") && !configs.has_domain("other"));
        assert!(!configs.rules().is_empty());
    }
}
