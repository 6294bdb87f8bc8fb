//! docs/shedding.md: the five-minute example.

use super::{Page, Reader};
use crate::serve::process::Folder;

const PAGE: &str = include_str!("../../../../../docs/shedding.md");

#[test]
fn five_minutes() {
    let page = Page::new(PAGE, &["3000", "8080", "8090"]);
    let heading = "Protect a service in five minutes";
    let [policy] = page.blocks("yaml", heading)[..] else { panic!("one policy") };
    let folder = Folder::with("shedding-page", policy);
    let mut reader = Reader::new(&folder);
    let [commands] = page.blocks("console", heading)[..] else { panic!("one block") };
    reader.follow(commands);
}
