use super::{Asset, Release, assets, write};
use crate::process::{is_installed, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a program that prints a text for each of its commands.
fn stub(folder: &Path) -> PathBuf {
    let program = folder.join("tollgate");
    write(&program, b"#!/bin/sh\necho \"$@\"\n", 0o755).unwrap();
    program
}

fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("tollgate-release-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn assets_are_rows_of_three() {
    let manifest = "[package]\n[package.metadata.deb]\nassets = [\n  [\"a/tollgate\", \"usr/bin/\", \"755\"],\n  [\"b\", \"etc/c\", \"644\"],\n]\nx = [\"no\"]\n";
    let asset = |from: &str, to: &str, mode| Asset { from: from.into(), to: to.into(), mode };
    let expected = [asset("a/tollgate", "usr/bin/tollgate", 0o755), asset("b", "etc/c", 0o644)];
    assert_eq!(assets(manifest), expected);
}

/// Runs `dpkg` on a scratch root, which maintainer scripts see as `DPKG_ROOT`.
fn dpkg(scratch: &Path, arguments: &[&str]) {
    let mut command = Command::new("dpkg");
    command.arg(format!("--root={}", scratch.display()));
    command.args(["--force-script-chrootless", "--force-depends", "--force-not-root"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
fn the_package_is_installed_removed_and_purged_in_a_scratch_root() {
    if !["dpkg", "dpkg-deb", "systemd-sysusers"].into_iter().all(is_installed) {
        eprintln!("skipped: this is not a Debian machine");
        return;
    }
    let (root, out) = (root(), folder("deb"));
    let program = stub(&out);
    let release = Release { root: &root, program: &program, epoch: "1700000000" };
    let name = release.deb(&out).unwrap();
    let first = fs::read(out.join(&name)).unwrap();
    assert_eq!(release.deb(&out).unwrap(), name);
    assert!(first == fs::read(out.join(&name)).unwrap(), "two packages have equal bytes");

    let scratch = out.join("root");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"] {
        fs::create_dir_all(scratch.join(folder)).unwrap();
    }
    fs::write(scratch.join("var/lib/dpkg/status"), "").unwrap();
    dpkg(&scratch, &["--install", out.join(&name).to_str().unwrap()]);
    for file in [
        "usr/bin/tollgate",
        "usr/lib/systemd/system/tollgate.service",
        "usr/lib/sysusers.d/tollgate.conf",
        "etc/tollgate/tollgate.yaml",
        "etc/default/tollgate",
        "usr/share/man/man1/tollgate.1",
        "usr/share/man/man1/tollgate-usage.1",
        "usr/share/bash-completion/completions/tollgate",
        "usr/share/doc/tollgate/copyright",
    ] {
        assert!(scratch.join(file).is_file(), "{file} is missing");
    }
    let users = fs::read_to_string(scratch.join("etc/passwd")).unwrap();
    assert!(users.lines().any(|line| line.starts_with("tollgate:")), "{users}");
    verify_unit(&scratch);

    dpkg(&scratch, &["--remove", "tollgate"]);
    assert!(!scratch.join("usr/bin/tollgate").exists());
    assert!(scratch.join("etc/tollgate/tollgate.yaml").exists(), "removal keeps the policy");
    fs::create_dir_all(scratch.join("var/lib/tollgate")).unwrap();
    dpkg(&scratch, &["--purge", "tollgate"]);
    assert!(!scratch.join("etc/tollgate/tollgate.yaml").exists());
    assert!(!scratch.join("var/lib/tollgate").exists());
}

/// Verifies the systemd unit, with the program in the scratch root.
fn verify_unit(scratch: &Path) {
    if !is_installed("systemd-analyze") {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    let unit = fs::read_to_string(scratch.join("usr/lib/systemd/system/tollgate.service")).unwrap();
    let program = scratch.join("usr/bin/tollgate");
    let unit = unit.replace("/usr/bin/tollgate", program.to_str().unwrap());
    let path = scratch.join("tollgate.service");
    fs::write(&path, unit).unwrap();
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["--man=no", "verify"]).arg(&path).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn two_archives_have_equal_bytes() {
    let (root, out) = (root(), folder("archive"));
    let program = stub(&out);
    let release = Release { root: &root, program: &program, epoch: "1700000000" };
    let name = release.archive(&out).unwrap();
    let first = fs::read(out.join(&name)).unwrap();
    fs::remove_file(out.join(&name)).unwrap();
    assert_eq!(release.archive(&out).unwrap(), name);
    assert!(first == fs::read(out.join(&name)).unwrap());
}
