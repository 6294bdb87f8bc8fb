//! Generates rows to measure `tollgate simulate`, and the same requests as an nginx log for
//! `tollgate replay`. Ten thousand users send a thousand requests a second. Each run is the same.
//!
//! ```sh
//! cargo run --release -p tollgate-cli --example rows 5000000 > rows.jsonl
//! cargo run --release -p tollgate-cli --example rows 5000000 nginx > access.log
//! cargo build --release
//! cd crates/tollgate-cli/examples; PATH=$PWD/../../../target/release:$PATH
//! time tollgate simulate --config one-limit.yaml --requests ../../../rows.jsonl > /dev/null
//! time tollgate replay --config one-limit.yaml ../../../access.log
//! time tollgate simulate --config three-limits.yaml --requests ../../../rows.jsonl > /dev/null
//! ```

use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let rows: u64 =
        std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let is_log = std::env::args().nth(2).is_some_and(|form| form == "nginx");
    let mut out = BufWriter::new(io::stdout().lock());
    let mut random: u64 = 1;
    for row in 0..rows {
        // Knuth's generator; its upper bits are random enough to choose a user.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (user, item) = ((random >> 33) % 10_000, row % 77);
        if is_log {
            let s = row / 1_000;
            // Times from 2023-11-14 22:13:20 on, for a day at most.
            let of_day = (80_000 + s) % 86_400;
            let day = 14 + (80_000 + s) / 86_400;
            let (h, m, s) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
            writeln!(
                out,
                "192.0.2.{} - u{user} [{day:02}/Nov/2023:{h:02}:{m:02}:{s:02} +0000] \
                 \"GET /api/items/{item} HTTP/1.1\" 200 612 \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
                user % 250
            )?;
            continue;
        }
        writeln!(
            out,
            r#"{{"time": {}.{:03}, "attributes": {{"user": "u{user}", "path": "/api/items/{item}"}}, "cost": 1}}"#,
            1_700_000_000 + row / 1_000,
            row % 1_000,
        )?;
    }
    out.flush()
}
