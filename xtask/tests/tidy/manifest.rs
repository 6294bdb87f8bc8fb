//! Rules for each `Cargo.toml`.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File, has_word};

/// Banned dependencies, and the reasons.
const BANNED: &[(&str, &str)] = &[
    ("serde_yaml", "unmaintained, and without positions: granit-parser"),
    ("serde_yml", "unsound: granit-parser"),
    ("figment", "one file, one reader: granit-parser"),
    ("moka", "allocates on the hot path"),
    ("quanta", "not monotonic across cores"),
];

/// A dependency in a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    line: String,
}

/// The manifests of the workspace's members, with their folders.
pub(crate) fn members(files: &[File]) -> Vec<(&str, &File)> {
    files
        .iter()
        .filter(|file| file.is_member())
        .filter_map(|file| Some((file.path.strip_suffix("/Cargo.toml")?, file)))
        .collect()
}

/// Every dependency, including those of tests and builds.
pub(crate) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let (mut found, mut section) = (Vec::new(), String::new());
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
            if let Some((table, name)) = section.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                found.push(Dependency { name: name.into(), line: line.into() });
            }
        } else if section.ends_with("dependencies")
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
        {
            found.push(Dependency { name: name.trim().into(), line: line.into() });
        }
    }
    found
}

#[test]
fn manifests_follow_the_workspace() {
    let found = members(tree::files()).into_iter().flat_map(|(_, file)| complaints(file));
    tree::assert_none(&found.collect::<Vec<_>>());
}

#[test]
fn every_dependency_is_used() {
    let rule = "no code of the crate names it: remove it from the manifest";
    ratchet::assert_within("unused-dependency", rule, &unused(tree::files()));
}

fn complaints(manifest: &File) -> Vec<String> {
    let mut found = Vec::new();
    for wanted in ["version", "edition", "rust-version", "license"] {
        if !manifest.text.contains(&format!("{wanted}.workspace = true")) {
            found.push(format!("{}: lacks {wanted}.workspace = true", manifest.path));
        }
    }
    let unpublished = manifest.text.contains("publish.workspace = true");
    let shipped = manifest.path.starts_with("crates/");
    if shipped && unpublished {
        found.push(format!("{}: crates/ ships, so nothing there is unpublished", manifest.path));
    }
    if shipped {
        found.extend(undescribed(manifest));
    } else if !unpublished {
        found.push(format!("{}: lacks publish.workspace = true", manifest.path));
    }
    if !manifest.text.contains("[lints]\nworkspace = true") {
        found.push(format!("{}: does not use the workspace's lints", manifest.path));
    }
    for Dependency { name, line } in dependencies(&manifest.text) {
        if let Some((_, why)) = BANNED.iter().find(|banned| banned.0 == name) {
            found.push(format!("{}: no {name}: {why}", manifest.path));
        }
        let line = line.replace(' ', "");
        let itself = line.contains("path=\".\"");
        if !line.contains("workspace=true") && !line.starts_with('[') && !itself {
            found.push(format!("{}: {name}: versions are in the root manifest", manifest.path));
        }
    }
    found
}

/// The fields that the manifest of a shipped crate needs.
fn undescribed(manifest: &File) -> Vec<String> {
    let wanted =
        ["description = \"", "keywords = [\"", "categories = [\"", "readme = \"README.md\""];
    let lacks = |start: &&str| !manifest.text.lines().any(|line| line.starts_with(start));
    let missing = wanted.iter().filter(|start| lacks(start));
    missing.map(|start| format!("{}: lacks `{start}`", manifest.path)).collect()
}

fn unused(files: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (folder, manifest) in members(files) {
        for Dependency { name, .. } in dependencies(&manifest.text) {
            let word = name.replace('-', "_");
            let inside = |file: &&File| file.path.starts_with(&format!("{folder}/"));
            // Searches the text, comments included: an example in the documentation is a use too.
            if !files.iter().filter(inside).any(|f| f.is_rust() && has_word(&f.text, &word)) {
                found.push(Finding { subject: format!("{folder}:{name}"), amount: 1 });
            }
        }
    }
    found
}

#[test]
fn dependencies_are_read_from_every_table() {
    let manifest = "[dependencies]\na-b.workspace = true\n# c = 1\n\n[target.'cfg(loom)'.dependencies]\n\
        d = { workspace = true }\n[dev-dependencies.e]\nworkspace = true\n[features]\nf = []\n";
    let names: Vec<String> = dependencies(manifest).into_iter().map(|d| d.name).collect();
    assert_eq!(names, ["a-b", "d", "e"]);
}

#[test]
fn a_manifest_of_its_own_mind_is_found() {
    let good = "[package]\ndescription = \"x\"\nkeywords = [\"x\"]\ncategories = [\"x\"]\n\
        readme = \"README.md\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n\
        [lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n";
    let found = |text: &str| complaints(&File::new("crates/x/Cargo.toml", text)).join("\n");
    assert_eq!(found(good), "");
    assert_eq!(found(&format!("{good}x = {{ path = \".\", features = [\"y\"] }}\n")), "");
    assert!(found(&format!("{good}regex = \"1\"\n")).contains("versions are in the root"));
    assert!(found(&format!("{good}serde_yaml.workspace = true\n")).contains("no serde_yaml"));
    assert!(found(&good.replace("[lints]\n", "")).contains("lints"));
    assert!(found(&good.replace("keywords", "key-words")).contains("lacks `keywords"));
    let unpublished = good.replace("license.w", "publish.workspace = true\nlicense.w");
    assert!(found(&unpublished).contains("unpublished"));
    let apart = |text: &str| complaints(&File::new("testing/x/Cargo.toml", text)).join("\n");
    assert_eq!(apart(&unpublished), "");
    assert!(apart(good).contains("lacks publish"));
    assert!(found(&good.replace("edition.w", "edition = '2021' #")).contains("lacks edition"));
}

#[test]
fn an_unused_dependency_is_found() {
    let manifest = File::new("crates/x/Cargo.toml", "[dependencies]\na-b.workspace = true\n");
    let code = |text| File::new("crates/x/src/lib.rs", text);
    let other = File::new("crates/y/src/lib.rs", "use a_b::C;");
    let subject = "crates/x:a-b".to_owned();
    assert_eq!(unused(&[manifest, code("mod c;"), other]), [Finding { subject, amount: 1 }]);
    let manifest = File::new("crates/x/Cargo.toml", "[dependencies]\na-b.workspace = true\n");
    assert_eq!(unused(&[manifest, code("use a_b::C;")]), []);
}
