//! docs/lab.md: each block in turn, in a folder with a log.

use super::{Page, Reader};
use crate::lab::{day, nginx};
use crate::serve::process::Folder;

#[test]
fn from_a_log_to_a_policy() {
    let page = Page(include_str!("../../../../../docs/lab.md").into());
    let folder = Folder::new("lab-page");
    std::fs::write(folder.0.join("access.log"), nginx(&day())).unwrap();
    let mut reader = Reader::new(&folder);
    for (language, block) in page.all() {
        match language {
            "yaml" => std::fs::write(folder.0.join("stricter.yaml"), block).unwrap(),
            "console" => reader.follow(block),
            other => assert_eq!(other, "", "a block in {other}"),
        }
    }
}
