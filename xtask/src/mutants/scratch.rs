//! A copy of the workspace, to be mutated.

use crate::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The copy and its builds. Both stay for the next run, which builds only what changed.
pub(super) struct Scratch {
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
}

impl Scratch {
    /// Brings the copy up to date with the tree, including uncommitted changes. Files that an
    /// interrupted run left mutated differ from the tree, so they are restored.
    pub(super) fn new(root: &Path, folder: &Path) -> Result<Self, Failure> {
        let scratch = Self { tree: folder.join("tree"), target: folder.join("target") };
        let files: BTreeSet<String> = files(root)?.into_iter().collect();
        fs::create_dir_all(&scratch.tree).map_err(|why| failed(&scratch.tree, &why))?;
        for file in &files {
            let text = fs::read(root.join(file)).map_err(|why| failed(Path::new(file), &why))?;
            // Writes only files that differ, since Cargo decides by modification times what to
            // build.
            if fs::read(scratch.tree.join(file)).ok().as_ref() != Some(&text) {
                scratch.write_bytes(file, &text)?;
            }
        }
        remove_others(&scratch.tree, &scratch.tree, &files)
            .map_err(|why| failed(&scratch.tree, &why))?;
        Ok(scratch)
    }

    pub(super) fn read(&self, file: &str) -> Result<String, Failure> {
        fs::read_to_string(self.tree.join(file)).map_err(|why| failed(Path::new(file), &why))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        self.write_bytes(file, text.as_bytes())
    }

    fn write_bytes(&self, file: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.tree.join(file);
        let folder = path.parent().unwrap_or(&self.tree);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|why| failed(&path, &why))
    }
}

/// Returns every file of the tree: tracked, or new and not ignored.
fn files(root: &Path) -> Result<Vec<String>, Failure> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|why| Failure::Failed(format!("cannot run git: {why}")))?;
    if !output.status.success() {
        return Err(Failure::Failed("`git ls-files` failed; mutants need a git checkout".into()));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let exists = |name: &&str| root.join(name).is_file();
    Ok(names.split('\0').filter(|name| !name.is_empty()).filter(exists).map(String::from).collect())
}

fn remove_others(tree: &Path, folder: &Path, keep: &BTreeSet<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(tree, &path, keep)?;
            continue;
        }
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        if !keep.contains(&name) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn failed(path: &Path, why: &std::io::Error) -> Failure {
    Failure::Failed(format!("{}: {why}", path.display()))
}
