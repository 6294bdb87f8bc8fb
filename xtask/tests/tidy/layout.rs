//! The crates, and their dependencies: only downward.

use crate::manifest::{dependencies, members};
use crate::tree::{self, File};

/// Each crate, and the crates below it. A crate that does not exist yet may be listed.
const LAYOUT: &[(&str, &[&str])] = &[
    ("tollgate-faults", &[]),
    ("tollgate-logs", &[]),
    ("tollgate-picture", &[]),
    ("tollgate-core", &[]),
    ("tollgate-policy", &["tollgate-core"]),
    ("tollgate-store", &["tollgate-core"]),
    ("tollgate-client", &["tollgate-core"]),
    ("tollgate", &["tollgate-core", "tollgate-policy", "tollgate-store"]),
    ("tollgate-tower", &["tollgate", "tollgate-core", "tollgate-policy", "tollgate-store"]),
    (
        "tollgate-net",
        &["tollgate", "tollgate-core", "tollgate-policy", "tollgate-store", "tollgate-tower"],
    ),
    (
        "tollgate-observe",
        &[
            "tollgate",
            "tollgate-core",
            "tollgate-net",
            "tollgate-policy",
            "tollgate-store",
            "tollgate-tower",
        ],
    ),
    (
        "tollgate-server",
        &[
            "tollgate",
            "tollgate-core",
            "tollgate-net",
            "tollgate-observe",
            "tollgate-policy",
            "tollgate-store",
            "tollgate-tower",
        ],
    ),
    (
        "tollgate-cli",
        &[
            "tollgate",
            "tollgate-core",
            "tollgate-logs",
            "tollgate-net",
            "tollgate-observe",
            "tollgate-picture",
            "tollgate-policy",
            "tollgate-server",
            "tollgate-store",
            "tollgate-tower",
        ],
    ),
    ("tollgate-accuracy", &["tollgate", "tollgate-core", "tollgate-logs", "tollgate-picture"]),
    ("xtask", &[]),
];

/// The fault injector. Crates may use it in tests only.
const HARNESS: &str = "tollgate-faults";
/// The crates that every crate may use in tests: the fault injector, and the drawing of pictures.
const FOR_TESTS: &[&str] = &[HARNESS, "tollgate-picture"];

/// Separate workspaces, so that their dependencies stay out of the product's lock file.
const APART: &[&str] = &["bench", "fuzz"];

#[test]
fn dependencies_point_downward() {
    let found = members(tree::files()).into_iter().flat_map(|(dir, file)| complaints(dir, file));
    tree::assert_none(&found.collect::<Vec<_>>());
}

#[test]
fn benchmarks_and_fuzzing_are_apart() {
    let manifest = |folder: &str| {
        let path = format!("{folder}/Cargo.toml");
        tree::files().iter().find(|file| file.path == path)
    };
    let present = APART.iter().filter_map(|folder| manifest(folder));
    tree::assert_none(&present.filter_map(not_apart).collect::<Vec<_>>());
}

fn complaints(folder: &str, manifest: &File) -> Vec<String> {
    let name = folder.rsplit_once('/').map_or(folder, |(_, name)| name);
    let Some((_, below)) = LAYOUT.iter().find(|known| known.0 == name) else {
        return vec![format!("{folder}: has no place in the layout; see layout.rs")];
    };
    let mut found = Vec::new();
    if !manifest.text.contains(&format!("name = \"{name}\"")) {
        found.push(format!("{folder}: the package is not named as its folder"));
    }
    let known = |name: &str| LAYOUT.iter().any(|known| known.0 == name);
    for dependency in dependencies(&manifest.text) {
        let lower = dependency.name.as_str();
        let shipped = manifest.text.split("\n[dev-dependencies]").next().unwrap_or_default();
        let for_tests = FOR_TESTS.contains(&lower) && !shipped.contains(lower);
        // A crate may depend on itself in tests, to enable a feature.
        if known(lower) && lower != name && !below.contains(&lower) && !for_tests {
            found.push(format!("{name} depends on {lower}, which is not below it"));
        }
    }
    found
}

fn not_apart(manifest: &File) -> Option<String> {
    let apart = manifest.text.lines().any(|line| line.trim() == "[workspace]");
    (!apart).then(|| format!("{}: needs a [workspace] table of its own", manifest.path))
}

#[test]
fn an_upward_dependency_is_found() {
    let found = |folder: &str, dependency: &str| {
        let name = folder.strip_prefix("crates/").unwrap_or(folder);
        let text = format!(
            "[package]\nname = \"{name}\"\n[dev-dependencies]\n{dependency}.workspace = true\n"
        );
        complaints(folder, &File::new(&format!("{folder}/Cargo.toml"), &text)).len()
    };
    assert_eq!(found("crates/tollgate-store", "tollgate-core"), 0);
    assert_eq!(found("crates/tollgate-store", "tollgate-store"), 0);
    assert_eq!(found("crates/tollgate-core", "tollgate-store"), 1);
    assert_eq!(found("crates/tollgate-store", "tollgate-policy"), 1, "beside is not below");
    assert_eq!(found("crates/tollgate-client", "tollgate"), 1);
    assert_eq!(found("crates/tollgate-tower", "tollgate-server"), 1);
    assert_eq!(found("crates/tollgate-cli", "tollgate-server"), 0);
    assert_eq!(found("crates/tollgate-extra", "tollgate-core"), 1, "a crate without a place");
    assert_eq!(found("crates/tollgate-store", HARNESS), 0, "in tests");
    let shipped =
        "[package]\nname = \"tollgate\"\n[dependencies]\ntollgate-faults.workspace = true\n";
    let manifest = File::new("crates/tollgate/Cargo.toml", shipped);
    assert_eq!(complaints("crates/tollgate", &manifest).len(), 1, "not in what ships");
}

#[test]
fn the_layout_itself_points_downward() {
    for (at, (name, below)) in LAYOUT.iter().enumerate() {
        for lower in *below {
            let known = LAYOUT[..at].iter().any(|earlier| earlier.0 == *lower);
            assert!(known, "{name} is listed before {lower}, which is below it");
        }
    }
}

#[test]
fn a_benchmark_inside_the_workspace_is_found() {
    let with = |text| not_apart(&File::new("bench/Cargo.toml", text)).is_some();
    assert!(with("[package]\nname = \"bench\"\n"));
    assert!(!with("[workspace]\n[package]\nname = \"bench\"\n"));
}
