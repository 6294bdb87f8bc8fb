//! Compares every answer of every sequence with that of the oracle.

use crate::generate::{self, EVERYTHING, Trace};
use crate::oracle::{
    AlgorithmOracle, Answer, Charged, concurrency, fixed_window, gcra, leaky_bucket, sliding_log,
    sliding_window, token_bucket,
};
use crate::setup::Kind;
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, Outcome};

proptest! {
    #![proptest_config(generate::cases(150))]

    #[test]
    fn every_answer_is_the_oracles(trace in generate::trace(EVERYTHING)) {
        judge(&trace)?;
    }

    #[test]
    fn every_answer_at_the_extremes_is_the_oracles(
        trace in generate::kind().prop_flat_map(generate::extreme)
    ) {
        judge(&trace)?;
    }
}

/// Runs the trace beside the oracle of its algorithm.
pub fn judge(trace: &Trace) -> Result<(), TestCaseError> {
    match trace.tiers[0].kind {
        Kind::FixedWindow => beside::<fixed_window::FixedWindow>(trace),
        Kind::SlidingWindow => beside::<sliding_window::SlidingWindow>(trace),
        Kind::SlidingLog => beside::<sliding_log::SlidingLog>(trace),
        Kind::TokenBucket => beside::<token_bucket::TokenBucket>(trace),
        Kind::Gcra => beside::<gcra::Gcra>(trace),
        Kind::LeakyBucket => beside::<leaky_bucket::LeakyBucket>(trace),
        Kind::Concurrency => beside::<concurrency::Concurrency>(trace),
    }
}

fn beside<J: AlgorithmOracle>(trace: &Trace) -> Result<(), TestCaseError> {
    let mut judge = J::default();
    let mut charged: Vec<Option<Charged>> = Vec::new();
    World::run(trace, |world, done| {
        let (plan, now) = (world.setup().plan(), i128::from(world.now_us));
        match done {
            Done::Decided { cost, intent, outcome } => {
                let take = intent == Intent::Take;
                let answer = judge.answer(&plan, now, cost.into(), take);
                prop_assert_eq!(answer, said(&outcome), "cost {} at {}", cost, now);
                if answer.admitted && take {
                    charged.push((cost > 0).then(|| judge.charge(&plan, now, cost.into())));
                }
            }
            Done::Owed { cost } => {
                charged.push((cost > 0).then(|| judge.charge(&plan, now, cost.into())));
            }
            Done::GaveBack { held, units } => {
                if let Some(charged) = &charged[held] {
                    judge.give_back(now, units.into(), charged);
                }
            }
            Done::Nothing => {}
        }
        // Also compares the state after the operation, as the next request sees it.
        let mut numbers_see = world.state.clone();
        world.params.redate(&mut numbers_see, world.now_us);
        let outcome = world.params.decide(&numbers_see, world.now_us, 1, Intent::Peek);
        let answer = judge.clone().answer(&plan, now, 1, false);
        prop_assert_eq!(answer, said(&outcome), "afterwards, at {}", now);
        Ok(())
    })
}

fn said(outcome: &Outcome) -> Answer {
    Answer {
        admitted: outcome.admitted,
        limit: outcome.limit.into(),
        remaining: outcome.remaining.into(),
        retry_after: outcome.retry_after_us.map(Into::into),
        reset_after: outcome.reset_after_us.into(),
        delay: outcome.delay_us.into(),
        more_after: outcome.more_after_us.map(Into::into),
    }
}

/// An oracle that used the tested code would prove little.
#[test]
fn the_oracle_imports_nothing_from_what_it_judges() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        assert!(!text.to_lowercase().contains("tollgate"), "{} names it", path.display());
        let outside = text.lines().filter(|l| l.contains("crate::") || l.contains("extern"));
        assert_eq!(outside.count(), 0, "{} reaches outside the oracle", path.display());
        files += 1;
    }
    assert!(files >= 8, "one file for each algorithm, and what they share");
}
