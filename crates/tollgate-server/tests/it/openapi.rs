//! The description of the check API beside what the API really reads and writes.

mod answers;
mod requests;
mod served;
mod validator;

use std::path::Path;
use tollgate_server::front::http::openapi::openapi;

#[test]
fn the_committed_description_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, openapi()).unwrap();
    }
    let committed = std::fs::read(&path).unwrap_or_default();
    assert!(
        committed == openapi(),
        "{} differs; run again with BLESS=1 and review",
        path.display()
    );
}
