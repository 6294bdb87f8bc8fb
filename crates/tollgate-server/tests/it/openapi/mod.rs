//! The OpenAPI description, compared with the bodies that the API reads and writes.

mod answers;
mod generate;
mod requests;
mod served;
mod validator;

use std::path::Path;
use tollgate_server::front::http::openapi::openapi;

/// `BLESS=1` writes the file that the server ships.
#[test]
fn the_shipped_description_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/front/http/openapi.json");
    let generated = format!("{:#}\n", generate::document()).into_bytes();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let is_current = std::fs::read(&path).is_ok_and(|shipped| shipped == generated);
    assert!(is_current, "{} differs; run again with BLESS=1 and review", path.display());
    assert!(openapi() == generated, "build again");
}
