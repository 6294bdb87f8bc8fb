use super::{LogQueue, QUEUED_BYTES_MAX};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A pipe: the test says when a write returns and how, and gets what was written.
struct GatedSink {
    gate: Receiver<io::Result<()>>,
    written: Sender<String>,
}

impl Write for GatedSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.send(String::from_utf8(bytes.to_vec()).unwrap()).unwrap();
        // When the test is over, the sink stays stuck.
        match self.gate.recv() {
            Ok(result) => result.map(|()| bytes.len()),
            Err(_) => loop {
                thread::park();
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A queue with its thread, the results of its writes, and what they wrote.
struct QueueRig {
    queue: LogQueue,
    gate: Sender<io::Result<()>>,
    written: Receiver<String>,
}

impl QueueRig {
    fn new() -> Self {
        let (queue, (gate, gate_end), (written_end, written)) =
            (LogQueue::default(), channel(), channel());
        let (writer, sink) = (queue.clone(), GatedSink { gate: gate_end, written: written_end });
        thread::spawn(move || writer.write_to(sink, |lost| format!("lost {lost}").into_bytes()));
        Self { queue, gate, written }
    }

    /// The line that the sink got, and its write returns.
    fn take(&self) -> String {
        let line = self.begun();
        self.gate.send(Ok(())).unwrap();
        line
    }

    /// The line that the sink got.
    fn begun(&self) -> String {
        self.written.recv_timeout(PATIENCE).unwrap()
    }
}

#[test]
fn a_stuck_sink_stops_nobody_and_what_is_lost_is_reported_once() {
    let rig = QueueRig::new();
    rig.queue.push(b"first");
    assert_eq!(rig.begun(), "first");
    // The sink is stuck now, and each of these fills half of the queue.
    let half = "x".repeat(QUEUED_BYTES_MAX / 2);
    let fit = (0..5).filter(|_| rig.queue.push(half.as_bytes())).count();
    assert_eq!(fit, 2);
    rig.queue.push(b"short, and later than what was lost");
    assert_eq!(rig.queue.dropped(), 4);
    rig.gate.send(Ok(())).unwrap();
    assert_eq!([rig.take(), rig.take()].map(|line| line.len()), [half.len(); 2]);
    assert_eq!(rig.take(), "lost 4");
    rig.queue.push(b"next");
    assert_eq!((rig.take().as_str(), rig.queue.dropped()), ("next", 4));
    rig.queue.flush(PATIENCE);
    assert!(rig.written.try_recv().is_err(), "nothing is left to say");
}

#[test]
fn lines_that_a_broken_sink_did_not_take_are_counted() {
    let rig = QueueRig::new();
    for line in ["one", "two"] {
        rig.queue.push(line.as_bytes());
        assert_eq!(rig.begun(), line);
        rig.gate.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
    }
    rig.queue.flush(PATIENCE);
    rig.queue.push(b"three");
    assert_eq!([rig.take(), rig.take()], ["three", "lost 2"]);
}

#[test]
fn a_full_sink_that_does_not_block_is_tried_again() {
    let rig = QueueRig::new();
    rig.queue.push(b"one");
    assert_eq!(rig.begun(), "one");
    rig.gate.send(Err(io::ErrorKind::WouldBlock.into())).unwrap();
    assert_eq!(rig.take(), "one");
    assert_eq!(rig.queue.dropped(), 0);
}

#[test]
fn an_awaited_line_is_written_or_an_error() {
    let rig = QueueRig::new();
    let write = |line: &'static str, timeout| {
        let queue = rig.queue.clone();
        thread::spawn(move || queue.write_within(line.as_bytes(), timeout))
    };
    let awaited = write("one", PATIENCE);
    assert_eq!(rig.take(), "one");
    awaited.join().unwrap().unwrap();
    let awaited = write("two", PATIENCE);
    assert_eq!(rig.begun(), "two");
    rig.gate.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    assert_eq!(awaited.join().unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    rig.queue.push(b"stuck");
    assert_eq!(rig.begun(), "stuck");
    let late = rig.queue.write_within(b"late", Duration::ZERO).unwrap_err();
    assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    rig.gate.send(Ok(())).unwrap();
    rig.queue.push(b"next");
    assert_eq!((rig.take().as_str(), rig.queue.dropped()), ("next", 0), "it was taken back");
}

#[test]
fn a_flush_of_a_stuck_sink_ends() {
    let rig = QueueRig::new();
    rig.queue.push(b"one");
    rig.begun();
    rig.queue.flush(Duration::from_millis(1));
    rig.gate.send(Ok(())).unwrap();
    rig.queue.flush(PATIENCE);
}
