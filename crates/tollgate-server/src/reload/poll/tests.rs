use super::{FileChange, POLL_INTERVAL, POLLS_SETTLED, SETTLE_TIME, Stamp, WatchedFile, Watcher};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn stamp(inode: u64, size: u64, modified_s: i64, changed_s: i64) -> Option<Stamp> {
    Some(Stamp { device: 1, inode, size, modified: (modified_s, 0), changed: (changed_s, 0) })
}

/// A watcher that has reported `stamp`.
fn after(stamp: Option<Stamp>) -> Watcher {
    let mut watcher = Watcher::default();
    assert_eq!(taken_at(&mut watcher, stamp), Some(POLLS_SETTLED));
    watcher
}

/// The number of the poll, from one, that reports `stamp`.
fn taken_at(watcher: &mut Watcher, stamp: Option<Stamp>) -> Option<u32> {
    let changes = (1..=20).map(|at| (at, watcher.poll(stamp)));
    let changes = changes.filter_map(|(at, change)| Some((at, change?)));
    let changes: Vec<(u32, FileChange)> = changes.collect();
    let expected = stamp.map_or(FileChange::Gone, FileChange::Content);
    assert!(changes.iter().all(|(_, changed)| *changed == expected));
    assert!(changes.len() <= 1, "it is said once");
    changes.first().map(|(at, _)| *at)
}

/// A late first poll can bring two polls closer together than their interval.
#[test]
fn the_polls_span_the_time_that_content_has_to_stay() {
    assert_eq!(SETTLE_TIME.as_millis(), 300);
    assert!(POLL_INTERVAL * (POLLS_SETTLED - 2) >= SETTLE_TIME);
}

#[test]
fn what_is_there_is_handed_over_once() {
    let mut watcher = after(stamp(1, 10, 100, 100));
    assert_eq!(taken_at(&mut watcher, stamp(1, 10, 100, 100)), None);
}

#[test]
fn each_part_of_a_stamp_tells() {
    let before = stamp(1, 10, 100, 100);
    let device = before.map(|stamp| Stamp { device: 2, ..stamp });
    let nanosecond = before.map(|stamp| Stamp { changed: (100, 1), ..stamp });
    // The third has the same size, and a modification time that the writer reset.
    let written_to = [stamp(1, 11, 100, 100), stamp(1, 10, 101, 100), stamp(1, 10, 100, 101)];
    for now in written_to.into_iter().chain([nanosecond, stamp(2, 10, 100, 100), device]) {
        assert_eq!(taken_at(&mut after(before), now), Some(POLLS_SETTLED), "{now:?}");
    }
}

/// The file is written in place, or a new file replaces it.
#[test]
fn a_file_that_is_being_written_is_left_alone() {
    for inode in [1, 2] {
        let mut watcher = after(stamp(1, 10, 100, 100));
        for at in 0..50 {
            let half = stamp(inode, at, 101 + i64::try_from(at).unwrap(), 200);
            assert!((1..POLLS_SETTLED).all(|_| watcher.poll(half).is_none()));
        }
        let whole = stamp(inode, 49, 150, 200);
        assert_eq!(watcher.poll(whole), whole.map(FileChange::Content));
    }
}

#[test]
fn a_change_that_was_taken_back_is_none() {
    let before = stamp(1, 10, 100, 100);
    let mut watcher = after(before);
    assert!((1..POLLS_SETTLED).all(|_| watcher.poll(stamp(2, 10, 101, 101)).is_none()));
    assert_eq!([watcher.poll(before), watcher.poll(before)], [None; 2]);
    assert_eq!(watcher.poll(stamp(2, 10, 101, 101)), None, "the earlier look does not count");
}

#[test]
fn a_missing_file_is_a_change_and_so_is_its_return() {
    let before = stamp(1, 10, 100, 100);
    let mut watcher = after(before);
    assert!((1..POLLS_SETTLED).all(|_| watcher.poll(None).is_none()));
    assert_eq!(watcher.poll(before), None, "a gap is not a loss");
    assert_eq!(taken_at(&mut watcher, None), Some(POLLS_SETTLED));
    assert_eq!(taken_at(&mut watcher, before), Some(POLLS_SETTLED));
}

/// A folder for one test, removed at its end.
struct WatchTestFolder(PathBuf);

impl WatchTestFolder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tollgate-watch-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for WatchTestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Polls until content is reported, or none will be.
fn looks(file: &mut WatchedFile) -> Option<String> {
    assert!(file.poll().is_none(), "nothing is taken at first sight");
    let content = (0..10).find_map(|_| file.poll());
    content.map(|content| String::from_utf8(content.unwrap()).unwrap())
}

/// The content reported after enough unchanged polls.
fn settled(file: &mut WatchedFile) -> std::io::Result<Vec<u8>> {
    assert!((1..POLLS_SETTLED).all(|_| file.poll().is_none()));
    file.poll().unwrap()
}

fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

#[test]
fn a_file_written_in_place_is_noticed() {
    let folder = WatchTestFolder::new("write");
    let path = folder.0.join("tollgate.yaml");
    put(&path, "one");
    let mut file = WatchedFile::new(&path);
    assert_eq!(looks(&mut file).as_deref(), Some("one"));
    assert_eq!(looks(&mut file), None);
    put(&path, "three");
    assert_eq!(looks(&mut file).as_deref(), Some("three"));
    assert_eq!(looks(&mut file), None);
}

#[test]
fn a_file_renamed_over_is_noticed_though_it_is_older_and_as_long() {
    let folder = WatchTestFolder::new("rename");
    let (path, next) = (folder.0.join("tollgate.yaml"), folder.0.join("next"));
    put(&next, "two");
    put(&path, "one");
    let mut file = WatchedFile::new(&path);
    assert_eq!(looks(&mut file).as_deref(), Some("one"));
    fs::rename(&next, &path).unwrap();
    assert_eq!(looks(&mut file).as_deref(), Some("two"));
}

/// Like kubelet: the file is a link to `..data/file`, and `..data` is a link to a folder with a
/// time in its name. A new `..data` is renamed over the old one, whose folder is then removed.
#[test]
fn a_swapped_link_in_the_middle_is_noticed() {
    let folder = WatchTestFolder::new("configmap");
    let at = |name: &str| folder.0.join(name);
    let version = |name: &str, text: &str| {
        fs::create_dir(at(name)).unwrap();
        put(&at(name).join("tollgate.yaml"), text);
        symlink(name, at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
    };
    version("..2026_01_01", "one");
    symlink("..data/tollgate.yaml", at("tollgate.yaml")).unwrap();
    let mut file = WatchedFile::new(at("tollgate.yaml"));
    assert_eq!(looks(&mut file).as_deref(), Some("one"));
    version("..2026_01_02", "two");
    assert_eq!(looks(&mut file).as_deref(), Some("two"));
    fs::remove_dir_all(at("..2026_01_01")).unwrap();
    assert_eq!(looks(&mut file), None, "the file is not read from the old folder");
}

#[test]
fn a_file_written_between_two_looks_is_not_taken_half() {
    let folder = WatchTestFolder::new("half");
    let path = folder.0.join("tollgate.yaml");
    put(&path, "one");
    let mut file = WatchedFile::new(&path);
    looks(&mut file);
    put(&path, "limits: []");
    assert!((1..POLLS_SETTLED).all(|_| file.poll().is_none()));
    put(&path, "limits: []\nheaders: none");
    assert!(file.poll().is_none(), "the first half was not there for long enough");
    assert_eq!(looks(&mut file).as_deref(), Some("limits: []\nheaders: none"));
}

#[test]
fn a_file_that_went_away_is_said_to_be_missing() {
    let folder = WatchTestFolder::new("gone");
    let path = folder.0.join("tollgate.yaml");
    put(&path, "one");
    let mut file = WatchedFile::new(&path);
    looks(&mut file);
    fs::remove_file(&path).unwrap();
    let missing = settled(&mut file).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    put(&path, "one");
    assert_eq!(looks(&mut file).as_deref(), Some("one"));
}

#[test]
fn a_file_that_cannot_be_looked_at_says_why() {
    let folder = WatchTestFolder::new("why");
    let path = folder.0.join("tollgate.yaml");
    put(&path, "one");
    let mut file = WatchedFile::new(path.join("below-a-file"));
    let error = settled(&mut file).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotADirectory);
    let mut file = WatchedFile::new(&folder.0);
    assert!(settled(&mut file).unwrap_err().to_string().contains("not a regular file"));
}
