use super::Storage;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::Instant;
use tollgate::store::Store;
use tollgate::store::{Answers, Charge, ChargeMode, ParamsId, Request, StoreCall};
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::ProcessClock;

/// The duration of a decision on a request that was read `ago`, in virtual time.
fn waits(storage: &Storage, ago: Duration) -> Duration {
    let params = LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(5, 1_000_000).unwrap()));
    let charge = Charge {
        limit: 1,
        key: b"key",
        params: &params,
        params_id: ParamsId::default(),
        cost: 1,
        mode: ChargeMode::Enforce,
        penalty: None,
    };
    let requests = [Request { charges: &[charge], intent: Intent::Take }];
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (began, read_us) = (Instant::now(), ProcessClock.now_us() - ago.as_micros() as u64);
        storage
            .call(read_us, StoreCall::Decide(&requests), &mut Answers::default())
            .await
            .unwrap_err();
        began.elapsed()
    })
}

#[test]
fn a_request_whose_tier_was_looked_up_has_what_is_left_of_its_deadline() {
    // The server accepts connections and never replies.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let policy = format!("store: {{redis: {{url: 'redis://127.0.0.1:{port}', deadline: 60s}}}}");
    let settings = tollgate_policy::compile(policy.as_bytes()).unwrap().settings;
    let storage = Storage::new(&settings.store, Path::new(""), |_| None).unwrap();
    let seconds = [0, 40, 60, 1_000].map(|ago| waits(&storage, Duration::from_secs(ago)).as_secs());
    assert!((30..=60).contains(&seconds[0]), "{seconds:?}");
    assert!((5..=20).contains(&seconds[1]), "{seconds:?}");
    assert_eq!(seconds[2..], [0, 0], "{seconds:?}");
}
