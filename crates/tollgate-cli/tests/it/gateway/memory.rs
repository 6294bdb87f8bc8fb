//! After many slow clients have disconnected, their memory is returned to the system.

use crate::serve::process::{Folder, Process, get};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use tollgate_faults::clock::wait_until;

const CLIENTS: usize = 3_000;
/// The memory that may remain, of the tens of megabytes that the clients used; also for a debug
/// build.
const KEPT_MAX: u64 = 20 << 20;

/// Half a request per client: half of a head, or half of a body.
fn slow_clients(address: SocketAddr) -> Vec<TcpStream> {
    let body = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                content-length: 60000\r\n\r\n";
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| super::connect(address)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let first = if number % 2 == 0 { "GET / HTTP/1.1\r\nhost: a\r\nx-slow: " } else { body };
        client.write_all(first.as_bytes()).unwrap();
    }
    for _ in 0..8 {
        // If the head is too long, the kernel may already have closed the connection.
        clients.iter_mut().for_each(|client| drop(client.write_all(&[b'x'; 700])));
    }
    clients
}

#[test]
fn what_a_crowd_used_goes_back_to_the_system() {
    let wanted = CLIENTS as u64 + 500;
    let allowed = rlimit::increase_nofile_limit(wanted).unwrap();
    assert!(allowed >= wanted, "raise `ulimit -Hn` to {wanted}");
    let file = format!(
        "listen: {{gateway: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0'}}\n\
         upstream: http://{}\nlimits: [{{name: all, key: [ip], rate: 4000000000/day}}]\n",
        super::backend()
    );
    let folder = Folder::with("crowd", &file);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let fronts: [(&str, SocketAddr); 2] =
        ["gateway", "http"].map(|front| (front, process.address(front).parse().unwrap()));
    let admin = process.address("admin");
    let open = |front: &str| -> usize {
        let name = format!("tollgate_connections_open{{front=\"{front}\"}} ");
        let text = get(&admin, "/metrics").1;
        text.lines().find_map(|line| line.strip_prefix(&name)?.trim().parse().ok()).unwrap()
    };
    assert_eq!(get(&admin, "/metrics").0, 200);
    let before = process.resident();
    for (front, address) in fronts {
        let clients = slow_clients(address);
        assert!(wait_until(super::PATIENCE, || open(front) == CLIENTS), "{front}: {}", open(front));
        let during = process.resident();
        drop(clients);
        assert!(wait_until(super::PATIENCE, || open(front) == 0), "{front}: {} stay", open(front));
        let is_given_back = wait_until(super::PATIENCE, || process.resident() < before + KEPT_MAX);
        let after = process.resident();
        println!("{front}: {} KiB, {} KiB, {} KiB", before >> 10, during >> 10, after >> 10);
        assert!(is_given_back, "{front}: {} KiB stay", (after - before) >> 10);
    }
}
