//! What each limit does when the store could not decide.

use crate::{Gate, Row, Rules, Source, Verdict};
use smallvec::SmallVec;
use tollgate_core::{Algorithm, Intent, Numbers, Outcome};
use tollgate_policy::limit::{Mode, OnStoreFailure};
use tollgate_policy::policy::Selected;
use tollgate_store::memory::Options;
use tollgate_store::{Answer, Answers, Charge, MemoryStore, Origin, Request, Store, Ticket};

/// When a client may ask again whom a limit refused because nobody could decide.
pub(super) const RETRY_AFTER_US: u64 = 1_000_000;
/// What a failure of the store may cost in memory.
const FALLBACK_BYTES_MAX: u64 = 32 << 20;
const FALLBACK_SHARDS: usize = 256;

impl<S: Store> Gate<S> {
    /// Answers by each limit's own policy. Shares are decided together and consumed only where no other limit refuses, since a
    /// request that is refused takes nothing.
    #[expect(clippy::too_many_arguments, reason = "a request, an instant and two buffers")]
    pub(super) fn without_store<'a, 'r: 'a>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl Iterator<Item = Selected<'a>> + Clone,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
        mut rows: Vec<Row<'r>>,
    ) -> Verdict<'r> {
        let withheld = selected.clone().any(|one| policy(&one) == OnStoreFailure::Closed);
        let local = selected
            .clone()
            .zip(charges)
            .filter(|(one, _)| matches!(policy(one), OnStoreFailure::Local { .. }));
        let numbers: SmallVec<[Numbers; 4]> =
            local.clone().map(|(one, _)| rules.share(&one)).collect();
        let shares = local.zip(&numbers).map(|((one, charge), numbers)| match one.missing {
            true => *charge,
            false => Charge { numbers, ticket: Ticket::default(), ..*charge },
        });
        let mut shares: SmallVec<[Charge<'_>; 4]> = shares.collect();
        let intent = if withheld { Intent::Peek } else { intent };
        answers.clear();
        if !shares.is_empty() {
            let fallback = self.fallback();
            shares.iter_mut().for_each(|share| share.ticket = fallback.enroll(share.numbers));
            fallback.decide_now(now_us, &[Request { charges: &shares, intent }], answers);
        }
        let (admitted, mut decided) = answers.get(0).unwrap_or((true, &[]));
        rows.extend(selected.map(|one| match policy(&one) {
            OnStoreFailure::Open => {
                let outcome = Outcome::unasked(one.numbers.capacity());
                failed(rules, &one, outcome, Source::FailOpen)
            }
            OnStoreFailure::Closed => {
                let outcome = Outcome::withheld(one.numbers.capacity(), RETRY_AFTER_US);
                failed(rules, &one, outcome, Source::FailClosed)
            }
            OnStoreFailure::Local { .. } => {
                let answer = decided.split_off_first();
                let outcome = answer.map_or(Outcome::unasked(0), |answer| answer.outcome);
                failed(rules, &one, outcome, Source::LocalFallback)
            }
        }));
        Verdict::new(admitted && !withheld, rows)
    }

    /// Made when it is first needed.
    pub(crate) fn fallback(&self) -> &MemoryStore {
        let options = Options::default().max_bytes(FALLBACK_BYTES_MAX).shards(FALLBACK_SHARDS);
        self.fallback.get_or_init(|| MemoryStore::new(options))
    }
}

/// A limit in shadow mode never refuses, so it has nothing to decide without the store.
fn policy(selected: &Selected<'_>) -> OnStoreFailure {
    match selected.limit.mode {
        Mode::Shadow => OnStoreFailure::Open,
        // What misses its key is refused without asking anyone, as the fallback does.
        Mode::Enforce | Mode::Off if selected.missing => OnStoreFailure::Local { nodes: 1 },
        Mode::Enforce | Mode::Off => selected.limit.on_store_failure,
    }
}

fn failed<'r>(
    rules: &'r Rules,
    selected: &Selected<'_>,
    outcome: Outcome,
    source: Source,
) -> Row<'r> {
    let answer = Answer { outcome, blocked: false, receipt: None, origin: Origin::State };
    rules.row_from(selected, &answer, source)
}
