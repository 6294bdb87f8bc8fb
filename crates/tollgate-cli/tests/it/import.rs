//! `tollgate import`, and `tollgate check` on files that a policy names.

use super::run;
use std::path::PathBuf;

/// A temporary file that is removed on drop.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn limits_of_limitador_become_a_file_that_checks() {
    let good = "[{namespace: shop, max_value: 10, seconds: 60, variables: [user]}]";
    let file = TempFile::new("limitador.yaml", good);
    let (status, out, err) = run(&["import", "limitador", file.path()], "");
    assert_eq!(status, 0, "{err}");
    assert!(err.ends_with("1 limits imported, 0 left out\n"), "{err}");
    let (status, found, _) = run(&["check", "-"], &out);
    assert_eq!(status, 0, "{found}\n{out}");
    assert!(out.contains("rate: 10/60s"), "{out}");
}

#[test]
fn limits_that_count_alike_are_dropped_as_limitador_does() {
    let twice = "[{namespace: shop, max_value: 10, seconds: 60}, {namespace: shop, max_value: 5, seconds: 60}]";
    let file = TempFile::new("limitador-twice.yaml", twice);
    let (status, out, err) = run(&["import", "limitador", file.path()], "");
    assert_eq!(status, 0, "{err}");
    let line = ":1:49: dropped, as Limitador does: it counts like the limit at 1:2, which wins\n";
    assert!(
        err.contains(line) && err.ends_with("1 limits imported, 0 left out, 1 duplicate dropped\n"),
        "{err}"
    );
    assert!(out.contains("rate: 10/60s") && !out.contains("rate: 5/60s"), "{out}");
}

#[test]
fn what_has_no_equal_is_reported() {
    let bad = "[{namespace: shop, max_value: 10, seconds: 60, conditions: [\"x > 1\"]}]";
    let file = TempFile::new("limitador-bad.yaml", bad);
    let (status, out, err) = run(&["import", "limitador", file.path()], "");
    assert_eq!(status, 1);
    assert!(err.contains(":1:61: left out: the condition `x > 1` has no equal"), "{err}");
    assert_eq!(run(&["check", "-"], &out).0, 0, "{out}");
    assert_eq!(run(&["import", "limitador", "no-such-file"], "").0, 2);
}

#[test]
fn check_looks_at_ratelimit_files_too() {
    let file = TempFile::new("ratelimit.yml", "domain: ''\n");
    let policy = format!("envoy: {{configs: '{}'}}", file.path());
    let (status, out, _) = run(&["check", "-"], &policy);
    assert_eq!(status, 1);
    assert!(
        out.contains("ratelimit.yml:1:9: error[TG070]: config file cannot have empty domain"),
        "{out}"
    );
    let (status, out, _) = run(&["check", "-"], "envoy: {configs: no-such-file.yaml}");
    let said = "-:1:18: error[TG071]: cannot read no-such-file.yaml: ";
    assert!(status == 2 && out.starts_with(said), "{status} {out}");
}

#[test]
fn a_pattern_without_a_file_is_a_warning() {
    let policy = "envoy:\n  configs: ['no-such-folder/*.yaml']\n";
    let (status, out, err) = run(&["check", "-"], policy);
    let said = "-:2:13: warning[TG070]: the pattern `no-such-folder/*.yaml` matches no file";
    assert!(status == 0 && out.starts_with(said), "{status} {out}");
    assert!(err.contains("0 errors, 1 warning"), "{err}");
}

/// The page shows a file, the command and its exact output.
#[test]
fn the_page_for_those_who_come_from_limitador_holds() {
    let page = include_str!("../../../../docs/envoy.md");
    let (_, page) = page.split_once("## In place of Limitador").unwrap();
    let block = |kind: &str| {
        let block = page.split(&format!("```{kind}\n")).nth(1).unwrap();
        block.split("```").next().unwrap()
    };
    let file = TempFile::new("limits.yaml", block("yaml"));
    let (command, said) = block("console").split_once('\n').unwrap();
    assert_eq!(command, "$ tollgate import limitador limits.yaml > tollgate.yaml");
    let (status, out, err) = run(&["import", "limitador", file.path()], "");
    assert_eq!((status, err.replace(file.path(), "limits.yaml").as_str()), (1, said));
    assert_eq!(run(&["check", "-"], &out).0, 0, "{out}");
}
