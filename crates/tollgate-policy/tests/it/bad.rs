//! Every error code has a fixture that causes it, with the exact output beside it.

use super::{committed, fixtures};
use std::collections::BTreeSet;
use tollgate_policy::compile;
use tollgate_policy::diagnostic::codes;

#[test]
fn bad_files_say_what_is_wrong() {
    for path in fixtures("bad") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let errors = compile(&std::fs::read(&path).unwrap()).expect_err(name);
        let shown: String = errors.iter().map(|error| error.render(name).to_string()).collect();
        assert!(!shown.contains("hunter2"), "{name} leaks a secret:\n{shown}");
        let code = &name[..5];
        assert!(errors.iter().any(|error| error.code == code), "{name} lacks {code}:\n{shown}");
        for error in &errors {
            assert!(!error.help.is_empty(), "{name}: no help for {}", error.code);
            assert!(codes::ALL.iter().any(|known| known.code == error.code), "{}", error.code);
        }
        committed(&path.with_extension("txt"), &shown);
    }
}

#[test]
fn every_code_has_a_bad_file() {
    let shown: BTreeSet<String> = fixtures("bad")
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap()[..5].to_owned())
        // Codes with fixtures of their own.
        .chain(
            [codes::RATELIMIT_FILE, codes::NAMED_FILE, codes::OUT_OF_DATE]
                .map(|code| code.code.to_owned()),
        )
        .collect();
    let known: BTreeSet<String> = codes::ALL.iter().map(|code| code.code.to_owned()).collect();
    assert_eq!(shown, known, "fixtures on the left, codes on the right");
}

#[test]
fn codes_are_in_order_and_below_the_lints() {
    for pair in codes::ALL.windows(2) {
        assert!(pair[0].code < pair[1].code, "{} is out of order", pair[1].code);
    }
    assert!(codes::ALL.iter().all(|code| ("TG001"..="TG099").contains(&code.code)));
}
