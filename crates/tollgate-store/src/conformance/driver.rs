//! A driver for stores: short methods for the rules of the suite.

use crate::{
    Adjustment, Answer, Answers, Change, Charge, ChargeMode, EndedReservation, NewReservation,
    OpenOutcome, Request, ReservationStore, Settlement, Store, StoreCall,
};
use tollgate_core::{Intent, LimitParams, Penalty};

/// A store with the rule's clock.
#[derive(Debug)]
pub struct StoreDriver<'a, S> {
    store: &'a S,
    /// The instant passed to the store.
    pub now_us: u64,
}

/// One charge of a rule.
#[derive(Clone, Copy, Debug)]
pub struct ChargeSpec<'a> {
    /// The limit's id.
    pub limit: u64,
    /// The key.
    pub key: &'a [u8],
    /// The limit's params.
    pub params: LimitParams,
    /// The cost.
    pub cost: u64,
    /// The mode.
    pub mode: ChargeMode,
    /// The penalty.
    pub penalty: Option<Penalty>,
}

impl<'a> ChargeSpec<'a> {
    /// An enforced charge of one unit.
    pub const fn new(limit: u64, key: &'a str, params: LimitParams) -> Self {
        let key = key.as_bytes();
        Self { limit, key, params, cost: 1, mode: ChargeMode::Enforce, penalty: None }
    }

    /// Sets the cost.
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets shadow mode.
    pub const fn shadow(mut self) -> Self {
        self.mode = ChargeMode::Shadow;
        self
    }

    /// Makes the charge a debt of these units.
    pub const fn owing(mut self, units: u64) -> Self {
        self.mode = ChargeMode::Owe { units, enforced: self.mode.is_enforced() };
        self
    }

    /// Sets the penalty.
    pub const fn penalty(mut self, penalty: Penalty) -> Self {
        self.penalty = Some(penalty);
        self
    }

    /// The charge for a store.
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
    /// Drives `store`, starting on 14 November 2023.
    pub const fn new(store: &'a S) -> Self {
        Self { store, now_us: 1_700_000_000_000_000 }
    }

    /// Decides one take.
    pub async fn take(&self, lines: &[ChargeSpec<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Take).await
    }

    /// Decides one peek.
    pub async fn peek(&self, lines: &[ChargeSpec<'_>]) -> (bool, Vec<Answer>) {
        self.ask(lines, Intent::Peek).await
    }

    /// Decides one request.
    pub async fn ask(&self, lines: &[ChargeSpec<'_>], intent: Intent) -> (bool, Vec<Answer>) {
        let charges: Vec<_> = lines.iter().map(|line| line.charge(self.store)).collect();
        let requests = [Request { charges: &charges, intent }];
        let answers = self.call(StoreCall::Decide(&requests)).await;
        assert_eq!(answers.len(), 1, "one request, one answer");
        read(&answers, 0)
    }

    /// Decides several requests at once, each with one charge.
    pub async fn batch(&self, lines: &[ChargeSpec<'_>]) -> Vec<(bool, Vec<Answer>)> {
        let charges: Vec<_> = lines.iter().map(|line| [line.charge(self.store)]).collect();
        let requests: Vec<_> =
            charges.iter().map(|charges| Request { charges, intent: Intent::Take }).collect();
        let answers = self.call(StoreCall::Decide(&requests)).await;
        (0..answers.len()).map(|n| read(&answers, n)).collect()
    }

    /// Applies changes.
    pub async fn adjust(&self, changes: &[(ChargeSpec<'_>, Change)]) -> Vec<Answer> {
        let adjustments: Vec<_> = changes
            .iter()
            .map(|(line, change)| Adjustment { charge: line.charge(self.store), change: *change })
            .collect();
        read(&self.call(StoreCall::Adjust(&adjustments)).await, 0).1
    }

    /// Resets one key.
    pub async fn reset(&self, line: &ChargeSpec<'_>) {
        self.call(StoreCall::Reset { limit: line.limit, key: line.key }).await;
    }

    async fn call(&self, call: StoreCall<'_>) -> Answers {
        let mut answers = Answers::default();
        let result = self.store.call(self.now_us, call, &mut answers).await;
        result.unwrap_or_else(|error| panic!("the store failed: {error}"));
        answers
    }
}

impl<S: ReservationStore> StoreDriver<'_, S> {
    /// Opens a reservation of these charges, with `note`.
    pub async fn open(
        &self,
        id: &str,
        ttl_us: u64,
        lines: &[ChargeSpec<'_>],
        note: &[u8],
    ) -> OpenOutcome {
        let state_keys =
            lines.iter().map(|line| self.store.state_key(&line.charge(self.store))).collect();
        let opening = NewReservation { id, ttl_us, state_keys, note: note.to_vec() };
        let opened = self.store.open_reservation(self.now_us, opening).await;
        opened.unwrap_or_else(|error| panic!("the store failed: {error}"))
    }

    /// Ends a reservation with `changes`, one for each of its charges.
    pub async fn end(
        &self,
        id: &str,
        end: u64,
        changes: &[(ChargeSpec<'_>, Change)],
    ) -> Option<EndedReservation> {
        let plan = |_: &[u8]| Some(changes.iter().map(settlement).collect());
        let ended = self.store.end_reservation(self.now_us, id, end, plan).await;
        ended.unwrap_or_else(|error| panic!("the store failed: {error}"))
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
