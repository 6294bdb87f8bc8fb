//! The project's chores: `cargo xtask <verb>`.

mod accuracy;
mod counts;
mod exactness;
mod faults;
mod fuzz;
mod mutants;
mod needs;
mod process;
mod release;
mod simulate;
mod test;
mod tidy;

use std::process::ExitCode;

/// One chore. A new one is a file and a line in [`VERBS`].
struct Verb {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

/// Why a chore failed.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// A check failed, or the chore could not run: exit code 1.
    Failed(String),
    /// Like [`Failed`](Self::Failed), with the message printed already.
    Shown,
}

const VERBS: &[Verb] = &[
    test::VERB,
    tidy::VERB,
    mutants::VERB,
    fuzz::VERB,
    faults::VERB,
    simulate::VERB,
    accuracy::VERB,
    exactness::VERB,
    release::VERB,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Shown) => ExitCode::FAILURE,
        Err(Failure::Failed(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(why)) => {
            eprintln!("error: {why}\nhelp: `cargo xtask help` lists the verbs");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let (name, rest) = match arguments.split_first() {
        None => return overview(),
        Some((first, rest)) if is_help(first) => match rest.first() {
            None => return overview(),
            Some(name) => return find(name).map(explain),
        },
        Some((first, rest)) => (first, rest),
    };
    let verb = find(name)?;
    if rest.iter().any(|argument| is_help(argument)) {
        explain(verb);
        return Ok(());
    }
    (verb.run)(rest)
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "help" | "--help" | "-h")
}

fn find(name: &str) -> Result<&'static Verb, Failure> {
    VERBS
        .iter()
        .find(|verb| verb.name == name)
        .ok_or_else(|| Failure::Usage(format!("there is no verb `{name}`")))
}

fn overview() -> Result<(), Failure> {
    println!("Usage: cargo xtask <verb> [options]\n\nVerbs:");
    for verb in VERBS {
        println!("  {:<8} {}", verb.name, verb.summary);
    }
    println!("  {:<8} this overview, or what one verb does: `cargo xtask help test`", "help");
    Ok(())
}

fn explain(verb: &'static Verb) {
    println!("cargo xtask {}: {}\n\n{}", verb.name, verb.summary, verb.help.trim());
}

/// Checks that a verb without options got none.
fn no_options(arguments: &[String]) -> Result<(), Failure> {
    match arguments.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::Usage(format!("unexpected argument `{extra}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_verbs_and_options_are_usage_errors() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        for line in [
            "tset",
            "help tset",
            "test --fast",
            "mutants --only",
            "fuzz --seconds soon",
            "faults --row",
            "accuracy --sed 1",
            "accuracy --seed",
            "exactness --only",
            "exactness --all",
            "release --twice",
        ] {
            let answer = dispatch(&words(line));
            assert!(matches!(answer, Err(Failure::Usage(_))), "{line}: {answer:?}");
        }
        assert_eq!(dispatch(&words("help mutants")), Ok(()));
        assert_eq!(dispatch(&words("mutants --help")), Ok(()));
    }
}
