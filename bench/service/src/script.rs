//! What a decision costs Redis: one script call each, the script that decides for many, and what others do.

use crate::contender::Programs;
use crate::redis::{Client, Redis, command};
use crate::table::{Rounds, median, ratio, spread, verdict};
use crate::{Effort, LOAD_CORE, process::SERVER_CORE};
use std::error::Error;

const CONNECTIONS: usize = 8;
const KEYS: usize = 10_000;
/// A thousand a second, a million at once: everything is admitted.
const INTERVAL_US: u64 = 1_000;
const BURST: u64 = 1_000_000;
const TARGET: f64 = 0.35;

/// The script that ships, for requests with one charge each.
const OURS: &str = concat!(
    include_str!("../../../crates/tollgate-store/src/redis/script/step.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/decide_single.lua"),
);
/// What one writes by hand, for one request.
const ONE: &str = "local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tat = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
local new = tat + interval * cost
local room = now + burst * interval - new
if room < 0 then
  return { 0, math.floor((room + interval * cost) / interval), -room, tat - now }
end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000) + 1000)
return { 1, math.floor(room / interval), 0, new - now }";
/// The same for many requests, with nothing but the decisions.
const MANY: &str = "local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local values, out = redis.call('MGET', unpack(KEYS)), {}
for i = 1, #KEYS do
  local tat = tonumber(values[i] or 0)
  if tat < now then tat = now end
  local new = tat + interval
  if new - now <= burst * interval then
    redis.call('SET', KEYS[i], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000) + 1000)
    out[i] = 1
  else
    out[i] = 0
  end
end
return out";

/// What is sent at once over a connection: bytes, replies, decisions.
struct Shot {
    bytes: Vec<u8>,
    replies: usize,
    decisions: usize,
}

struct Row {
    name: String,
    shot: Box<dyn FnMut() -> Shot>,
}

/// The table.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let module = Some(&programs.redis_cell).filter(|path| path.exists());
    let module = module.map(|path| path.to_string_lossy().into_owned());
    let arguments: Vec<&str> = module.iter().flat_map(|path| ["--loadmodule", path]).collect();
    let redis = Redis::start(SERVER_CORE, &arguments)?;
    let mut clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| redis.connect()).collect::<Result<_, _>>()?;
    let mut rows = rows(&mut clients[0], module.is_some())?;
    let mut figures: Vec<Rounds> = rows.iter().map(|_| Rounds::new()).collect();
    let decisions = effort.requests / 10;
    for round in 0..=effort.rounds {
        for (row, figures) in rows.iter_mut().zip(&mut figures) {
            let cost = turn(&redis, &mut clients, row, decisions)?;
            // The first round fills the keys.
            if round > 0 {
                figures.push(cost);
            }
        }
    }
    print(&rows, &figures);
    Ok(())
}

fn turn(
    redis: &Redis,
    clients: &mut [Client],
    row: &mut Row,
    decisions: usize,
) -> Result<f64, Box<dyn Error>> {
    let mut shots: Vec<Vec<Shot>> = Vec::new();
    let mut made = 0;
    while made < decisions {
        let volley: Vec<Shot> = clients.iter().map(|_| (row.shot)()).collect();
        made += volley.iter().map(|shot| shot.decisions).sum::<usize>();
        shots.push(volley);
    }
    let before = redis.cpu_us();
    for volley in &shots {
        for (client, shot) in clients.iter_mut().zip(volley) {
            client.send(&shot.bytes)?;
        }
        for (client, shot) in clients.iter_mut().zip(volley) {
            for _ in 0..shot.replies {
                client.reply().map_err(|error| format!("{}: {error}", row.name))?;
            }
        }
    }
    Ok((redis.cpu_us() - before) / made as f64)
}

fn rows(client: &mut Client, cell: bool) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut load = |text: &str| client.ask(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
    let (one, many, ours) = (load(ONE)?, load(MANY)?, load(OURS)?);
    let params = [INTERVAL_US.to_string(), BURST.to_string()];
    let ways: Vec<u8> = [(BURST - 1) * INTERVAL_US + 1, 0, INTERVAL_US, 0, 1, 1_000]
        .iter()
        .flat_map(|number| number.to_be_bytes().into_iter().skip(1))
        .collect();
    let mut keys = keys();
    let mut rows = Vec::new();
    let mut singly = |name: String, depth: usize, make: Box<dyn Fn(&[u8]) -> Vec<u8>>| {
        let mut keys = keys.clone();
        let shot = move || {
            let bytes = (0..depth).flat_map(|_| make(&keys.next())).collect();
            Shot { bytes, replies: depth, decisions: depth }
        };
        rows.push(Row { name, shot: Box::new(shot) });
    };
    for depth in [1, 16, 64] {
        let (sha, [interval, burst]) = (one.clone(), params.clone());
        let make = move |key: &[u8]| {
            command(&[b"EVALSHA", &sha, b"1", key, interval.as_bytes(), burst.as_bytes(), b"1"])
        };
        singly(format!("one script call each, depth {depth}"), depth, Box::new(make));
    }
    singly("bare INCR, depth 64".into(), 64, Box::new(|key| command(&[b"INCR", &key[..20]])));
    if cell {
        for depth in [16, 64] {
            let make = |key: &[u8]| {
                let name = [b"cell", key].concat();
                command(&[b"CL.THROTTLE", &name, b"1000000", b"1000", b"1", b"1"])
            };
            singly(format!("redis-cell, depth {depth}"), depth, Box::new(make));
        }
    }
    let ours_arguments = [Vec::new(), b"1000".to_vec(), ways, Vec::new(), Vec::new()];
    let many_arguments = params.map(String::into_bytes).to_vec();
    for (name, sha, arguments) in
        [("written by hand", many, many_arguments), ("ours", ours, ours_arguments.to_vec())]
    {
        for batch in [16, 64] {
            let (sha, arguments, mut keys) = (sha.clone(), arguments.clone(), keys.split());
            let shot = move || {
                let names: Vec<Vec<u8>> = (0..batch).map(|_| keys.next()).collect();
                let count = batch.to_string();
                let mut parts: Vec<&[u8]> = vec![b"EVALSHA", &sha, count.as_bytes()];
                parts.extend(names.iter().chain(&arguments).map(Vec::as_slice));
                Shot { bytes: command(&parts), replies: 1, decisions: batch }
            };
            rows.push(Row { name: format!("{name}, {batch} to a call"), shot: Box::new(shot) });
        }
    }
    Ok(rows)
}

/// Keys in an order without a pattern, none twice within a batch.
#[derive(Clone)]
struct Keys(usize);

fn keys() -> Keys {
    Keys(0)
}

impl Keys {
    fn next(&mut self) -> Vec<u8> {
        // A step that has no divisor in common with their number meets all of them.
        self.0 = (self.0 + 7_919) % KEYS;
        format!("tg:{{{:06}}}:{:021}", self.0, self.0).into_bytes()
    }

    fn split(&mut self) -> Self {
        self.next();
        self.clone()
    }
}

fn print(rows: &[Row], figures: &[Rounds]) {
    println!("\n### Processor time of Redis a decision, gcra\n");
    println!(
        "{CONNECTIONS} connections, {KEYS} keys, all admitted; core {SERVER_CORE}, the load on core {LOAD_CORE}.\n"
    );
    println!("| | us a decision | spread | of one script call each, depth 16 | target | |");
    println!("|---|---|---|---|---|---|");
    let base = rows.iter().position(|row| row.name.ends_with("each, depth 16")).unwrap_or(0);
    for (row, own) in rows.iter().zip(figures) {
        let of = ratio(own, &figures[base]);
        let target = match row.name.starts_with("ours") {
            true => verdict(of, TARGET, ""),
            false => " | ".into(),
        };
        let (middle, range) = (median(own), spread(own, 2));
        println!("| {} | {middle:.2} | {range} | {of:.2} | {target} |", row.name);
    }
}
