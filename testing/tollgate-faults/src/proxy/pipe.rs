//! One direction of a connection.

use super::Faults;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Requests,
    Replies,
}

/// The most pieces in transit. A peer that does not read thus slows the other down, as without a
/// proxy.
const PIECES_MOST: usize = 1_024;
const PIECE_BYTES: usize = 64 << 10;

/// Forwards bytes in order until either side closes.
pub(super) async fn run(
    from: &TcpStream,
    to: &TcpStream,
    faults: watch::Receiver<Faults>,
    way: Direction,
) {
    let (pieces, arrived) = mpsc::channel(PIECES_MOST);
    let reading = read(from, faults.clone(), way, pieces);
    let writing = write(to, faults, arrived);
    // Bytes that were read are still delivered.
    let ((), ()) = tokio::join!(reading, writing);
}

/// Reads and drops bytes.
pub(super) async fn read_and_discard(from: &TcpStream) {
    let mut buffer = vec![0; PIECE_BYTES];
    while from.readable().await.is_ok() {
        match from.try_read(&mut buffer) {
            Ok(0) => return,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

async fn read(
    from: &TcpStream,
    faults: watch::Receiver<Faults>,
    way: Direction,
    pieces: mpsc::Sender<(Instant, Vec<u8>)>,
) {
    let mut buffer = vec![0; PIECE_BYTES];
    while from.readable().await.is_ok() {
        let count = match from.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        let (due, cut) = {
            let now = faults.borrow();
            let loses = way == Direction::Replies && now.lost_replies > 0;
            if loses && chance() % 1_000 < now.lost_replies {
                return;
            }
            let cut = match way {
                Direction::Requests => now.no_requests,
                Direction::Replies => now.no_replies,
            };
            (Instant::now() + delay(&now), cut)
        };
        if !cut && pieces.send((due, buffer[..count].to_vec())).await.is_err() {
            return;
        }
    }
}

async fn write(
    to: &TcpStream,
    mut faults: watch::Receiver<Faults>,
    mut pieces: mpsc::Receiver<(Instant, Vec<u8>)>,
) {
    while let Some((due, piece)) = pieces.recv().await {
        sleep_until(due).await;
        if faults.wait_for(|now| !now.paused).await.is_err() {
            return;
        }
        let slice = faults.borrow().slice.unwrap_or(piece.len()).max(1);
        for part in piece.chunks(slice) {
            if !write_all(to, part).await {
                return;
            }
            // Each part is sent separately, since TCP_NODELAY is set.
            tokio::task::yield_now().await;
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        if to.writable().await.is_err() {
            return false;
        }
        match to.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
    }
    true
}

/// The delay of a piece.
fn delay(faults: &Faults) -> Duration {
    let (latency, jitter, (per_mille, by)) = (faults.latency, faults.jitter, faults.late);
    let mut delay = latency;
    if jitter > Duration::ZERO {
        delay += jitter * (chance() % 1_024) / 1_024;
    }
    if per_mille > 0 && chance() % 1_000 < per_mille {
        delay += by;
    }
    delay
}

fn chance() -> u32 {
    RandomState::new().hash_one(0) as u32
}
