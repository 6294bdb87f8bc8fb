//! docs/recipes/README.md: the commands for the check API and a recipe.

use super::{Page, Reader, free_port};
use crate::serve::process::Folder;
use std::path::Path;

#[test]
fn the_recipes_can_be_tried() {
    let page = Page(include_str!("../../../../../docs/recipes/README.md").into());
    let folder = Folder::new("recipes-page");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::os::unix::fs::symlink(docs.canonicalize().unwrap(), folder.0.join("docs")).unwrap();
    let mut reader = Reader::new(&folder);
    let http = format!("127.0.0.1:{}", free_port());
    // A long timeout: a busy machine is not a failure.
    reader.follow(&format!("$ export TOLLGATE_URL=http://{http}\n$ export TOLLGATE_TIMEOUT=60"));
    reader.follow("$ export PYTHONDONTWRITEBYTECODE=1");
    let blocks = page.all();
    let [(_, curl), (_, python)] = blocks[..] else { panic!("{blocks:#?}") };
    let (start, curl) = curl.split_once('\n').unwrap();
    let start = start.strip_prefix("$ cargo run --release -- serve ").unwrap();
    let start = start.trim_end_matches(" &");
    let listen = format!("--listen http={http} --listen admin=127.0.0.1:0");
    reader.serve(&format!("{start} {listen}"), &[&format!("listening http {http}")]);
    // The wait gets shorter from call to call.
    let curl = curl.replace("127.0.0.1:8081", &http).replace("1800", "1...");
    reader.follow(&curl.replace("1799", "1").replace("3600.0", "3..."));
    reader.follow(&python.replace("1800", "1..."));
}
