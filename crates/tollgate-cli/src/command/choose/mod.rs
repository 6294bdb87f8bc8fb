//! `tollgate choose`: an algorithm and a policy from at most six answers.

mod answer;
mod conversation;
mod policy;
mod rule;
#[cfg(test)]
mod tests;

use super::{Stop, print};
use answer::{Answers, Given, QUESTIONS};
use clap::ValueEnum;
use rule::Choice;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Choose an algorithm by answering at most six questions
///
/// The command prints a policy that passes `tollgate check`. Comments explain the choice of the
/// algorithm, and why the others do not fit. On a terminal, the command asks for answers that the
/// flags leave open, if they can still change the policy. Without a terminal, pass every flag that
/// matters.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Choose {
    #[command(flatten)]
    given: Given,

    /// The output format
    #[arg(long, value_enum, default_value_t = ChoiceFormat::Yaml)]
    format: ChoiceFormat,
}

const EXAMPLES: &str = "\
Examples:
  tollgate choose > tollgate.yaml         ask, then write the policy
  tollgate choose --purpose bill --machines one --audit no --memory plenty
                                          ask nothing: these answers settle it
  tollgate choose --purpose fair --format json

Exit status: 0 chosen, 2 an answer is missing or unknown.";

#[derive(Clone, Copy, ValueEnum)]
enum ChoiceFormat {
    /// The policy, with comments
    Yaml,
    /// Algorithm, reason, rejected algorithms, answers and policy as an object
    Json,
}

impl Choose {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let (given, answers) = self.answers().map_err(Stop::Unusable)?;
        let text = match self.format {
            ChoiceFormat::Yaml => policy::text(given, answers),
            ChoiceFormat::Json => format!("{:#}\n", object(given, answers)),
        };
        print(text, 0)
    }

    /// Returns the answers that matter, and a full set of answers that agrees with them.
    fn answers(&self) -> Result<(Given, Answers), String> {
        let mut given = self.given;
        if given.open_questions().is_empty() {
        } else if io::stdin().is_terminal() {
            let (input, mut out) = (io::stdin().lock(), io::stderr().lock());
            conversation::complete(&mut given, input, &mut out)?;
        } else {
            return Err(missing(given));
        }
        let answers = given.first_match().ok_or("no answers match")?;
        Ok((given.relevant(), answers))
    }
}

/// Names the flags that a caller without a terminal has to add.
fn missing(given: Given) -> String {
    let mut text = String::from("standard input is not a terminal, so answer with flags:");
    for question in given.open_questions().into_iter().map(|index| &QUESTIONS[index]) {
        let words: Vec<String> = question.words().map(|(word, _)| word).collect();
        text.push_str(&format!("\n  --{} {}", question.flag, words.join("|")));
    }
    text
}

fn object(given: Given, answers: Answers) -> Value {
    let choice = Choice::new(answers);
    let rejected = choice.rejected(answers);
    let rejected = rejected.iter().map(|(name, why)| json!({"algorithm": name, "why": why}));
    let answers_given = given.flags().map(|(flag, word)| (flag.to_owned(), word.into()));
    json!({
        "algorithm": choice.algorithm.word(),
        "when": choice.when,
        "why": choice.why,
        "rejected": rejected.collect::<Value>(),
        "answers": answers_given.collect::<Map<String, Value>>(),
        "policy": policy::text(given, answers),
    })
}
