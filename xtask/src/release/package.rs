//! The archive and the Debian package, built from one list of files: `[package.metadata.deb]` of
//! `tollgate-cli`, as cargo-deb reads it.

use super::{require, text_of};
use crate::Failure;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Commands with a manual page.
const PAGES: [&str; 6] = ["serve", "check", "simulate", "admin", "usage", "hash"];
/// Shells, and the paths of their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tollgate"),
    ("zsh", "usr/share/zsh/vendor-completions/_tollgate"),
    ("fish", "usr/share/fish/vendor_completions.d/tollgate.fish"),
];

/// A built program, to be packaged.
pub(crate) struct Release<'a> {
    pub(crate) root: &'a Path,
    pub(crate) program: &'a Path,
    /// The modification time of every file, in seconds since 1970.
    pub(crate) epoch: &'a str,
}

/// A file of the package.
#[derive(Debug, PartialEq, Eq)]
struct Asset {
    from: String,
    to: String,
    mode: u32,
}

impl Release<'_> {
    /// Writes `tollgate-VERSION-TARGET.tar.gz`: the files of the package, without those for Debian.
    pub(crate) fn archive(&self, out: &Path) -> Result<String, Failure> {
        let folder = format!("tollgate-{VERSION}-{}-linux", std::env::consts::ARCH);
        self.stage(&out.join(&folder)).map_err(|error| failed(out, &error))?;
        let tar = format!("{folder}.tar");
        let mut command = Command::new("tar");
        command.current_dir(out).args(["--create", "--sort=name", "--format=gnu"]);
        command.args(["--owner=0", "--group=0", "--numeric-owner"]);
        command.arg(format!("--mtime=@{}", self.epoch)).arg(format!("--file={tar}")).arg(&folder);
        require(&mut command)?;
        require(Command::new("gzip").current_dir(out).args(["--no-name", "--best", &tar]))?;
        fs::remove_dir_all(out.join(&folder)).map_err(|error| failed(out, &error))?;
        Ok(format!("{tar}.gz"))
    }

    /// Writes `tollgate_VERSION_ARCH.deb`.
    pub(crate) fn deb(&self, out: &Path) -> Result<String, Failure> {
        let architecture = text_of(Command::new("dpkg").arg("--print-architecture"))?;
        let name = format!("tollgate_{VERSION}-1_{architecture}.deb");
        let tree = out.join("deb");
        let staged = self.stage(&tree).and_then(|()| self.control(&tree, &architecture));
        staged.map_err(|error| failed(out, &error))?;
        let mut command = Command::new("dpkg-deb");
        command.env("SOURCE_DATE_EPOCH", self.epoch);
        command.args(["--root-owner-group", "--build"]).arg(&tree).arg(out.join(&name));
        require(&mut command)?;
        fs::remove_dir_all(&tree).map_err(|error| failed(out, &error))?;
        Ok(name)
    }

    /// Copies the files of the package below `tree`.
    fn stage(&self, tree: &Path) -> io::Result<()> {
        let manifest = fs::read_to_string(self.root.join("crates/tollgate-cli/Cargo.toml"))?;
        for asset in assets(&manifest) {
            let from = match asset.from.ends_with("/tollgate") && asset.mode == 0o755 {
                true => self.program.to_owned(),
                false => self.root.join("crates/tollgate-cli").join(&asset.from),
            };
            let to = tree.join(&asset.to);
            let bytes = fs::read(&from).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", asset.from))
            })?;
            write(&to, &bytes, asset.mode)?;
        }
        let page = |command: &[&str]| self.print(&[&["man"], command].concat());
        write(&tree.join("usr/share/man/man1/tollgate.1"), &page(&[])?, 0o644)?;
        for command in PAGES {
            let to = tree.join(format!("usr/share/man/man1/tollgate-{command}.1"));
            write(&to, &page(&[command])?, 0o644)?;
        }
        for (shell, to) in COMPLETIONS {
            write(&tree.join(to), &self.print(&["completions", shell])?, 0o644)?;
        }
        Ok(())
    }

    /// Returns the output of the program.
    fn print(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        let output = Command::new(self.program).args(arguments).output()?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(io::Error::other(format!("`tollgate {}` failed", arguments.join(" ")))),
        }
    }

    /// Writes Debian's control files.
    fn control(&self, tree: &Path, architecture: &str) -> io::Result<()> {
        let text = format!(
            "Package: tollgate\nVersion: {VERSION}-1\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
             Depends: libc6 (>= 2.34), libgcc-s1\nRecommends: systemd\n\
             Maintainer: The Tollgate developers <tollgate@example.org>\n\
             Description: rate limiter: gateway, check API, Envoy service and Redis protocol\n \
             One engine limits requests in front of any service, beside Envoy, nginx, Caddy,\n \
             Traefik and HAProxy, or for any Redis client; in memory, or shared in Redis.\n"
        );
        write(&tree.join("DEBIAN/control"), text.as_bytes(), 0o644)?;
        let conffiles = b"/etc/default/tollgate\n/etc/tollgate/tollgate.yaml\n";
        write(&tree.join("DEBIAN/conffiles"), conffiles, 0o644)?;
        for script in ["postinst", "prerm", "postrm"] {
            let bytes = fs::read(self.root.join("ops/deb").join(script))?;
            write(&tree.join("DEBIAN").join(script), &bytes, 0o755)?;
        }
        Ok(())
    }
}

/// Returns the rows of `assets` in the manifest: `["from", "to", "mode"]`.
fn assets(manifest: &str) -> Vec<Asset> {
    let section = manifest.split("[package.metadata.deb]").nth(1).unwrap_or_default();
    let rows = section.split("assets = [").nth(1).unwrap_or_default().lines();
    let row = |line: &str| {
        let mut parts = line.split('"').skip(1).step_by(2);
        let (from, to, mode) = (parts.next()?, parts.next()?, parts.next()?);
        let name = from.rsplit('/').next().unwrap_or_default();
        let to = if to.ends_with('/') { format!("{to}{name}") } else { to.to_owned() };
        Some(Asset { from: from.into(), to, mode: u32::from_str_radix(mode, 8).ok()? })
    };
    rows.map_while(|line| (line.trim() != "]").then_some(line)).filter_map(row).collect()
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        // The permissions of folders must not depend on the umask.
        for folder in path.ancestors().skip(1).take(6).filter(|folder| folder.is_dir()) {
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o755));
        }
    }
    Ok(())
}

fn failed(out: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot pack into {}: {error}", out.display()))
}

#[cfg(test)]
mod tests;
