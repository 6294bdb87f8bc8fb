//! `cargo xtask release`: builds the archive, the Debian package, the SBOM and the checksums,
//! reproducibly.

mod package;
mod sbom;

use crate::process::{self, Echo};
use crate::{Failure, Verb};
use package::Release;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const VERB: Verb = Verb {
    name: "release",
    summary: "build the archive, the Debian package, the SBOM and their checksums",
    help: "
Options:
  --check   build everything twice, in two folders, and compare the bytes
  --out DIR write to this folder instead of target/dist-files

The program is built with the profile `dist`. Paths of this machine are replaced, and the time of the last commit stands
for every time, so that two builds of one commit by one toolchain are equal. It needs dpkg-deb, GNU tar, gzip and
sha256sum, and some minutes for each build.",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    let (mut is_checked, mut out) = (false, process::target_dir().join("dist-files"));
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.as_slice()) {
            ("--check", _) => is_checked = true,
            ("--out", [folder, ..]) => {
                out = PathBuf::from(folder);
                rest.next();
            }
            (other, _) => return Err(Failure::Usage(format!("unexpected argument `{other}`"))),
        }
    }
    let first = build(&out, "dist-build")?;
    if is_checked {
        let again = process::target_dir().join("dist-files-again");
        let second = build(&again, "dist-build-again")?;
        if first != second {
            return Err(Failure::Failed(format!(
                "two builds differ; compare {} and {}",
                out.display(),
                again.display()
            )));
        }
        println!("two builds have equal bytes");
    }
    print!("{first}");
    Ok(())
}

/// Builds everything into `out`, and returns the checksums.
fn build(out: &Path, target: &str) -> Result<String, Failure> {
    let (root, target) = (process::root(), process::target_dir().join(target));
    let commit = text_of(Command::new("git").args(["rev-parse", "HEAD"]))?;
    let epoch = text_of(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
    let home = std::env::var("CARGO_HOME").unwrap_or_else(|_| {
        format!("{}/.cargo", std::env::var("HOME").unwrap_or_else(|_| "/root".into()))
    });
    let flags = format!(
        "--remap-path-prefix={root}=/tollgate --remap-path-prefix={home}=/cargo --remap-path-prefix={target}=/target",
        root = root.display(),
        target = target.display(),
    );
    let mut command = process::cargo();
    command.args(["build", "--locked", "--profile", "dist", "--package", "tollgate-cli"]);
    command.arg("--target-dir").arg(&target);
    command.env("RUSTFLAGS", flags).env("TOLLGATE_COMMIT", &commit);
    command.env("SOURCE_DATE_EPOCH", &epoch).env("CARGO_INCREMENTAL", "0");
    require(&mut command)?;
    let program = target.join("dist/tollgate");
    let release = Release { root: &root, program: &program, epoch: &epoch };
    let failed = |error| Failure::Failed(format!("cannot write to {}: {error}", out.display()));
    let _ = fs::remove_dir_all(out);
    fs::create_dir_all(out).map_err(failed)?;
    let archive = release.archive(out)?;
    let deb = release.deb(out)?;
    let sbom = format!("tollgate-{}.cdx.json", package::VERSION);
    fs::write(out.join(&sbom), sbom::sbom(&root)?).map_err(failed)?;
    let mut sums = Command::new("sha256sum");
    sums.current_dir(out).args([&archive, &deb, &sbom]);
    let sums = text_of(&mut sums)? + "\n";
    fs::write(out.join("SHA256SUMS"), &sums).map_err(failed)?;
    Ok(sums)
}

/// Runs a command that must succeed.
fn require(command: &mut Command) -> Result<(), Failure> {
    match process::run(command, Echo::On)?.status.success() {
        true => Ok(()),
        false => Err(Failure::Shown),
    }
}

/// Returns the output of a command that must succeed, without the last line end.
fn text_of(command: &mut Command) -> Result<String, Failure> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| Failure::Failed(format!("{shown}: {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Failed(format!("{shown} failed: {why}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
