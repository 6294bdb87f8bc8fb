//! A listening socket that outlives the processes that serve it.

use super::{backend, connect, read_head};
use crate::serve::process::{Folder, Process};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

fn folder(name: &str, listen: &str) -> Folder {
    Folder::with(name, &format!("listen: {{{listen}}}\nupstream: http://{}\n", backend()))
}

/// Sends one request on the given connection, or on a new one. Returns whether it was answered.
fn ask(address: SocketAddr, kept: &mut Option<TcpStream>) -> bool {
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => match TcpStream::connect(address) {
            Ok(stream) => stream,
            Err(_) => return false,
        },
    };
    stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
    if stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").is_err() {
        return false;
    }
    let Some(head) = read_head(&mut stream) else { return false };
    let whole = stream.read_exact(&mut [0; 5]).is_ok();
    if !head.contains("connection: close") {
        *kept = Some(stream);
    }
    whole && head.starts_with("HTTP/1.1 200")
}

#[test]
fn a_socket_is_known_by_its_name_or_its_address() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let by_name = folder("by-name", "gateway: '127.0.0.1:0'");
    let by_address = folder("by-address", &format!("gateway: '{address}'"));
    for (folder, name) in
        [(&by_name, "gateway"), (&by_address, ""), (&by_address, "tollgate.socket")]
    {
        let mut process = Process::start_on(&socket, name, &folder.0);
        assert_eq!(process.address("gateway"), address.to_string(), "{name}");
        assert!(ask(address, &mut None), "{name}");
        process.signal("TERM");
        assert!(process.end().success());
    }
}

#[test]
fn a_socket_that_nobody_wants_is_an_error() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = folder("unclaimed", "gateway: '127.0.0.1:0'");
    let mut process = Process::start_on(&socket, "http", &folder.0);
    assert_eq!(process.end().code(), Some(2));
    let text = process.lines.join("\n");
    assert!(text.contains(&address.to_string()) && text.contains("FileDescriptorName"), "{text}");
}

/// A client that connects between the end of one process and the start of the next waits, and is
/// served.
#[test]
fn nobody_is_refused_while_no_process_is_there() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = folder("between", "gateway: '127.0.0.1:0'");
    let mut process = Process::start_on(&socket, "gateway", &folder.0);
    process.address("gateway");
    process.signal("TERM");
    assert!(process.end().success());
    let mut waiting = connect(address);
    waiting.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let _next = Process::start_on(&socket, "gateway", &folder.0);
    assert!(read_head(&mut waiting).unwrap().starts_with("HTTP/1.1 200"));
}

/// Each new process serves before the old one ends, many times, and every request is answered.
#[test]
fn processes_that_follow_each_other_lose_no_request() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = folder("handover", "gateway: '127.0.0.1:0'");
    let start = || {
        let mut process = Process::start_on(&socket, "gateway", &folder.0);
        process.address("gateway");
        process
    };
    let mut process = start();
    let (stop, asked, lost): (Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>) =
        Default::default();
    let load: Vec<_> = (0..8)
        .map(|number| {
            let (stop, asked, lost) = (stop.clone(), asked.clone(), lost.clone());
            thread::spawn(move || {
                let mut kept = None;
                while !stop.load(SeqCst) {
                    lost.fetch_add(usize::from(!ask(address, &mut kept)), SeqCst);
                    asked.fetch_add(1, SeqCst);
                    if number % 2 == 0 {
                        // Half of the clients connect anew for each request.
                        kept = None;
                    }
                }
            })
        })
        .collect();
    let more = || {
        let until = asked.load(SeqCst) + 500;
        while asked.load(SeqCst) < until {
            thread::yield_now();
        }
    };
    for _ in 0..3 {
        more();
        let next = start();
        more();
        let mut last = std::mem::replace(&mut process, next);
        last.signal("TERM");
        assert!(last.end().success());
        more();
    }
    stop.store(true, SeqCst);
    load.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(lost.load(SeqCst), 0, "of {}", asked.load(SeqCst));
}
