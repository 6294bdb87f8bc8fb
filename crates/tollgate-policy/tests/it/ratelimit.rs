//! Files of envoyproxy/ratelimit: what is wrong with a bad one, said at its place.

use super::{committed, fixtures};
use tollgate_policy::diagnostic::codes;
use tollgate_policy::envoy::{Configs, Options};

#[test]
fn bad_files_say_what_the_original_says() {
    for path in fixtures("ratelimit/bad") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let files: [(&str, &[u8]); 2] = [("first.yaml", b"domain: already"), (name, &bytes)];
        let bad = Configs::read(&files, Options::default()).expect_err(name);
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

#[test]
fn good_files_are_read_unchanged() {
    for path in fixtures("ratelimit/good") {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let configs = Configs::read(&[(name, &bytes)], Options::default()).expect(name);
        assert!(configs.has_domain("edge") && !configs.has_domain("other"));
        assert!(!configs.rules().is_empty());
    }
}
