//! Questions and answers, for flags, the dialogue and `docs/choosing.md`.

use super::rule::Choice;
use clap::ValueEnum;

/// One question.
pub(super) struct Question {
    pub(super) flag: &'static str,
    pub(super) text: &'static str,
    /// The possible answers, each with its meaning.
    values: fn() -> Vec<(String, String)>,
}

pub(super) const QUESTIONS: [Question; 6] = [
    question::<Purpose>("purpose", "What is the limit for?"),
    question::<Machines>("machines", "How many machines decide?"),
    question::<Audit>("audit", "Will somebody audit that the limit was kept?"),
    question::<Bursts>("bursts", "May a client send several requests at once?"),
    question::<Memory>("memory", "How much memory is there for each key?"),
    question::<StoreFailure>(
        "store-failure",
        "What happens to requests when the shared store fails?",
    ),
];

const fn question<T: ValueEnum>(flag: &'static str, text: &'static str) -> Question {
    Question { flag, text, values: values_of::<T> }
}

impl Question {
    /// The answers, each with its meaning.
    pub(super) fn words(&self) -> impl Iterator<Item = (String, String)> {
        (self.values)().into_iter()
    }
}

fn values_of<T: ValueEnum>() -> Vec<(String, String)> {
    let values = T::value_variants().iter().filter_map(T::to_possible_value);
    let described = values.map(|value| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_owned(), help.unwrap_or_default())
    });
    described.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Purpose {
    /// Protection: keep a service from doing too much at once
    Protect,
    /// Fairness: no client takes the share of others
    Fair,
    /// Shaping: requests leave at an even pace, and wait for their turn
    Shape,
    /// Billing: a quota for each calendar month
    Bill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Machines {
    /// One process, which counts in its own memory
    One,
    /// Several, which share their counts in Redis or Valkey
    Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Audit {
    /// No window may ever see more than the limit, and a trail of files proves it
    Yes,
    /// The long-run rate matters; one window may see more
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Bursts {
    /// Page loads, batches and retries may come together
    Yes,
    /// Requests come evenly, or few at a time
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Memory {
    /// Thousands of keys, or memory to spare
    Plenty,
    /// Millions of keys: a few bytes for each
    Tight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StoreFailure {
    /// They pass uncounted: being available matters more than the limit
    Open,
    /// They are refused: the limit matters more than being available
    Closed,
    /// Each node enforces its share alone
    Local,
}

/// An answer to each question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) purpose: Purpose,
    pub(super) machines: Machines,
    pub(super) audit: Audit,
    pub(super) bursts: Bursts,
    pub(super) memory: Memory,
    pub(super) store_failure: StoreFailure,
}

/// The answers so far.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct Given {
    /// What the limit is for
    #[arg(long, value_enum)]
    pub(super) purpose: Option<Purpose>,

    /// How many machines decide
    #[arg(long, value_enum)]
    pub(super) machines: Option<Machines>,

    /// Whether somebody will audit that the limit was kept
    #[arg(long, value_enum)]
    pub(super) audit: Option<Audit>,

    /// Whether a client may send several requests at once
    #[arg(long, value_enum)]
    pub(super) bursts: Option<Bursts>,

    /// How much memory there is for each key
    #[arg(long, value_enum)]
    pub(super) memory: Option<Memory>,

    /// What happens to requests when the shared store fails
    #[arg(long, value_enum)]
    pub(super) store_failure: Option<StoreFailure>,
}

impl From<Answers> for Given {
    fn from(answers: Answers) -> Self {
        Self {
            purpose: Some(answers.purpose),
            machines: Some(answers.machines),
            audit: Some(answers.audit),
            bursts: Some(answers.bursts),
            memory: Some(answers.memory),
            store_failure: Some(answers.store_failure),
        }
    }
}

impl Given {
    /// The flag of each question that is answered, and the answer.
    pub(super) fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        QUESTIONS.iter().zip(self.places()).filter_map(|(question, place)| {
            let (word, _) = question.words().nth(place?)?;
            Some((question.flag, word))
        })
    }

    /// Sets or removes the answer to a question.
    pub(super) fn set(&mut self, question: usize, place: Option<usize>) {
        fn at<T: ValueEnum + Copy>(place: Option<usize>) -> Option<T> {
            place.and_then(|place| T::value_variants().get(place).copied())
        }
        match question {
            0 => self.purpose = at(place),
            1 => self.machines = at(place),
            2 => self.audit = at(place),
            3 => self.bursts = at(place),
            4 => self.memory = at(place),
            _ => self.store_failure = at(place),
        }
    }

    fn places(&self) -> [Option<usize>; QUESTIONS.len()] {
        [
            self.purpose.map(|answer| answer as usize),
            self.machines.map(|answer| answer as usize),
            self.audit.map(|answer| answer as usize),
            self.bursts.map(|answer| answer as usize),
            self.memory.map(|answer| answer as usize),
            self.store_failure.map(|answer| answer as usize),
        ]
    }

    /// Returns all combinations that agree with these answers.
    pub(super) fn matching(&self) -> Vec<Answers> {
        let mut all = vec![*self];
        for question in (0..QUESTIONS.len()).filter(|question| self.places()[*question].is_none()) {
            let answered = |given: Self, place| {
                let mut given = given;
                given.set(question, Some(place));
                given
            };
            let places = 0..QUESTIONS[question].words().count();
            let each = |given| places.clone().map(move |place| answered(given, place));
            all = all.into_iter().flat_map(each).collect();
        }
        all.into_iter().filter_map(Self::complete).collect()
    }

    /// The answers, if no question is open.
    fn complete(self) -> Option<Answers> {
        Some(Answers {
            purpose: self.purpose?,
            machines: self.machines?,
            audit: self.audit?,
            bursts: self.bursts?,
            memory: self.memory?,
            store_failure: self.store_failure?,
        })
    }

    /// Returns the first combination that agrees with these answers.
    pub(super) fn first_match(&self) -> Option<Answers> {
        self.matching().first().copied()
    }

    /// Whether the answer to a question can change the choice, given the other answers so far.
    fn matters(&self, question: usize) -> bool {
        let mut others = *self;
        others.set(question, None);
        let all = others.matching();
        let choices: Vec<_> = all
            .iter()
            .map(|&answers| (Self::from(answers).places(), Choice::new(answers)))
            .collect();
        choices.iter().any(|(places, choice)| {
            choices.iter().any(|(other_places, other)| {
                let mut same = *places;
                same[question] = other_places[question];
                same == *other_places && choice != other
            })
        })
    }

    /// The questions without an answer whose answer can change the choice.
    pub(super) fn open_questions(&self) -> Vec<usize> {
        let places = self.places();
        let unanswered = (0..QUESTIONS.len()).filter(|question| places[*question].is_none());
        unanswered.filter(|question| self.matters(*question)).collect()
    }

    /// Removes the answers that change nothing.
    pub(super) fn relevant(mut self) -> Self {
        for question in 0..QUESTIONS.len() {
            if !self.matters(question) {
                self.set(question, None);
            }
        }
        self
    }
}
