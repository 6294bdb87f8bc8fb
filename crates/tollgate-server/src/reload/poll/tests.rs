use super::{FileChange, Stamp, WatchedFile, Watcher};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn stamp(inode: u64, size: u64, modified_s: i64, changed_s: i64) -> Option<Stamp> {
    Some(Stamp { device: 1, inode, size, modified: (modified_s, 0), changed: (changed_s, 0) })
}

/// A watcher that has handed over `stamp`.
fn after(stamp: Option<Stamp>) -> Watcher {
    let mut watcher = Watcher::default();
    assert_eq!(watcher.poll(stamp), None);
    assert!(watcher.poll(stamp).is_some());
    watcher
}

/// At which of the next looks, counted from one, `stamp` is handed over.
fn taken_at(watcher: &mut Watcher, stamp: Option<Stamp>) -> Option<usize> {
    let changes: Vec<_> = (0..20).map(|_| watcher.poll(stamp)).collect();
    let expected = stamp.map_or(FileChange::Gone, FileChange::Content);
    assert!(changes.iter().flatten().all(|changed| *changed == expected));
    assert!(changes.iter().flatten().count() <= 1, "it is said once");
    changes.iter().position(Option::is_some).map(|at| at + 1)
}

#[test]
fn what_is_there_is_handed_over_once_it_was_seen_twice() {
    let mut watcher = Watcher::default();
    assert_eq!(taken_at(&mut watcher, stamp(1, 10, 100, 100)), Some(2));
    assert_eq!(taken_at(&mut watcher, stamp(1, 10, 100, 100)), None);
}

#[test]
fn each_part_of_a_stamp_tells() {
    let before = stamp(1, 10, 100, 100);
    let device = before.map(|stamp| Stamp { device: 2, ..stamp });
    let nanosecond = before.map(|stamp| Stamp { changed: (100, 1), ..stamp });
    // The last but one: same size, and the time of writing put back by whoever wrote it.
    let written_to = [stamp(1, 11, 100, 100), stamp(1, 10, 101, 100), stamp(1, 10, 100, 101)];
    for now in written_to.into_iter().chain([nanosecond]) {
        assert_eq!(taken_at(&mut after(before), now), Some(6), "{now:?}");
    }
    for now in [stamp(2, 10, 100, 100), device] {
        assert_eq!(taken_at(&mut after(before), now), Some(2), "{now:?}");
    }
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let mut watcher = after(stamp(1, 10, 100, 100));
    for at in 0..50 {
        let half = stamp(1, at, 101 + i64::try_from(at).unwrap(), 200);
        assert_eq!([(); 5].map(|()| watcher.poll(half)), [None; 5]);
    }
    let whole = stamp(1, 49, 150, 200);
    assert_eq!(watcher.poll(whole), whole.map(FileChange::Content));
}

#[test]
fn ten_renames_a_second_are_all_noticed() {
    let mut watcher = after(stamp(1, 10, 100, 100));
    for inode in 2..12 {
        let now = stamp(inode, 10, 100, 100);
        assert_eq!([watcher.poll(now), watcher.poll(now)], [None, now.map(FileChange::Content)]);
    }
}

#[test]
fn a_change_that_was_taken_back_is_none() {
    let before = stamp(1, 10, 100, 100);
    let mut watcher = after(before);
    assert_eq!(watcher.poll(stamp(2, 10, 101, 101)), None);
    assert_eq!([watcher.poll(before), watcher.poll(before)], [None; 2]);
    assert_eq!(watcher.poll(stamp(2, 10, 101, 101)), None, "the earlier look does not count");
}

#[test]
fn a_missing_file_is_a_change_and_so_is_its_return() {
    let before = stamp(1, 10, 100, 100);
    let mut watcher = after(before);
    assert_eq!([watcher.poll(None), watcher.poll(before)], [None; 2], "a gap is not a loss");
    assert_eq!(taken_at(&mut watcher, None), Some(2));
    assert_eq!(taken_at(&mut watcher, before), Some(2));
}

#[test]
fn what_could_not_be_used_comes_again() {
    let here = stamp(1, 10, 100, 100);
    let mut watcher = after(here);
    watcher.retry();
    assert_eq!(taken_at(&mut watcher, here), Some(6), "whoever writes to it may not be done");
    watcher.retry();
    assert_eq!(taken_at(&mut watcher, stamp(2, 10, 100, 100)), Some(2), "another file is complete");
}

/// A folder of its own for one test, gone when the test ends.
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

/// Looks, as nothing happens in between, until something is handed over or nothing will be.
fn looks(file: &mut WatchedFile) -> Option<String> {
    assert!(file.poll().is_none(), "nothing is taken at first sight");
    let content = (0..10).find_map(|_| file.poll());
    content.map(|content| String::from_utf8(content.unwrap()).unwrap())
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

/// As kubelet does it: the file is a link to `..data/file`, `..data` a link to a folder with a time
/// in its name, and a new `..data` is renamed over the old one, whose folder then goes.
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
    assert_eq!(looks(&mut file), None, "the old folder was not what is read");
}

#[test]
fn a_file_written_between_two_looks_is_not_taken_half() {
    let folder = WatchTestFolder::new("half");
    let path = folder.0.join("tollgate.yaml");
    put(&path, "one");
    let mut file = WatchedFile::new(&path);
    looks(&mut file);
    put(&path, "limits: []");
    assert!([(); 5].iter().all(|()| file.poll().is_none()));
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
    assert!(file.poll().is_none());
    let missing = file.poll().unwrap().unwrap_err();
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
    assert!(file.poll().is_none());
    let error = file.poll().unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotADirectory);
    let mut file = WatchedFile::new(&folder.0);
    assert!(file.poll().is_none());
    assert!(file.poll().unwrap().unwrap_err().to_string().contains("not a regular file"));
}
