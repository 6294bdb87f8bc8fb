//! `tollgate check`, `tollgate schema`, and a call without a command.

use super::run;
use crate::serve::process::{Folder, Process};
use serde_json::Value;

#[test]
fn a_good_file_ends_with_0() {
    let (status, out, err) = run(&["check", "good/design.yaml"], "");
    assert_eq!(status, 0, "{out}{err}");
    assert!(!out.contains("error["), "{out}");
    assert!(err.starts_with("0 errors, "), "{err}");
}

#[test]
fn the_file_may_be_named_as_for_other_commands() {
    let (status, _, err) = run(&["check", "--config", "good/design.yaml"], "");
    assert!(status == 0 && err.ends_with("in 1 file\n"), "{err}");
}

#[test]
fn errors_go_to_standard_output_and_end_with_1() {
    let (status, out, err) = run(&["check", "bad/TG002-algoritm.yaml"], "");
    assert_eq!(status, 1);
    assert!(
        out.contains(
            "bad/TG002-algoritm.yaml:3:5: error[TG002]: unknown field `algoritm`, did you mean `algorithm`?\n\
             help: write `algorithm`\n"
        ),
        "{out}"
    );
    assert!(err.starts_with("1 error, "), "{err}");
}

#[test]
fn warnings_alone_end_with_0_unless_they_are_denied() {
    let file = "lint/TG111-fires.yaml";
    let (status, out, err) = run(&["check", file], "");
    assert_eq!(status, 0);
    assert!(out.starts_with("lint/TG111-fires.yaml:4:20: warning[TG111]: "), "{out}");
    assert!(out.contains("\nhelp: "), "{out}");
    assert!(err.starts_with("0 errors, 1 warning in 1 file"), "{err}");
    assert_eq!(run(&["check", "--deny", "warnings", file], "").0, 1);
    assert_eq!(run(&["check", "--deny", "warnings", "lint/TG111-quiet.yaml"], "").0, 0);
    let (status, out, _) = run(&["check", "--format", "json", file], "");
    let rows: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &rows[0]["severity"]), (0, &Value::from("warning")));
    assert_eq!((&rows[0]["code"], &rows[0]["line"]), (&Value::from("TG111"), &Value::from(4)));
}

#[test]
fn an_accepted_warning_is_not_one() {
    let file = |allow: &str| {
        format!("lint: {{allow: [{allow}]}}\nlimits: [{{name: a, key: [ip], rate: 5/s}}]\n")
    };
    assert_eq!(run(&["check", "--deny", "warnings", "-"], &file("")).0, 1);
    assert_eq!(run(&["check", "--deny", "warnings", "-"], &file("TG101")).0, 0);
}

#[test]
fn a_file_with_errors_is_not_linted() {
    let (status, out, _) = run(&["check", "-"], "limits: [{name: a, key: [ip], rate: 5}]\n");
    assert_eq!(status, 1);
    assert!(!out.contains("warning"), "{out}");
}

#[test]
fn every_file_is_looked_at() {
    let (status, out, err) =
        run(&["check", "bad/TG003-duplicate.yaml", "bad/TG041-gateway.yaml"], "");
    assert_eq!(status, 1);
    assert!(out.contains("TG003-duplicate.yaml:4:5: error[TG003]"), "{out}");
    assert!(out.contains("TG041-gateway.yaml:1:10: error[TG041]"), "{out}");
    assert!(err.contains("2 errors") && err.contains("in 2 files"), "{err}");
}

#[test]
fn an_unreadable_file_ends_with_2_and_the_others_are_still_looked_at() {
    let (status, out, err) = run(&["check", "absent.yaml", "bad/TG041-gateway.yaml"], "");
    assert_eq!(status, 2);
    assert!(out.contains("TG041"), "{out}");
    assert!(err.contains("cannot read absent.yaml"), "{err}");
    assert_eq!(run(&["check", "good"], "").0, 2, "a folder is not a file");
}

#[test]
fn a_dash_reads_standard_input() {
    let (status, out, _) = run(&["check", "-"], "drain: 5\n");
    assert_eq!(status, 1);
    assert!(out.starts_with("-:1:8: error[TG011]"), "{out}");
    assert_eq!(run(&["check", "-"], "").0, 0, "an empty file is valid");
}

#[test]
fn json_is_one_array() {
    let (status, out, _) = run(&["check", "--format", "json", "bad/TG002-algoritm.yaml"], "");
    assert_eq!(status, 1);
    let rows: Value = serde_json::from_str(&out).unwrap();
    let expected = serde_json::json!({
        "file": "bad/TG002-algoritm.yaml",
        "line": 3,
        "column": 5,
        "severity": "error",
        "code": "TG002",
        "message": "unknown field `algoritm`, did you mean `algorithm`?",
        "help": "write `algorithm`",
    });
    let errors: Vec<&Value> =
        rows.as_array().unwrap().iter().filter(|row| row["severity"] == "error").collect();
    assert_eq!(errors, [&expected]);
    let (status, out, _) = run(&["check", "--format", "json", "-"], "");
    assert_eq!((status, out.as_str()), (0, "[]\n"));
}

#[test]
fn the_schema_is_the_committed_one() {
    let (status, out, _) = run(&["schema"], "");
    assert_eq!((status, out.as_str()), (0, tollgate_policy::SCHEMA));
}

#[test]
fn the_openapi_description_is_the_committed_one() {
    let (status, out, _) = run(&["schema", "--openapi"], "");
    assert_eq!(status, 0);
    let committed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/tollgate-server/src/front/http/openapi.json"
    );
    assert_eq!(out, std::fs::read_to_string(committed).unwrap());
}

#[test]
fn what_is_no_command_is_refused_and_help_names_those_there_are() {
    assert_eq!(run(&["chek"], "").0, 2);
    let (status, help, _) = run(&["--help"], "");
    assert!(
        status == 0 && help.contains("tollgate check") && help.contains("Exit status"),
        "{help}"
    );
}

#[test]
fn without_a_file_it_is_the_one_that_is_there_and_says_so() {
    let check = |folder: &Folder| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let output = command.arg("check").current_dir(&folder.0).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, out, error) = check(&Folder::with("check-here", "drain: 5"));
    assert_eq!(status, Some(1));
    assert!(out.starts_with("tollgate.yaml:1:8: error[TG011]"), "{out}");
    assert!(error.starts_with("checking ./tollgate.yaml\n1 error"), "{error}");
    let (status, out, error) = check(&Folder::new("check-nothing"));
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("no ./tollgate.yaml here"), "{error}");
}

/// `check` reports what `serve` would refuse, at its position in the tier file.
#[test]
fn tier_files_are_looked_at() {
    let policy = "tiers: {by: api_key, file: tiers.yaml}
limits: [{name: a, key: [api_key], on_missing: refuse, rate: 5/min, tiers: {pro: 9/min}}]";
    let folder = Folder::with("check-tiers", policy);
    let path = folder.0.join("tollgate.yaml");
    let check = |tiers: &str| {
        std::fs::write(folder.0.join("tiers.yaml"), tiers).unwrap();
        run(&["check", path.to_str().unwrap()], "")
    };
    let (status, out, _) = check("key-1: pro\nkey-2: prp\nsha256:hunter2: pro\n");
    assert_eq!(status, 1);
    for part in [
        "tiers.yaml:2:8: error[TG080]: no limit has the tier `prp`",
        "tiers.yaml:3:1: error[TG081]",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("hunter2"), "{out}");
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    assert_eq!(process.end().code(), Some(1), "{:#?}", process.lines);
    assert_eq!(check("key-1: pro\n").0, 0);
}
