//! docs/envoy.md, for users of envoyproxy/ratelimit.

use super::{Page, Reader};
use crate::serve::process::Folder;

#[test]
fn in_place_of_ratelimit() {
    let page = Page::new(include_str!("../../../../../docs/envoy.md"), &["8081"]);
    let heading = "In place of envoyproxy/ratelimit";
    let files = page.blocks("yaml", heading);
    let [ratelimit, policy] = files[..] else { panic!("{files:#?}") };
    let folder = Folder::with("ratelimit-page", policy);
    std::fs::create_dir_all(folder.0.join("ratelimit")).unwrap();
    std::fs::write(folder.0.join("ratelimit/mongo.yaml"), ratelimit).unwrap();
    let blocks = page.blocks("console", heading);
    assert_eq!(blocks.len(), 1);
    Reader::new(&folder).follow(blocks[0]);
}
