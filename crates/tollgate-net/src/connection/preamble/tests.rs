//! Valid and invalid PROXY protocol headers.

use super::read_proxy_header as read;
use std::net::SocketAddr;

fn parse(bytes: &[u8]) -> Result<(Option<SocketAddr>, usize), ()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut rest = bytes;
    let source = runtime.block_on(read(&mut rest)).map_err(drop)?;
    Ok((source, rest.len()))
}

fn header(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[command, family], &length, addresses, b"GET"].concat()
}

#[test]
fn sources_are_read_and_nothing_beyond() {
    let four = b"\xc0\0\x02\x07\x7f\0\0\x01\x30\x39\0\x50";
    let mut six = [0; 36];
    six[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    six[15] = 7;
    six[32..34].copy_from_slice(&12345_u16.to_be_bytes());
    let with_more = [four.as_slice(), b"\x03\0\x04abcd"].concat();
    let cases: [(Vec<u8>, Option<&str>); 7] = [
        (header(0x21, 0x11, four), Some("192.0.2.7:12345")),
        (header(0x21, 0x12, four), Some("192.0.2.7:12345")),
        (header(0x21, 0x11, &with_more), Some("192.0.2.7:12345")),
        (header(0x21, 0x21, &six), Some("[2001:db8::7]:12345")),
        (header(0x20, 0x00, b""), None),
        (header(0x20, 0x11, four), None),
        (header(0x21, 0x31, &[0; 216]), None),
    ];
    for (bytes, expected) in cases {
        let expected = expected.map(|text| text.parse().unwrap());
        assert_eq!(parse(&bytes), Ok((expected, 3)), "{bytes:?}");
    }
}

#[test]
fn anything_else_is_an_error() {
    let four = b"\xc0\0\x02\x07\x7f\0\0\x01\x30\x39\0\x50";
    let good = header(0x21, 0x11, four);
    for len in 0..good.len() - 3 {
        assert_eq!(parse(&good[..len]), Err(()), "{len} bytes");
    }
    let bad = [
        header(0x11, 0x11, four),
        header(0x22, 0x11, four),
        header(0x21, 0x13, four),
        header(0x21, 0x11, &four[..11]),
        header(0x21, 0x21, &[0; 35]),
        header(0x21, 0x11, &[0; 4097]),
        b"PROXY TCP4 1.2.3.4 1.2.3.4 80 80\r\n".to_vec(),
    ];
    for bytes in bad {
        assert_eq!(parse(&bytes), Err(()), "{bytes:?}");
    }
}
