use super::{expand_glob, wildcard_matches};
use crate::config::{Config, ConfigErrorKind};
use std::path::{Path, PathBuf};

/// A folder that is removed after its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const GOOD: &str =
    "{domain: edge, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 3}}]}";

#[test]
fn stars_stand_for_runs_within_a_name() {
    for (pattern, name, is_fit) in [
        ("*.yaml", "a.yaml", true),
        ("*.yaml", ".yaml", true),
        ("*.yaml", "a.yml", false),
        ("a*b*c", "abc", true),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("*", "", true),
    ] {
        assert_eq!(wildcard_matches(pattern, name), is_fit, "{pattern} {name}");
    }
}

#[test]
fn patterns_name_files_in_order_and_paths_themselves() {
    let folder = Folder::new("expand");
    for name in ["b/x.yaml", "a/y.yaml", "a/x.yaml", "a/.hidden.yaml", "a/deep/x.yaml", "a/x.txt"] {
        folder.write(name, "");
    }
    let names = |pattern: &str| -> Vec<PathBuf> {
        let found = expand_glob(&folder.0.join(pattern)).unwrap();
        found.iter().map(|path| path.strip_prefix(&folder.0).unwrap().to_owned()).collect()
    };
    assert_eq!(names("*/*.yaml"), ["a/x.yaml", "a/y.yaml", "b/x.yaml"].map(Path::new));
    assert_eq!(names("a/*"), ["a/x.txt", "a/x.yaml", "a/y.yaml"].map(Path::new), "no folders");
    assert_eq!(names("nothing/*.yaml"), [] as [&Path; 0]);
    assert_eq!(names("nothing.yaml"), [Path::new("nothing.yaml")]);
}

#[test]
fn files_are_found_beside_the_policy_and_errors_name_them() {
    let folder = Folder::new("ratelimit");
    let policy = folder.write("tollgate.yaml", "envoy: {configs: ['ratelimit/*.yaml']}");
    let config = Config::file(&policy);
    assert!(config.load().unwrap().ratelimit.unwrap().configs.rules().is_empty(), "none yet");
    folder.write("ratelimit/edge.yaml", GOOD);
    let loaded = config.load().unwrap().ratelimit.unwrap();
    assert_eq!(loaded.configs.rules().len(), 1);
    let bad = folder.write("ratelimit/worse.yaml", "domain: edge");
    let error = config.load().unwrap_err();
    assert!(matches!(&error.kind, ConfigErrorKind::Ratelimit(_)) && error.is_invalid());
    assert_eq!(error.file, bad);
    let text = error.to_string();
    assert!(text.contains("worse.yaml:1:9: error[TG070]: duplicate domain 'edge'"), "{text}");
    std::fs::write(&policy, "envoy: {configs: missing.yaml}").unwrap();
    let error = config.load().unwrap_err();
    assert!(
        matches!(error.kind, ConfigErrorKind::NamedFile(..))
            && error.file.ends_with("missing.yaml")
    );
}

#[test]
fn what_changes_is_noticed_once_it_has_settled() {
    let folder = Folder::new("watched");
    let policy = folder.write("tollgate.yaml", "envoy: {configs: ['*.yml']}");
    folder.write("edge.yml", GOOD);
    let loaded = Config::file(&policy).load().unwrap();
    let mut watched = loaded.ratelimit.unwrap().watch();
    let changes =
        |watched: &mut super::WatchedRatelimitFiles| (0..20).filter(|_| watched.poll()).count();
    assert_eq!(changes(&mut watched), 0, "it is in force already");
    folder.write("more.yml", "domain: more");
    assert_eq!(changes(&mut watched), 1, "one came");
    folder.write("edge.yml", &GOOD.replace('3', "44"));
    assert_eq!(changes(&mut watched), 1, "one was written");
    std::fs::remove_file(folder.0.join("more.yml")).unwrap();
    assert_eq!(changes(&mut watched), 1, "one went");
}
