//! Short words for asking a store.

use crate::{
    Adjustment, Answer, Answers, Change, Charge, EndedReservation, Mode, NewReservation,
    OpenOutcome, Request, ReservationStore, Settlement, Store, StoreCall,
};
use tollgate_core::{Intent, LimitParams, Penalty};

/// A store with a clock: what the rules ask and read.
#[derive(Debug)]
pub struct StoreDriver<'a, S> {
    store: &'a S,
    /// The time that the store is given.
    pub now_us: u64,
}

/// One limit of a rule, as it is charged.
#[derive(Clone, Copy, Debug)]
pub struct ChargeSpec<'a> {
    /// Number of the limit.
    pub limit: u64,
    /// Whose.
    pub key: &'a [u8],
    /// Its numbers.
    pub params: LimitParams,
    /// How much.
    pub cost: u64,
    /// Whether it counts.
    pub mode: Mode,
    /// What refusals lead to.
    pub penalty: Option<Penalty>,
}

impl<'a> ChargeSpec<'a> {
    /// An enforced unit.
    pub const fn new(limit: u64, key: &'a str, params: LimitParams) -> Self {
        let key = key.as_bytes();
        Self { limit, key, params, cost: 1, mode: Mode::Enforce, penalty: None }
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
            params: &self.params,
            params_id: store.register_params(&self.params),
            cost: self.cost,
            mode: self.mode,
            penalty: self.penalty.as_ref(),
        }
    }
}

impl<'a, S: Store> StoreDriver<'a, S> {
    /// Asks `store` from the 14th of November 2023 on.
    pub const fn new(store: &'a S) -> Self {
        Self { store, now_us: 1_700_000_000_000_000 }
    }

    /// One request that consumes.
    pub async fn take(&self, lines: &[ChargeSpec<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Take).await
    }

    /// One request that only looks.
    pub async fn peek(&self, lines: &[ChargeSpec<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Peek).await
    }

    /// One request.
    pub async fn ask(&self, lines: &[ChargeSpec<'_>], intent: Intent) -> (bool, Vec<Answer>) {
        let charges: Vec<_> = lines.iter().map(|line| line.charge(self.store)).collect();
        let mut answers = Answers::default();
        let requests = [Request { charges: &charges, intent }];
        let asked = self.store.call(self.now_us, StoreCall::Decide(&requests), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works decides: {error}"));
        assert_eq!(answers.len(), 1, "one request, one answer");
        read(&answers, 0)
    }

    /// Several requests at once, each with one charge.
    pub async fn batch(&self, lines: &[ChargeSpec<'_>]) -> Vec<(bool, Vec<Answer>)> {
        let charges: Vec<_> = lines.iter().map(|line| [line.charge(self.store)]).collect();
        let requests: Vec<_> =
            charges.iter().map(|charges| Request { charges, intent: Intent::Take }).collect();
        let mut answers = Answers::default();
        let asked = self.store.call(self.now_us, StoreCall::Decide(&requests), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works decides: {error}"));
        (0..answers.len()).map(|n| read(&answers, n)).collect()
    }

    /// Applies changes.
    pub async fn adjust(&self, changes: &[(ChargeSpec<'_>, Change)]) -> Vec<Answer> {
        let adjustments: Vec<_> = changes
            .iter()
            .map(|(line, change)| Adjustment { charge: line.charge(self.store), change: *change })
            .collect();
        let mut answers = Answers::default();
        let asked =
            self.store.call(self.now_us, StoreCall::Adjust(&adjustments), &mut answers).await;
        asked.unwrap_or_else(|error| panic!("a store that works adjusts: {error}"));
        read(&answers, 0).1
    }

    /// Forgets one key.
    pub async fn reset(&self, line: &ChargeSpec<'_>) {
        let asked = self
            .store
            .call(0, StoreCall::Reset { limit: line.limit, key: line.key }, &mut Answers::default())
            .await;
        asked.unwrap_or_else(|error| panic!("a store that works resets: {error}"));
    }
}

impl<S: ReservationStore> StoreDriver<'_, S> {
    /// Keeps a reservation of these lines, with `note`.
    pub async fn open(
        &self,
        id: &str,
        ttl_us: u64,
        lines: &[ChargeSpec<'_>],
        note: &[u8],
    ) -> OpenOutcome {
        let places: Vec<_> =
            lines.iter().map(|line| self.store.state_key(&line.charge(self.store))).collect();
        let opening = NewReservation { id, ttl_us, state_keys: places, note: note.to_vec() };
        let opened = self.store.open_reservation(self.now_us, opening).await;
        opened.unwrap_or_else(|error| panic!("a store that works keeps reservations: {error}"))
    }

    /// Ends a reservation with `changes`, one for each of its lines.
    pub async fn end(
        &self,
        id: &str,
        end: u64,
        changes: &[(ChargeSpec<'_>, Change)],
    ) -> Option<EndedReservation> {
        let plan = |_: &[u8]| Some(changes.iter().map(settlement).collect());
        let ended = self.store.end_reservation(self.now_us, id, end, plan).await;
        ended.unwrap_or_else(|error| panic!("a store that works ends them: {error}"))
    }
}

fn settlement((line, change): &(ChargeSpec<'_>, Change)) -> Settlement {
    let ChargeSpec { params, cost, mode, penalty, .. } = *line;
    Settlement { params, cost, mode, penalty, change: *change }
}

fn read(answers: &Answers, index: usize) -> (bool, Vec<Answer>) {
    match answers.get(index) {
        Some((admitted, rows)) => (admitted, rows.to_vec()),
        None => panic!("request {index} was not answered"),
    }
}
