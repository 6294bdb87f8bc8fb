//! The engine: identify, select, decide, verdict.

use crate::{Row, Verdict, Work, reservation::Book};
use smallvec::SmallVec;
use tollgate_core::{Algorithm, Intent, Numbers, Rate, algorithm::FixedWindow};
use tollgate_policy::{
    facts::Facts,
    limit,
    policy::{Policy, Selected},
};
use tollgate_store::{Answer, Charge, MemoryStore, Mode, Request, Store, Ticket};

/// One policy over one store.
#[derive(Debug)]
pub struct Gate {
    pub(crate) policy: Policy,
    pub(crate) store: MemoryStore,
    pub(crate) book: Book,
    /// The store's short names for the policy's numbers, by [`Selected::numbers_index`].
    tickets: Box<[Ticket]>,
    /// Whether rows name their bucket, which costs a hash for each.
    buckets: bool,
    /// What a limit with `on_missing: refuse` is decided by when the attribute is missing.
    nothing: Numbers,
}

impl Gate {
    /// Puts `policy` in force over `store`.
    pub fn new(policy: Policy, store: MemoryStore) -> Self {
        let tickets =
            policy.numbers().iter().map(|variant| store.enroll(&variant.numbers)).collect();
        let nothing = Numbers::FixedWindow(FixedWindow::new(Rate::NOTHING));
        Self { policy, store, book: Book::default(), tickets, buckets: false, nothing }
    }

    /// Has every row name its [`bucket`](Row::bucket), for the header profiles that show it.
    pub fn with_buckets(self) -> Self {
        Self { buckets: true, ..self }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The store in use.
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// Decides one request and consumes what it admits.
    pub fn check<'g>(
        &'g self,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work<'g>,
    ) -> Verdict<'g> {
        self.decide(now_us, facts, cost, Intent::Take, work)
    }

    /// Answers as [`check`](Self::check) would, and consumes nothing.
    pub fn peek<'g>(
        &'g self,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work<'g>,
    ) -> Verdict<'g> {
        self.decide(now_us, facts, cost, Intent::Peek, work)
    }

    /// Select, decide, verdict.
    fn decide<'g>(
        &'g self,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        intent: Intent,
        work: &mut Work<'g>,
    ) -> Verdict<'g> {
        let Work { selection, answers, rows } = work;
        self.policy.select(facts, cost, selection);
        let selected = self.policy.selected(selection);
        let charges: SmallVec<[Charge<'_>; 4]> =
            selected.clone().map(|selected| self.charge(&selected)).collect();
        self.store.decide_now(now_us, &[Request { charges: &charges, intent }], answers);
        let (allowed, decided) = answers.get(0).unwrap_or((true, &[]));
        let mut rows = std::mem::take(rows);
        rows.extend(selected.zip(decided).map(|(selected, answer)| self.row(&selected, answer)));
        Verdict::new(allowed, rows)
    }

    pub(crate) fn charge<'a>(&'a self, selected: &Selected<'a>) -> Charge<'a> {
        let limit = selected.limit;
        let charge = Charge {
            limit: selected.id,
            key: selected.key,
            numbers: selected.numbers,
            ticket: self.ticket(selected.numbers_index),
            cost: selected.cost,
            mode: match limit.mode {
                limit::Mode::Shadow => Mode::Shadow,
                limit::Mode::Enforce | limit::Mode::Off => Mode::Enforce,
            },
            penalty: limit.penalty.as_ref(),
        };
        match selected.missing {
            // A window of nothing refuses without keeping any state, and a penalty would have no key to fall on.
            true => Charge {
                numbers: &self.nothing,
                ticket: Ticket::default(),
                penalty: None,
                ..charge
            },
            false => charge,
        }
    }

    pub(crate) fn ticket(&self, numbers_index: usize) -> Ticket {
        self.tickets.get(numbers_index).copied().unwrap_or_default()
    }

    pub(crate) fn row(&self, selected: &Selected<'_>, answer: &Answer) -> Row<'_> {
        let limit = &self.policy.limits()[selected.index];
        let bucket = match self.buckets {
            true => stable_hash(selected.id, selected.key),
            false => 0,
        };
        let mut row = Row::new(limit, selected.numbers, answer, bucket);
        if selected.missing {
            (row.outcome.limit, row.outcome.reset_after_us) = (selected.numbers.capacity(), 0);
        }
        row
    }
}

/// FNV-1a over limit and key: the same on every node and after every restart.
fn stable_hash(limit: u64, key: &[u8]) -> u64 {
    let bytes = limit.to_le_bytes().into_iter().chain(key.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
