//! Measures the cost of a decision in Redis: one script call each, the script for many, and other
//! solutions.

use crate::contender::Programs;
use crate::redis::{Client, Redis, command};
use crate::table::{Rounds, median, ratio, spread, verdict};
use crate::{Effort, LOAD_CORE, process::SERVER_CORE};
use std::error::Error;

const CONNECTIONS: usize = 8;
const KEYS: usize = 10_000;
/// A thousand per second, a million at once: everything is admitted.
const INTERVAL_US: u64 = 1_000;
const BURST: u64 = 1_000_000;
/// The time in which a full bucket drains: the period of the rate.
const FULL_US: u64 = BURST * INTERVAL_US;
const TARGET: f64 = 0.35;

/// The shipped script for requests with one charge each.
const OURS: &str = concat!(
    include_str!("../../../crates/tollgate-core/src/algorithm/muldiv.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/step.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/keys_declared.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/decide_single.lua"),
);
/// The shipped script for requests with several charges.
const OURS_OF_SEVERAL: &str = concat!(
    include_str!("../../../crates/tollgate-core/src/algorithm/muldiv.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/step.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/keys_declared.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/decide_fast.lua"),
);
/// The shipped script for requests with one charge each, on all slots of a cluster's primary.
const OURS_OVER_SLOTS: &str = concat!(
    "#!lua flags=allow-cross-slot-keys\n",
    include_str!("../../../crates/tollgate-store/src/redis/script/step.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/keys_given.lua"),
    include_str!("../../../crates/tollgate-store/src/redis/script/decide_single.lua"),
);
/// The least work of a script over slots: it reads and changes every key, and decides nothing.
const FLOOR_OVER_SLOTS: &str = "#!lua flags=allow-cross-slot-keys
local call, values = redis.call, {}
for i = 6, #ARGV do values[i - 5] = call('GET', ARGV[i]) end
for i = 6, #ARGV do call('INCRBY', ARGV[i], '1000') end
return values";
/// Decisions per call over slots, connections, and the target. Calls with one decision come from
/// many nodes.
const OVER_SLOTS: [(usize, usize, Option<f64>); 4] =
    [(1, CONNECTIONS, None), (5, 1, None), (16, 1, Some(0.55)), (64, 1, Some(0.45))];
/// Kinds of charges, in the scripts' form: gcra, a sliding and a fixed window of a minute.
const GCRA: [u64; 8] =
    [(BURST - 1) * INTERVAL_US + 1, 0, INTERVAL_US, 0, 1, BURST, FULL_US, FULL_US];
const SLIDING: [u64; 8] = [BURST, 60_000_000, 1, 1, 0, 0, 0, 0];
const FIXED: [u64; 8] = [BURST, 60_000_000, 1, 0, 0, 0, 0, 0];
/// Limits of one request.
const LIMITS: [(&str, &[[u64; 8]]); 6] = [
    ("gcra", &[GCRA]),
    ("sliding window", &[SLIDING]),
    ("fixed window", &[FIXED]),
    ("two sliding windows", &[SLIDING, SLIDING]),
    ("gcra and sliding window", &[GCRA, SLIDING]),
    ("gcra, sliding and fixed window", &[GCRA, SLIDING, FIXED]),
];
const LIMITS_TARGET: f64 = 1.5;
const BATCH: usize = 64;
/// A handwritten script for one request.
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
/// A handwritten script for many requests, with nothing but the decisions.
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

/// The data sent at once over a connection: bytes, replies, decisions.
struct Shot {
    bytes: Vec<u8>,
    replies: usize,
    decisions: usize,
}

struct Row {
    name: String,
    shot: Box<dyn FnMut() -> Shot>,
}

/// Prints the table.
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
    limits(&mut clients[0], effort)?;
    over_slots(effort)
}

/// Calls over the slots of a cluster's primary, beside one call per decision. Nodes send sixteen of
/// the latter together, and so does this benchmark.
fn over_slots(effort: Effort) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(SERVER_CORE, &["--cluster-enabled", "yes"])?;
    let mut clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| redis.connect()).collect::<Result<_, _>>()?;
    let client = &mut clients[0];
    client.ask(&[b"CLUSTER", b"ADDSLOTSRANGE", b"0", b"16383"])?;
    redis.until_cluster_ok()?;
    let mut load = |text: &str| client.ask(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
    let (each, ours, floor) = (load(OURS)?, load(OURS_OVER_SLOTS)?, load(FLOOR_OVER_SLOTS)?);
    let arguments = || [Vec::new(), b"1000".to_vec(), packed(&[GCRA]), Vec::new(), Vec::new()];
    let mut single_keys = keys();
    let shot = move || {
        let call = |key: Vec<u8>| {
            let given = arguments();
            let parts = [&b"EVALSHA"[..], &each, b"1", &key].into_iter();
            command(&parts.chain(given.iter().map(Vec::as_slice)).collect::<Vec<_>>())
        };
        let bytes = (0..16).flat_map(|_| call(single_keys.next())).collect();
        Shot { bytes, replies: 16, decisions: 16 }
    };
    let mut rows = vec![(Row { name: "a call each".into(), shot: Box::new(shot) }, 1, None)];
    for (name, sha) in [("ours", ours), ("bare GET and INCRBY", floor)] {
        for (batch, connections, target) in OVER_SLOTS {
            let (sha, mut keys) = (sha.clone(), keys());
            let shot = move || {
                let parts = [b"EVALSHA".to_vec(), sha.clone(), b"0".to_vec()].into_iter();
                let names = (0..batch).map(|_| keys.next());
                let parts: Vec<_> = parts.chain(arguments()).chain(names).collect();
                let bytes = command(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
                Shot { bytes, replies: 1, decisions: batch }
            };
            let name = format!("{name}, {batch} to a call");
            let target = target.filter(|_| name.starts_with("ours"));
            rows.push((Row { name, shot: Box::new(shot) }, connections, target));
        }
    }
    let mut figures: Vec<Rounds> = rows.iter().map(|_| Rounds::new()).collect();
    for round in 0..=effort.rounds {
        for ((row, connections, _), figures) in rows.iter_mut().zip(&mut figures) {
            let clients = &mut clients[..*connections];
            let cost = turn(&redis, clients, row, effort.requests / 20)?;
            // The first round fills the keys.
            if round > 0 {
                figures.push(cost);
            }
        }
    }
    println!("\n### Over the slots of a primary, gcra\n");
    println!("| | connections | us a decision | spread | of a call each | target | |");
    println!("|---|---|---|---|---|---|---|");
    for ((row, connections, target), own) in rows.iter().zip(&figures) {
        let of = ratio(own, &figures[0]);
        let target = target.map_or(" | ".to_owned(), |target| verdict(of, target, ""));
        let (middle, range) = (median(own), spread(own, 2));
        println!("| {} | {connections} | {middle:.2} | {range} | {of:.2} | {target} |", row.name);
    }
    Ok(())
}

fn packed(kinds: &[[u64; 8]]) -> Vec<u8> {
    kinds.iter().flatten().flat_map(|number| number.to_be_bytes().into_iter().skip(1)).collect()
}

/// Script time of one charge under other limits, 64 requests per call, from `INFO commandstats`.
fn limits(client: &mut Client, effort: Effort) -> Result<(), Box<dyn Error>> {
    let one = client.ask(&[b"SCRIPT", b"LOAD", OURS.as_bytes()])?;
    let several = client.ask(&[b"SCRIPT", b"LOAD", OURS_OF_SEVERAL.as_bytes()])?;
    let mut figures: Vec<Rounds> = LIMITS.iter().map(|_| Rounds::new()).collect();
    for round in 0..=effort.rounds {
        for (row, ((_, kinds), figures)) in LIMITS.iter().zip(&mut figures).enumerate() {
            let (mut keys, mut charges) = (keys(), 0);
            client.ask(&[b"CONFIG", b"RESETSTAT"])?;
            while charges < effort.requests / 10 {
                let script = if kinds.len() == 1 { &one } else { &several };
                client.ask(
                    &batch(script, kinds, row, &mut keys)
                        .iter()
                        .map(Vec::as_slice)
                        .collect::<Vec<_>>(),
                )?;
                charges += BATCH * kinds.len();
            }
            let info = client.ask(&[b"INFO", b"commandstats"])?;
            // The first round fills the keys.
            if round > 0 {
                figures.push(script_us(&info)? / charges as f64);
            }
        }
    }
    println!("\n### Script time a charge, {BATCH} requests to a call\n");
    println!("| limits of a request | us a charge | spread | of gcra | target | |");
    println!("|---|---|---|---|---|---|");
    for ((name, _), own) in LIMITS.iter().zip(&figures) {
        let of = ratio(own, &figures[0]);
        let (middle, range) = (median(own), spread(own, 2));
        println!(
            "| {name} | {middle:.2} | {range} | {of:.2} | {} |",
            verdict(of, LIMITS_TARGET, "")
        );
    }
    Ok(())
}

/// A call that decides 64 requests, each with one key per limit.
fn batch(script: &[u8], kinds: &[[u64; 8]], row: usize, keys: &mut Keys) -> Vec<Vec<u8>> {
    let (mut names, mut program) = (Vec::new(), Vec::new());
    for _ in 0..BATCH {
        program.extend([1, kinds.len() as u8]);
        let key = keys.next();
        for kind in 1..=kinds.len() {
            names.push([&key[..], format!("{row}{kind}").as_bytes()].concat());
            program.extend((names.len() as u16).to_be_bytes().into_iter().chain([0, kind as u8]));
        }
    }
    let (modes, program) = match kinds.len() {
        1 => (Vec::new(), Vec::new()),
        count => (vec![1; count], program),
    };
    let count = names.len().to_string().into_bytes();
    let mut parts = vec![b"EVALSHA".to_vec(), script.to_vec(), count];
    parts.extend(names);
    parts.extend([Vec::new(), b"1000".to_vec(), packed(kinds), modes, program]);
    parts
}

fn script_us(info: &[u8]) -> Result<f64, Box<dyn Error>> {
    let info = String::from_utf8_lossy(info);
    let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
    let us = line.and_then(|line| line.split("usec=").nth(1)?.split(',').next()?.parse().ok());
    us.ok_or_else(|| "INFO has no line about EVALSHA".into())
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
    let ours_arguments = [Vec::new(), b"1000".to_vec(), packed(&[GCRA]), Vec::new(), Vec::new()];
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
        // A step coprime to the number of keys reaches all of them.
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
