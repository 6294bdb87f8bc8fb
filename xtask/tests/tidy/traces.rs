//! Nothing in the tree depends on the machine it was written on.

use crate::tree::{self, File};

/// Folders of one machine. Concatenated here, so that this file passes its own check.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Package mirrors depend on the machine; the tree names only packages.
const HOSTS: &[&str] = &[
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("py", "pi.org"),
    concat!("pythonho", "sted.org"),
    concat!("deb.deb", "ian.org"),
    concat!("security.deb", "ian.org"),
    concat!("registry.np", "mjs.org"),
    concat!(".pkg", ".dev"),
    concat!("artifact", "ory."),
];

#[test]
fn no_file_names_a_machine() {
    tree::assert_none(&tree::files().iter().flat_map(complaints).collect::<Vec<_>>());
}

fn complaints(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let names_folder = FOLDERS.iter().any(|folder| {
            // `sub/work/` is a relative path.
            let starts_path = |at: usize| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}*".contains(c))
            };
            line.match_indices(folder).any(|(at, _)| starts_path(at))
        });
        if names_folder {
            found.push(format!("{}:{}: names a folder of one machine", file.path, at + 1));
        }
        if HOSTS.iter().any(|host| line.contains(host)) {
            found.push(format!("{}:{}: names a package registry's host", file.path, at + 1));
        }
    }
    found
}

#[test]
fn a_trace_is_found() {
    let found = |text: &str| complaints(&File::new("docs/a.md", text)).len();
    assert_eq!(found(&format!("see {}notes.md", FOLDERS[0])), 1);
    assert_eq!(found(&format!("HOME={}", FOLDERS[1])), 1);
    assert_eq!(found(&format!("registry = \"https://{}\"", HOSTS[0])), 1);
    assert_eq!(found(&format!("see docs{}notes.md", FOLDERS[0])), 0);
}
