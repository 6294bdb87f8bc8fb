//! The programs that tests need, and how to install them.

use crate::Failure;
use crate::counts::Counts;
use crate::process::{self, Echo, is_installed};
use std::process::Command;

const LIST: &str = include_str!("../needs.txt");

/// A program, and its package.
#[derive(Debug, PartialEq, Eq)]
struct Need {
    installer: Installer,
    package: String,
    program: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installer {
    Apt,
    Pip,
    Npm,
}

/// Installs missing programs. If none is missing, this only searches the path.
///
/// Programs that cannot be installed are counted. On a developer's machine they count as skipped,
/// and the tests that need them say so. Under `CI=true` they count as failed, since no test may be
/// left out.
pub(crate) fn install() -> Result<Counts, Failure> {
    let needs = parse(LIST).map_err(Failure::Failed)?;
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_there(&need.program)).collect();
    if missing.is_empty() {
        println!("all {} needed programs are installed", needs.len());
        return Ok(Counts::default());
    }
    for installer in [Installer::Apt, Installer::Pip, Installer::Npm] {
        let packages: Vec<&str> = missing
            .iter()
            .filter(|need| need.installer == installer)
            .map(|need| need.package.as_str())
            .collect();
        if packages.is_empty() {
            continue;
        }
        println!("installing {}", packages.join(" "));
        for mut command in installer.commands(&packages) {
            match process::run(&mut command, Echo::On) {
                Ok(finished) if finished.status.success() => {}
                Ok(finished) => eprintln!("that failed: {}", finished.status),
                Err(why) => eprintln!("that failed: {why:?}"),
            }
        }
    }
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut counts = Counts::default();
    for need in missing.iter().filter(|need| !is_there(&need.program)) {
        eprintln!("`{}` is missing; install the package `{}`", need.program, need.package);
        counts += if in_ci { Counts::ONE_FAILED } else { Counts::ONE_SKIPPED };
    }
    Ok(counts)
}

impl Installer {
    fn commands(self, packages: &[&str]) -> Vec<Command> {
        match self {
            Self::Apt => {
                let mut update = as_root("apt-get");
                update.args(["update", "--quiet"]);
                let mut install = as_root("apt-get");
                install.args(["install", "--yes", "--quiet", "--no-install-recommends"]);
                install.args(packages);
                vec![update, install]
            }
            Self::Pip => {
                let mut install = Command::new("python3");
                install.args(["-m", "pip", "install", "--quiet"]).args(packages);
                vec![install]
            }
            Self::Npm => {
                let mut install = as_root("npm");
                install.args(["install", "--global", "--silent"]).args(packages);
                vec![install]
            }
        }
    }
}

/// Whether a program is on the path, or a library is installed: `python:NAME`, or `node:NAME` among
/// npm's global packages.
fn is_there(program: &str) -> bool {
    let mut loads = match program.split_once(':') {
        None => return is_installed(program),
        Some(("python", library)) => {
            let mut python = Command::new("python3");
            // Searches for the module without loading it, since loading could have effects.
            let find = format!("import importlib.util as i; exit(not i.find_spec('{library}'))");
            python.args(["-c", &find]);
            python
        }
        Some((_, library)) => {
            let root = Command::new("npm").args(["root", "--global"]).output();
            let root = root.map(|output| output.stdout).unwrap_or_default();
            let mut node = Command::new("node");
            // Resolves the package without loading it: before Node 22, `require` cannot load ES
            // modules.
            node.args(["-e", &format!("require.resolve('{library}')")]);
            node.env("NODE_PATH", String::from_utf8_lossy(root.trim_ascii()).as_ref());
            node
        }
    };
    process::run(&mut loads, Echo::Off).is_ok_and(|finished| finished.status.success())
}

/// Runs the program directly as root, or through `sudo` without a password prompt.
fn as_root(program: &str) -> Command {
    let id = Command::new("id").arg("-u").output();
    let is_root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if is_root { program } else { "sudo" });
    if !is_root {
        command.args(["--non-interactive", program]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn parse(list: &str) -> Result<Vec<Need>, String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (installer, package, program) = match words[..] {
                ["apt", package, program] => (Installer::Apt, package, program),
                ["pip", package, program] => (Installer::Pip, package, program),
                ["npm", package, program] => (Installer::Npm, package, program),
                _ => return Err(format!("needs.txt: cannot read `{line}`")),
            };
            Ok(Need { installer, package: package.into(), program: program.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_an_installer_a_package_and_a_program() {
        let need = |installer, package: &str, program: &str| Need {
            installer,
            package: package.into(),
            program: program.into(),
        };
        assert_eq!(
            parse("# why\n\napt redis-server redis-server\npip cram-tests cram\n"),
            Ok(vec![
                need(Installer::Apt, "redis-server", "redis-server"),
                need(Installer::Pip, "cram-tests", "cram"),
            ])
        );
        assert!(parse("brew redis redis-server").is_err());
        assert!(parse("apt redis-server").is_err());
        assert!(parse(LIST).is_ok());
    }

    #[test]
    fn packages_are_installed_by_name_after_one_update() {
        let commands = Installer::Apt.commands(&["redis-server"]);
        let text = |command: &Command| format!("{command:?}");
        assert_eq!(commands.len(), 2);
        assert!(text(&commands[0]).contains("update"), "{:?}", commands[0]);
        assert!(text(&commands[1]).ends_with("\"redis-server\""), "{:?}", commands[1]);
        assert_eq!(Installer::Pip.commands(&["cram"]).len(), 1);
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing() {
        assert!(is_installed("cargo"));
        assert!(!is_installed("no-such-program-anywhere"));
        assert!(is_there("python:json"));
        assert!(!is_there("python:no_such_library_anywhere"));
        assert!(!is_there("node:no-such-library-anywhere"));
    }
}
