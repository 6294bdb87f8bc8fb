//! Links of the guides lead to files and headings that are there.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 15] = [
    "README.md",
    "crates/tollgate/src/guide.md",
    "docs/accuracy.md",
    "docs/choosing.md",
    "docs/dashboard.md",
    "docs/envoy.md",
    "docs/exactness.md",
    "docs/forward-auth/README.md",
    "docs/gateway.md",
    "docs/lab.md",
    "docs/recipes/README.md",
    "docs/redis-cell.md",
    "docs/shedding.md",
    "docs/tower.md",
    "docs/tutorial.md",
];

/// The anchors of a page: its headings as GitHub spells them, and those it names itself.
fn anchors(text: &str) -> Vec<String> {
    let prose = text.split("\n```").step_by(2).collect::<String>();
    let headings = prose.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let spelled = headings.map(|heading| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    });
    let named = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    spelled.chain(named.map(str::to_owned)).collect()
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut dead = String::new();
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("::") && !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => root.join(page),
                file => {
                    PathBuf::from(page).parent().map(|folder| root.join(folder).join(file)).unwrap()
                }
            };
            let found = match fs::read_to_string(&path) {
                Ok(text) => anchor.is_empty() || anchors(&text).iter().any(|one| one == anchor),
                // A folder, or a picture.
                Err(_) => path.exists() && anchor.is_empty(),
            };
            if !found {
                dead.push_str(&format!("{page}: {target}\n"));
            }
        }
    }
    assert!(dead.is_empty(), "{dead}");
}
