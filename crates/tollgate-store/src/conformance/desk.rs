//! Short words for asking a store.

use crate::{
    Adjustment, Answer, Answers, Call, Change, Charge, Ended, Mode, Opened, Opening, Request,
    ReservationStore, Settlement, Store,
};
use tollgate_core::{Intent, Numbers, Penalty};

/// A store with a clock: what the rules ask and read.
#[derive(Debug)]
pub struct Desk<'a, S> {
    store: &'a S,
    /// The time that the store is given.
    pub now_us: u64,
}

/// One limit of a rule, as it is charged.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Number of the limit.
    pub limit: u64,
    /// Whose.
    pub key: &'a [u8],
    /// Its numbers.
    pub numbers: Numbers,
    /// How much.
    pub cost: u64,
    /// Whether it counts.
    pub mode: Mode,
    /// What refusals lead to.
    pub penalty: Option<Penalty>,
}

impl<'a> Line<'a> {
    /// An enforced unit.
    pub const fn new(limit: u64, key: &'a str, numbers: Numbers) -> Self {
        let key = key.as_bytes();
        Self { limit, key, numbers, cost: 1, mode: Mode::Enforce, penalty: None }
    }

    /// The same for another cost.
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// The same in shadow mode.
    pub const fn shadow(mut self) -> Self {
        self.mode = Mode::Shadow;
        self
    }

    /// The same, taking these units whatever anyone says.
    pub const fn owing(mut self, units: u64) -> Self {
        self.mode = Mode::Owe { units, enforced: self.mode.is_enforced() };
        self
    }

    /// The same with a penalty.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self
    }

    /// As a store is asked.
    pub fn charge(&'a self, store: &impl Store) -> Charge<'a> {
        Charge {
            limit: self.limit,
            key: self.key,
            numbers: &self.numbers,
            ticket: store.enroll(&self.numbers),
            cost: self.cost,
            mode: self.mode,
            penalty: self.penalty.as_ref(),
        }
    }
}

impl<'a, S: Store> Desk<'a, S> {
    /// Asks `store` from the 14th of November 2023 on.
    pub const fn new(store: &'a S) -> Self {
        Self { store, now_us: 1_700_000_000_000_000 }
    }

    /// One request that consumes.
    pub async fn take(&self, lines: &[Line<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Take).await
    }

    /// One request that only looks.
    pub async fn peek(&self, lines: &[Line<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Peek).await
    }

    /// One request.
    pub async fn ask(&self, lines: &[Line<'_>], intent: Intent) -> (bool, Vec<Answer>) {
        let charges: Vec<_> = lines.iter().map(|line| line.charge(self.store)).collect();
        let mut answers = Answers::default();
        let requests = [Request { charges: &charges, intent }];
        let asked = self.store.call(self.now_us, Call::Decide(&requests), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works decides: {error}"));
        assert_eq!(answers.len(), 1, "one request, one answer");
        read(&answers, 0)
    }

    /// Several requests at once, each with one charge.
    pub async fn batch(&self, lines: &[Line<'_>]) -> Vec<(bool, Vec<Answer>)> {
        let charges: Vec<_> = lines.iter().map(|line| [line.charge(self.store)]).collect();
        let requests: Vec<_> =
            charges.iter().map(|charges| Request { charges, intent: Intent::Take }).collect();
        let mut answers = Answers::default();
        let asked = self.store.call(self.now_us, Call::Decide(&requests), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works decides: {error}"));
        (0..answers.len()).map(|n| read(&answers, n)).collect()
    }

    /// Applies changes.
    pub async fn adjust(&self, changes: &[(Line<'_>, Change)]) -> Vec<Answer> {
        let adjustments: Vec<_> = changes
            .iter()
            .map(|(line, change)| Adjustment { charge: line.charge(self.store), change: *change })
            .collect();
        let mut answers = Answers::default();
        let asked = self.store.call(self.now_us, Call::Adjust(&adjustments), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works adjusts: {error}"));
        read(&answers, 0).1
    }

    /// Forgets one key.
    pub async fn reset(&self, line: &Line<'_>) {
        let asked = self
            .store
            .call(0, Call::Reset { limit: line.limit, key: line.key }, &mut Answers::default())
            .await;
        asked.unwrap_or_else(|error| panic!("a store that works resets: {error}"));
    }
}

impl<S: ReservationStore> Desk<'_, S> {
    /// Keeps a reservation of these lines, with `note`.
    pub async fn open(&self, id: &str, ttl_us: u64, lines: &[Line<'_>], note: &[u8]) -> Opened {
        let places: Vec<_> =
            lines.iter().map(|line| self.store.place(&line.charge(self.store))).collect();
        let opening = Opening { id, ttl_us, places, note: note.to_vec() };
        let opened = self.store.open_reservation(self.now_us, opening).await;
        opened.unwrap_or_else(|error| panic!("a store that works keeps reservations: {error}"))
    }

    /// Ends a reservation with `changes`, one for each of its lines.
    pub async fn end(&self, id: &str, end: u64, changes: &[(Line<'_>, Change)]) -> Option<Ended> {
        let plan = |_: &[u8]| Some(changes.iter().map(settlement).collect());
        let ended = self.store.end_reservation(self.now_us, id, end, plan).await;
        ended.unwrap_or_else(|error| panic!("a store that works ends them: {error}"))
    }
}

fn settlement((line, change): &(Line<'_>, Change)) -> Settlement {
    let Line { numbers, cost, mode, penalty, .. } = *line;
    Settlement { numbers, cost, mode, penalty, change: *change }
}

fn read(answers: &Answers, index: usize) -> (bool, Vec<Answer>) {
    match answers.get(index) {
        Some((admitted, rows)) => (admitted, rows.to_vec()),
        None => panic!("request {index} was not answered"),
    }
}
