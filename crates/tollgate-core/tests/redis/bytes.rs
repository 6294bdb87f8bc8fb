//! The memory of a key in Redis.

use crate::server::{Reply, Server};
use tollgate_core::{MAX_US, lua};

/// Stores a TAT with an expiry, under a key as long as those of a store.
const DRIVER: &str = "
local tat = { us = tonumber(ARGV[1]), fraction = tonumber(ARGV[2]), count = tonumber(ARGV[3]) }
tat.ahead = tonumber(ARGV[4])
redis.call('SET', KEYS[1], gcra.encode(tat), 'PX', 60000)
return {}";

fn bytes_of(server: &mut Server, us: u64, (fraction, count): (u32, u32), ahead_us: u64) -> i64 {
    let script = lua::compose(lua::parts("gcra").unwrap().iter().copied().chain([DRIVER]));
    let key = "tg:{0123456789abcdef}:0123456789ab";
    let numbers = [us, fraction.into(), count.into(), ahead_us];
    server.eval(&script, key, &numbers.map(|number| number.to_string()));
    match server.call(["MEMORY", "USAGE", key]) {
        Reply::Integer(bytes) => bytes,
        other => panic!("a number was expected, not {other:?}"),
    }
}

#[test]
fn a_gcra_key_takes_at_most_110_bytes() {
    let mut server = Server::start();
    let whole = bytes_of(&mut server, 1_700_000_000_000_000, (0, 0), 0);
    let fraction = bytes_of(&mut server, 1_700_000_000_000_000, (3, 7), 0);
    let thousands = bytes_of(&mut server, 1_700_000_000_000_000, (9_973, 65_535), 0);
    let burst = bytes_of(&mut server, 1_700_000_000_000_000, (0, 0), 6_000_000);
    let most = bytes_of(&mut server, MAX_US - 1, (u32::MAX - 1, u32::MAX), MAX_US);
    println!("gcra: {whole} bytes whole, {fraction} with a fraction, {thousands}, {most} at most");
    println!("gcra: {burst} bytes with a burst of its own");
    let usual = [whole, fraction, thousands];
    assert!(usual.iter().all(|bytes| *bytes <= 110), "{usual:?}");
    assert!(burst.max(most) <= 120, "{burst} {most}");
}
