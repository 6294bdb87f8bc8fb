//! Windows of the calendar by the server's clock, whatever the caller's says.

use crate::support::long_deadline;
use crate::support::server::Server;
use tollgate_core::algorithm::CalendarWindow;
use tollgate_core::{CalendarUnit, Intent, LimitParams, Receipt, Zone};
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, ChargeMode, ParamsId, RedisStore, Request, Store,
    StoreCall,
};

const SECOND_US: u64 = 1_000_000;

fn charge<'a>(key: &'a [u8], params: &'a LimitParams) -> Charge<'a> {
    let (limit, params_id, cost, mode, penalty) =
        (1, ParamsId::default(), 1, ChargeMode::Enforce, None);
    Charge { limit, key, params, params_id, cost, mode, penalty }
}

async fn take(store: &RedisStore, now_us: u64, key: &[u8], params: &LimitParams) -> Answer {
    let (charges, mut answers) = ([charge(key, params)], Answers::default());
    let requests = [Request { charges: &charges, intent: Intent::Take }];
    store.call(now_us, StoreCall::Decide(&requests), &mut answers).await.unwrap();
    answers.get(0).unwrap().1[0]
}

/// The end of the window in which an instant lies.
fn end_us(unit: CalendarUnit, now_us: u64) -> u64 {
    Zone::UTC.span(unit, (now_us / SECOND_US) as i64).end_s as u64 * SECOND_US
}

/// Nodes whose clocks differ by up to a window count in the server's window. A give-back
/// finds it.
#[tokio::test]
async fn nodes_whose_clocks_differ_count_in_one_window() {
    let server = Server::start().await;
    let mut options = long_deadline();
    options.caller_time = false;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let mut connection = server.connect().await;
    for unit in [CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month] {
        let params = LimitParams::CalendarWindow(CalendarWindow::new(5, unit, Zone::UTC));
        let key = unit.as_str().as_bytes();
        let (seconds, micros): (u64, u64) =
            redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        let now_us = seconds * SECOND_US + micros;
        let window_us = unit.nominal_us() * 27 / 31;
        let mut receipts: Vec<Receipt> = Vec::new();
        for (used, called_us) in
            [now_us, now_us - window_us, now_us + window_us, now_us].into_iter().enumerate()
        {
            let answer = take(&store, called_us, key, &params).await;
            assert_eq!(answer.outcome.remaining, 4 - used as u64, "{unit:?}");
            let receipt = answer.receipt.unwrap();
            assert_eq!(
                answer.outcome.reset_after_us,
                end_us(unit, now_us) - receipt.at_us,
                "{unit:?}: the true end, unless midnight has just passed"
            );
            receipts.push(receipt);
        }
        let change = Change::GiveBack { units: 1, receipt: receipts[1], charged_params: params };
        let adjustments = [Adjustment { charge: charge(key, &params), change }];
        let mut answers = Answers::default();
        store
            .call(now_us - window_us, StoreCall::Adjust(&adjustments), &mut answers)
            .await
            .unwrap();
        assert_eq!(answers.get(0).unwrap().1[0].outcome.remaining, 2, "{unit:?}");
    }
}
