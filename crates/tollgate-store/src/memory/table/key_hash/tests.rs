use super::KeyHash;
use std::collections::HashSet;

const HASH: KeyHash =
    KeyHash::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0]);

/// Lengths of every branch, and of several blocks.
const LENGTHS: std::ops::RangeInclusive<usize> = 0..=67;

fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 37 + len) as u8).collect()
}

#[test]
fn every_bit_of_a_key_changes_about_half_of_the_hash() {
    for len in LENGTHS {
        let key = sample(len);
        let mut changed = Vec::new();
        for bit in 0..8 * len {
            let mut other = key.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            changed.push((HASH.hash(&key) ^ HASH.hash(&other)).count_ones());
        }
        assert!(changed.iter().all(|bits| (10..=54).contains(bits)), "length {len}: {changed:?}");
    }
}

#[test]
fn the_length_counts() {
    let hashes: HashSet<u64> = LENGTHS.map(|len| HASH.hash(&vec![0; len])).collect();
    assert_eq!(hashes.len(), LENGTHS.count());
}

#[test]
fn blocks_do_not_commute() {
    let (a, b, c) = ([1_u8; 16], [2_u8; 16], [3_u8; 16]);
    let hash = |blocks: [[u8; 16]; 3]| HASH.hash(&blocks.concat());
    let orders = [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]];
    assert_eq!(orders.map(hash).into_iter().collect::<HashSet<u64>>().len(), orders.len());
}

#[test]
fn each_secret_counts() {
    let secrets = [[2, 3, 5], [7, 3, 5], [2, 7, 5], [2, 3, 7]].map(|secrets: [u64; 3]| {
        KeyHash::new(secrets.map(|secret| secret.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    });
    for len in LENGTHS {
        let hashes: HashSet<u64> = secrets.iter().map(|hash| hash.hash(&sample(len))).collect();
        assert_eq!(hashes.len(), secrets.len(), "length {len}");
    }
}

/// The shares of 4,096 shards, and of as many homes, vary as those of random numbers do: chi-square
/// has a mean of 4,095 and a deviation of 90.
#[test]
fn numbered_keys_spread_evenly() {
    const KEYS: usize = 1 << 18;
    let names: [fn(usize) -> Vec<u8>; 4] = [
        |n| format!("user:{n:010}").into_bytes(),
        |n| format!("tenant-{n}/api/v1/search").into_bytes(),
        |n| (n as u32).to_be_bytes().to_vec(),
        |n| (n as u64).to_le_bytes().to_vec(),
    ];
    for (kind, name) in names.iter().enumerate() {
        let (mut shards, mut homes) = (vec![0_u64; 4_096], vec![0_u64; 4_096]);
        for n in 0..KEYS {
            let hash = HASH.hash(&name(n));
            shards[hash as usize % 4_096] += 1;
            homes[(hash >> 52) as usize] += 1;
        }
        for counts in [shards, homes] {
            let mean = (KEYS / 4_096) as u64;
            let square: u64 = counts.iter().map(|count| count.abs_diff(mean).pow(2)).sum();
            assert!((3_600..4_600).contains(&(square / mean)), "{kind}: {}", square / mean);
        }
    }
}
