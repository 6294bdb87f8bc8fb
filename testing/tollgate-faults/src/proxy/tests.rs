use super::{Faults, HangingListener, Proxy};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Starts a server that sends everything back.
fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut writer);
            });
        }
    });
    port
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream
}

fn exchange(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text)?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).map(|()| answer)
}

fn is_silence(answer: std::io::Result<Vec<u8>>) -> bool {
    answer.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn it_passes_everything_on_however_it_is_sliced_and_delayed() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut stream = connect(proxy.port());
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let text: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
    for faults in [
        Faults::default(),
        Faults { slice: Some(997), ..Faults::default() },
        Faults {
            latency: Duration::from_millis(2),
            jitter: Duration::from_millis(9),
            ..Faults::default()
        },
    ] {
        proxy.set(faults);
        assert_eq!(exchange(&mut stream, &text).unwrap(), text);
    }
    assert_eq!(proxy.accepted(), 1);
}

#[test]
fn it_swallows_one_way_or_both_and_pauses_without_loss() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut stream = connect(proxy.port());
    assert_eq!(exchange(&mut stream, b"one").unwrap(), b"one");
    for faults in [
        Faults { no_requests: true, ..Faults::default() },
        Faults { no_replies: true, ..Faults::default() },
    ] {
        proxy.set(faults);
        assert!(is_silence(exchange(&mut stream, b"gone")));
    }
    proxy.set(Faults { paused: true, ..Faults::default() });
    assert!(is_silence(exchange(&mut stream, b"late")));
    proxy.set(Faults::default());
    let mut answer = [0; 4];
    stream.set_read_timeout(None).unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"late", "and nothing of what was swallowed");
    proxy.set(Faults { swallow_new: true, ..Faults::default() });
    assert!(is_silence(exchange(&mut connect(proxy.port()), b"nobody")));
    assert_eq!(exchange(&mut stream, b"two").unwrap(), b"two", "those that were there stay");
}

#[test]
fn a_reset_is_a_reset_and_the_next_connection_is_well() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut stream = connect(proxy.port());
    assert_eq!(exchange(&mut stream, b"one").unwrap(), b"one");
    proxy.reset();
    stream.set_read_timeout(None).unwrap();
    let error = stream.read_exact(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(exchange(&mut connect(proxy.port()), b"two").unwrap(), b"two");
}

#[test]
fn a_connection_to_a_hanging_address_never_comes_about() {
    let hanging = HangingListener::start().unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, hanging.port()));
    let error = TcpStream::connect_timeout(&address, Duration::from_millis(200)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(hanging.queued() > 0);
}
