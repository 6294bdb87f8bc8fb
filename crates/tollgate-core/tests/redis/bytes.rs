//! What a key costs in Redis.

use crate::server::{Reply, Server};
use tollgate_core::lua;

/// Keeps a TAT under a key whose name is as long as the ones a store would use, with an expiry.
const DRIVER: &str = "
local tat = { us = tonumber(ARGV[1]), fraction = tonumber(ARGV[2]), count = tonumber(ARGV[3]) }
redis.call('SET', KEYS[1], gcra.encode(tat), 'PX', 60000)
return {}";

fn bytes_of(server: &mut Server, us: u64, fraction: u32, count: u32) -> i64 {
    let script = lua::compose(lua::parts("gcra").unwrap().iter().copied().chain([DRIVER]));
    let key = "tg:{0123456789abcdef}:0123456789ab";
    server.eval(&script, key, &[us.to_string(), fraction.to_string(), count.to_string()]);
    match server.call(["MEMORY", "USAGE", key]) {
        Reply::Integer(bytes) => bytes,
        other => panic!("a number was expected, not {other:?}"),
    }
}

#[test]
fn a_gcra_key_takes_at_most_110_bytes() {
    let mut server = Server::start();
    let whole = bytes_of(&mut server, 1_700_000_000_000_000, 0, 0);
    let fraction = bytes_of(&mut server, 1_700_000_000_000_000, 3, 7);
    let thousands = bytes_of(&mut server, 1_700_000_000_000_000, 9_973, 65_535);
    let most = bytes_of(&mut server, tollgate_core::MAX_US - 1, u32::MAX - 1, u32::MAX);
    println!("gcra: {whole} bytes whole, {fraction} with a fraction, {thousands}, {most} at most");
    assert!(whole.max(fraction).max(thousands) <= 110, "{whole} {fraction} {thousands}");
    assert!(most <= 120, "{most}");
}
