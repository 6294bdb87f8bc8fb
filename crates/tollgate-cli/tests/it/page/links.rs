//! Links in the guides lead to existing files and headings.

use std::fs;
use std::path::{Path, PathBuf};

/// README, the crates' guides and every page below `docs/`, from the root of the repository.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = vec!["README.md".into(), "crates/tollgate/src/guide.md".into()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            match path.extension() {
                _ if root.join(&path).is_dir() => folders.push(path),
                Some(extension) if extension == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The anchors of a page: its headings as GitHub spells them, and explicit ones.
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
fn the_index_names_every_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let index = fs::read_to_string(root.join("docs/README.md")).unwrap();
    for page in pages(&root).iter().filter_map(|page| page.strip_prefix("docs").ok()) {
        let is_index = page.ends_with("README.md") && page.components().count() == 1;
        let is_listed = index.contains(&format!("({})", page.display()));
        assert!(is_index || is_listed || page.starts_with("decisions"), "{}", page.display());
    }
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut dead = String::new();
    for page in pages(&root) {
        let text = fs::read_to_string(root.join(&page)).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("::") && !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => root.join(&page),
                file => root.join(&page).with_file_name("").join(file),
            };
            let found = match fs::read_to_string(&path) {
                Ok(text) => anchor.is_empty() || anchors(&text).iter().any(|one| one == anchor),
                // A folder, or a picture.
                Err(_) => path.exists() && anchor.is_empty(),
            };
            if !found {
                dead.push_str(&format!("{}: {target}\n", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead}");
}
