//! `tollgate simulate`: each file under `tests/cases` has a policy, requests and their results.

mod case;
mod picture;
mod shed;
mod streams;

use case::{Case, RunOutput};
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// Runs the command on a policy and requests.
fn simulate(policy: &str, requests: &str, arguments: &[&str]) -> RunOutput {
    Case::new(policy, requests, arguments).run()
}

#[test]
fn every_case_is_answered_as_it_says() {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 20, "cases are missing");
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = Case::read(&fs::read_to_string(&path).unwrap());
        wrong.extend(case.complaint().map(|complaint| format!("{name}:\n{complaint}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
