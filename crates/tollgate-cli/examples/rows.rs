//! Rows to measure `tollgate simulate` with: ten thousand users, a thousand requests a second, the
//! same each time.
//!
//! ```sh
//! cargo run --release -p tollgate-cli --example rows 5000000 > rows.jsonl
//! cargo build --release
//! cd crates/tollgate-cli/examples; PATH=$PWD/../../../target/release:$PATH
//! time tollgate simulate --config one-limit.yaml --requests ../../../rows.jsonl > /dev/null
//! time tollgate simulate --config three-limits.yaml --requests ../../../rows.jsonl > /dev/null
//! ```

use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let rows: u64 =
        std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut random: u64 = 1;
    for row in 0..rows {
        // Knuth's generator; the upper bits are good enough to choose a user by.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(
            out,
            r#"{{"time": {}.{:03}, "attributes": {{"user": "u{}", "path": "/api/items/{}"}}, "cost": 1}}"#,
            1_700_000_000 + row / 1_000,
            row % 1_000,
            (random >> 33) % 10_000,
            row % 77,
        )?;
    }
    out.flush()
}
