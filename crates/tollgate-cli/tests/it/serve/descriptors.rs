//! With few descriptors, a flood of connections does not hide the state of the process.

use super::process::{Folder, Process, get};
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

const LISTEN: &str = "listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}\n";

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let folder = Folder::with("soft", LISTEN);
    let mut process = Process::start_after("ulimit -Sn 64 && ulimit -Hn 400", &folder.0);
    let admin = process.address("admin");
    let (_, metrics) = get(&admin, "/metrics");
    assert!(metrics.contains("\nprocess_max_fds 400\n"), "{metrics}");
}

#[test]
fn a_flood_of_connections_leaves_room_for_the_admin_api() {
    let folder = Folder::with("flood", LISTEN);
    let mut process = Process::start_after("ulimit -n 256", &folder.0);
    let (http, admin) = (process.address("http"), process.address("admin"));
    let flood: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(&http).unwrap()).collect();
    // All but the last connections are closed for others. When the hundredth is closed, descriptors
    // were at their scarcest.
    flood[100].set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!((&flood[100]).read(&mut [0]).unwrap(), 0);
    assert_eq!(get(&admin, "/readyz").0, 200);
    let (_, metrics) = get(&admin, "/metrics");
    assert!(metrics.contains("tollgate_accept_errors_total{front=\"http\"} 0\n"), "{metrics}");
}
