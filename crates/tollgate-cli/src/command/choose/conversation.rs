//! The dialogue on a terminal.

use super::answer::{Given, QUESTIONS, Question};
use std::io::{BufRead, Write};

/// Asks for missing answers, until none can change the choice.
pub(super) fn complete(
    given: &mut Given,
    mut input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), String> {
    while let Some(&first) = given.open_questions().first() {
        let answer = ask(&QUESTIONS[first], &mut input, out)?;
        given.set(first, Some(answer));
    }
    Ok(())
}

/// Repeats one question until the answer is one of those offered.
fn ask(
    question: &Question,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<usize, String> {
    let words: Vec<(String, String)> = question.words().collect();
    let width = words.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let mut text = format!("\n{}\n", question.text);
    for (place, (word, meaning)) in words.iter().enumerate() {
        text.push_str(&format!("  {}  {word:<width$}  {meaning}\n", place + 1));
    }
    say(out, &text)?;
    loop {
        say(out, &format!("{} [1-{}]: ", question.flag, words.len()))?;
        let mut line = String::new();
        let read = input.read_line(&mut line);
        match read.map_err(|error| format!("cannot read standard input: {error}"))? {
            0 => return Err(format!("no answer; `--{}` answers it too", question.flag)),
            _ => match place_of(line.trim(), &words) {
                Some(place) => return Ok(place),
                None => say(out, "Type a number of the list, or its word.\n")?,
            },
        }
    }
}

/// Finds an answer by its number from 1, its word, or an unambiguous start of its word.
fn place_of(answer: &str, words: &[(String, String)]) -> Option<usize> {
    if let Ok(number) = answer.parse::<usize>() {
        return number.checked_sub(1).filter(|place| *place < words.len());
    }
    let answer = answer.to_lowercase();
    let begins = |word: &str| !answer.is_empty() && word.starts_with(&answer);
    let mut found = words.iter().enumerate().filter(|(_, (word, _))| begins(word));
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    }
}

fn say(out: &mut impl Write, text: &str) -> Result<(), String> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write: {error}"))
}
