//! The SBOM in CycloneDX 1.5: every crate in the program, with its checksum.

use super::text_of;
use crate::{Failure, process};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The SBOM as JSON, without a timestamp, so that two builds are equal.
pub(super) fn sbom(root: &Path) -> Result<String, Failure> {
    let mut tree = process::cargo();
    tree.args(["tree", "--locked", "--package", "tollgate-cli", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--no-dedupe", "--format", "{p}"]);
    let tree = text_of(&mut tree)?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| Failure::Failed(format!("cannot read Cargo.lock: {error}")))?;
    Ok(render(&parts(&tree), &checksums(&lock)))
}

/// Returns the names and versions in the output of `cargo tree`.
fn parts(tree: &str) -> BTreeSet<(String, String)> {
    let part = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    };
    tree.lines().filter_map(part).collect()
}

/// Returns the checksums in `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, name: &str| {
        let start = format!("{name} = \"");
        let line = block.lines().find_map(|line| line.strip_prefix(start.as_str()))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let package = |block: &str| {
        let key = (value(block, "name")?, value(block, "version")?);
        Some((key, value(block, "checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

fn render(
    parts: &BTreeSet<(String, String)>,
    checksums: &BTreeMap<(String, String), String>,
) -> String {
    let version = super::package::VERSION;
    let mut out = format!(
        "{{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n  \"metadata\": {{\"component\": \
         {{\"type\": \"application\", \"name\": \"tollgate\", \"version\": \"{version}\"}}}},\n  \"components\": ["
    );
    for (place, part) in parts.iter().enumerate() {
        let (name, version) = part;
        let separator = if place > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{separator}\n    {{\"type\": \"library\", \"name\": \"{name}\", \"version\": \"{version}\", \"purl\": \"pkg:cargo/{name}@{version}\""
        );
        if let Some(sum) = checksums.get(part) {
            let _ = write!(out, ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": \"{sum}\"}}]");
        }
        out.push('}');
    }
    out.push_str("\n  ]\n}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::{checksums, parts, render};

    #[test]
    fn a_part_has_its_checksum() {
        let tree = "tollgate-cli v0.1.0 (/x/y)\nbytes v1.2.3\nbytes v1.2.3\n";
        let lock = "version = 4\n\n[[package]]\nname = \"bytes\"\nversion = \"1.2.3\"\nsource = \"s\"\nchecksum = \"00ff\"\n";
        let text = render(&parts(tree), &checksums(lock));
        assert_eq!(text.matches("\"type\": \"library\"").count(), 2);
        assert!(text.contains(
            "pkg:cargo/bytes@1.2.3\", \"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"00ff\"}]}"
        ));
        assert!(!text.contains("/x/y"), "no path of this machine");
    }
}
